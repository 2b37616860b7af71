//! Expressions of a study's columns: numbers and names with `+ - * /`, brackets, `floor(x)`, `round(x)` and
//! `below(a, b, c, d)`, which is c where a is below b and else d. Names may hold `-`, so a minus stands between spaces.

use core::str::FromStr;

/// An expression; its names are `N`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression<N> {
    Number(f64),
    Name(N),
    Call(Function, Vec<Expression<N>>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Floor,
    Round,
    Below,
}

/// Expressions within each other at most: studies have a few, and a file cannot exhaust the stack.
const DEEPEST: usize = 32;

impl<N> Expression<N> {
    /// Its value; `None` if a name lacks a value.
    pub(crate) fn value(&self, of: &dyn Fn(&N) -> Option<f64>) -> Option<f64> {
        let (function, arguments) = match self {
            Expression::Number(number) => return Some(*number),
            Expression::Name(name) => return of(name),
            Expression::Call(function, arguments) => (function, arguments),
        };
        let values: Vec<f64> = arguments.iter().map(|argument| argument.value(of)).collect::<Option<_>>()?;
        Some(match (function, values.as_slice()) {
            (Function::Add, [a, b]) => a + b,
            (Function::Subtract, [a, b]) => a - b,
            (Function::Multiply, [a, b]) => a * b,
            (Function::Divide, [a, b]) => a / b,
            (Function::Floor, [a]) => a.floor(),
            (Function::Round, [a]) => a.round(),
            (Function::Below, [a, b, below, otherwise]) => *if a < b { below } else { otherwise },
            _ => return None,
        })
    }

    /// The same of other names.
    pub(crate) fn map<M, E>(self, to: &mut dyn FnMut(N) -> Result<M, E>) -> Result<Expression<M>, E> {
        Ok(match self {
            Expression::Number(number) => Expression::Number(number),
            Expression::Name(name) => Expression::Name(to(name)?),
            Expression::Call(function, arguments) => {
                let arguments = arguments.into_iter().map(|argument| argument.map(to));
                Expression::Call(function, arguments.collect::<Result<_, _>>()?)
            }
        })
    }

    /// Its names.
    pub(crate) fn names(&self) -> Vec<&N> {
        match self {
            Expression::Number(_) => Vec::new(),
            Expression::Name(name) => vec![name],
            Expression::Call(_, arguments) => arguments.iter().flat_map(Expression::names).collect(),
        }
    }
}

impl FromStr for Expression<String> {
    type Err = String;

    fn from_str(text: &str) -> Result<Expression<String>, String> {
        let mut parser = Parser { text, rest: text, depth: 0 };
        let expression = parser.sum()?;
        match parser.rest.trim_start() {
            "" => Ok(expression),
            rest => Err(parser.unexpected(rest)),
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    rest: &'t str,
    depth: usize,
}

type Parsed = Result<Expression<String>, String>;

impl Parser<'_> {
    fn unexpected(&self, rest: &str) -> String {
        match rest {
            "" => format!("`{}` ends where a value is missing", self.text),
            rest => format!("`{}` has an unexpected `{rest}`", self.text),
        }
    }

    /// Takes one of these signs, if one is next.
    fn sign<T: Copy>(&mut self, signs: &[(char, T)]) -> Option<T> {
        let rest = self.rest.trim_start();
        let (sign, found) = signs.iter().find(|(sign, _)| rest.starts_with(*sign))?;
        self.rest = &rest[sign.len_utf8()..];
        Some(*found)
    }

    fn sum(&mut self) -> Parsed {
        let signs = [('+', Function::Add), ('-', Function::Subtract)];
        self.chain(&signs, Parser::product)
    }

    fn product(&mut self) -> Parsed {
        let signs = [('*', Function::Multiply), ('/', Function::Divide)];
        self.chain(&signs, Parser::operand)
    }

    fn chain(&mut self, signs: &[(char, Function)], operand: fn(&mut Self) -> Parsed) -> Parsed {
        let mut expression = operand(self)?;
        while let Some(function) = self.sign(signs) {
            expression = Expression::Call(function, vec![expression, operand(self)?]);
        }
        Ok(expression)
    }

    fn operand(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("`{}` has more than {DEEPEST} nested operands", self.text));
        }
        let operand = self.bracket_or_word();
        self.depth -= 1;
        operand
    }

    fn bracket_or_word(&mut self) -> Parsed {
        if self.sign(&[('(', ())]).is_some() {
            let inner = self.sum()?;
            return self.closed(inner);
        }
        let rest = self.rest.trim_start();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let (word, behind) = rest.split_at(rest.find(|c: char| !is_part(c)).unwrap_or(rest.len()));
        if let Some(first) = word.chars().next().filter(|first| *first != '-') {
            self.rest = behind;
            if first.is_ascii_digit() {
                let number = word.parse().map_err(|_| format!("`{word}` is not a number"))?;
                return Ok(Expression::Number(number));
            }
            return if self.sign(&[('(', ())]).is_some() {
                self.call(word)
            } else {
                Ok(Expression::Name(word.to_owned()))
            };
        }
        Err(self.unexpected(rest))
    }

    fn call(&mut self, name: &str) -> Parsed {
        let known =
            [("floor", Function::Floor, 1), ("round", Function::Round, 1), ("below", Function::Below, 4)];
        let Some((_, function, count)) = known.iter().find(|(known, ..)| *known == name) else {
            let hint = trunkline_experiment::suggestion(name, known.iter().map(|(known, ..)| *known));
            return Err(format!("unknown function `{name}`{hint}"));
        };
        let mut arguments = vec![self.sum()?];
        while self.sign(&[(',', ())]).is_some() {
            arguments.push(self.sum()?);
        }
        if arguments.len() != *count {
            let plural = if *count == 1 { "" } else { "s" };
            return Err(format!("`{name}` takes {count} value{plural}, not {}", arguments.len()));
        }
        self.closed(Expression::Call(*function, arguments))
    }

    fn closed(&mut self, inner: Expression<String>) -> Parsed {
        match self.sign(&[(')', ())]) {
            Some(()) => Ok(inner),
            None => Err(format!("`{}` lacks a closing bracket", self.text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_of_named_values() {
        let value = |text: &str| {
            let expression: Expression<String> = text.parse().unwrap();
            expression.value(&|name| match name.as_str() {
                "sent" => Some(7.0),
                "cell-delay" => Some(0.5),
                "inf" => Some(f64::INFINITY),
                _ => None,
            })
        };
        assert_eq!(value("1 + 2 * sent - cell-delay / 2"), Some(14.75));
        assert_eq!(value("8 - 4 - 2"), Some(2.0));
        assert_eq!(value("floor(10 * (sent - 0.21)) / 10 + round(2.5)"), Some(9.7));
        assert_eq!(value("192 / (1 + 14 / inf)"), Some(192.0));
        assert_eq!([value("below(sent, 7, 1, 2)"), value("below(sent, 7.1, 1, 2)")], [Some(2.0), Some(1.0)]);
        assert_eq!(value("sent + absent"), None);
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        let nested = format!("{}1{}", "(".repeat(40), ")".repeat(40));
        for (text, problem) in [
            ("", "`` ends where a value is missing"),
            ("1 +", "`1 +` ends where a value is missing"),
            ("1 2", "`1 2` has an unexpected `2`"),
            ("(1", "`(1` lacks a closing bracket"),
            ("1x", "`1x` is not a number"),
            ("flor(1)", "unknown function `flor`; did you mean `floor`?"),
            ("floor(1, 2)", "`floor` takes 1 value, not 2"),
            (&nested, &format!("`{nested}` has more than 32 nested operands")),
        ] {
            assert_eq!(text.parse::<Expression<String>>().unwrap_err(), problem);
        }
    }
}
