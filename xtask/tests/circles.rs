//! The modules of a crate, held against the rule of docs/architecture.md: two modules of one parent do not use each other,
//! directly or through others. A module counts with everything below it, and a parent and its children may use each other.
//!
//! Sources are read as tokens. Every path counts that begins with `crate`, `self`, `super` or the name of a child, in `use`
//! declarations and elsewhere; a name that a module only passes on (`pub use`, or `use` for its children) counts as a use
//! of the module that defines it. Tests do not count. What a module takes from its parent by `use super::*` is not
//! followed further.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Circles that stay, with the reason: crate, parent (empty for the crate's root), modules.
const KEPT: &[(&str, &str, &[&str], &str)] = &[
    (
        "cli",
        "json",
        &["describe", "layouts"],
        "the list of layouts names the function that describes each, and the description walks that list",
    ),
    (
        "core",
        "",
        &["quantity", "time"],
        "a rate times a time is a size, and a time is read and written as quantities are: one vocabulary in two files",
    ),
    (
        "network",
        "",
        &["atm", "ethernet", "fddi", "medium", "point_to_point", "serial", "t1", "trace", "wifi"],
        "the registry of media stands beside the trait that each of them implements, so that a medium is one file and one line",
    ),
];

/// Circles that nobody has untangled yet. This list only becomes shorter.
const LEFT: &[(&str, &str, &[&str])] = &[
    ("advisor", "", &["choose", "plan"]),
    ("audio", "", &["codec", "pipeline"]),
    ("audio", "measure", &["line", "search", "track"]),
    ("calls", "", &["client", "control", "foreign", "keys", "program", "server", "session"]),
    ("calls", "program", &["conduct", "desk", "exact", "incoming", "link", "send", "worker"]),
    ("cli", "", &["args", "output"]),
    ("cli", "commands", &["wire", "wire_live"]),
    ("editor", "", &["drawing", "places"]),
    (
        "experiment",
        "",
        &[
            "alike",
            "bounds",
            "edit",
            "experiment",
            "files",
            "limits",
            "link_profile",
            "points",
            "problem",
            "quantity",
            "range",
            "read",
            "schema",
            "searchable",
            "setting",
            "speech",
            "sweep",
            "tree",
        ],
    ),
    ("metrics", "", &["playback", "summary", "voice_path"]),
    ("metrics", "meter", &["outstanding", "window"]),
    ("network", "atm", &["bundle", "direction", "per_flow"]),
    ("papers", "", &["compare", "findings", "read", "reading", "results", "study"]),
    ("papers", "", &["measure", "run"]),
    ("planner", "", &["run", "text", "work"]),
    ("report", "", &["chart", "figures", "png"]),
    ("report", "chart", &["axes", "svg"]),
    (
        "server",
        "",
        &["access", "app", "compare", "drawing", "forms", "jobs", "measure", "papers", "predict", "routes"],
    ),
    ("server", "papers", &["kept", "repeat", "shown"]),
    ("kernel", "", &["device", "queue"]),
    ("store", "", &["archive", "catalogue", "files", "folders", "recovery", "run_writer", "store"]),
    ("transport", "", &["endpoint", "features", "kind", "tcp", "udp"]),
    ("transport", "tcp", &["config", "congestion", "flow", "rate", "rtt", "scoreboard"]),
];

/// A module's path inside its crate; empty for the root.
type Module = Vec<String>;

/// The modules of one crate.
#[derive(Default)]
struct Crate {
    modules: BTreeMap<Module, Vec<Use>>,
    /// Items by the module that defines them.
    items: BTreeSet<(Module, String)>,
}

/// A path as it is written.
struct Use {
    path: Vec<String>,
    /// The name that a `use` gives it, `*` for a glob; none for a path elsewhere.
    name: Option<String>,
}

#[test]
fn no_two_modules_of_one_parent_use_each_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the workspace");
    let mut found = BTreeMap::new();
    let folders = std::fs::read_dir(root.join("crates")).expect("there are crates");
    for folder in folders.map(|folder| folder.expect("it can be read").path()) {
        let name = folder.file_name().expect("it has a name").to_string_lossy().into_owned();
        let start = folder.join("src/lib.rs");
        if !start.exists() {
            continue;
        }
        let mut code = Crate::default();
        code.read_file(&start, &Vec::new());
        assert!(!code.modules.is_empty(), "{name} has no modules");
        for (parent, circle) in code.circles() {
            found.insert((name.clone(), parent.join("::"), circle.modules), circle.uses);
        }
    }
    let listed = KEPT
        .iter()
        .map(|(name, parent, modules, _)| (name, parent, modules))
        .chain(LEFT.iter().map(|(name, parent, modules)| (name, parent, modules)));
    let listed: BTreeSet<_> = listed
        .map(|(name, parent, modules)| {
            let modules: BTreeSet<String> = modules.iter().map(ToString::to_string).collect();
            ((*name).to_owned(), (*parent).to_owned(), modules)
        })
        .collect();
    let gone: Vec<_> = listed.iter().filter(|circle| !found.contains_key(circle)).collect();
    assert!(gone.is_empty(), "listed circles that are not there any more, or have other modules: {gone:#?}");
    let new: Vec<_> = found.iter().filter(|(circle, _)| !listed.contains(circle)).collect();
    assert!(new.is_empty(), "modules that use each other; move what both need: {new:#?}");
}

/// Modules below one parent, and the uses that tie them into a circle.
struct Circle {
    modules: BTreeSet<String>,
    uses: BTreeSet<String>,
}

impl Crate {
    fn read_file(&mut self, file: &Path, module: &Module) {
        let text =
            std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for child in self.read(&text, module) {
            let mut path = module.clone();
            path.push(child.clone());
            self.read_file(&file_of(file, module, &child), &path);
        }
    }

    /// Takes the source of a module, and returns the children that have files of their own.
    fn read(&mut self, text: &str, module: &Module) -> Vec<String> {
        let tokens = without_tests(&tokens(text));
        let mut children = Vec::new();
        self.modules.entry(module.clone()).or_default();
        // Inline modules that are open, with the depth of their braces.
        let mut inside: Vec<usize> = Vec::new();
        let (mut here, mut depth, mut at) = (module.clone(), 0, 0);
        while at < tokens.len() {
            let token = tokens[at].as_str();
            let next = tokens.get(at + 1).map_or("", String::as_str);
            let before = if at == 0 { "" } else { tokens[at - 1].as_str() };
            match token {
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    if inside.last() == Some(&depth) {
                        inside.pop();
                        here.pop();
                    }
                }
                "mod" if is_name(next) => {
                    self.items.insert((here.clone(), next.to_owned()));
                    match tokens.get(at + 2).map(String::as_str) {
                        Some(";") => children.push(next.to_owned()),
                        Some("{") => {
                            here.push(next.to_owned());
                            self.modules.entry(here.clone()).or_default();
                            inside.push(depth);
                        }
                        _ => {}
                    }
                    at += 2;
                    continue;
                }
                "use" if before != "+" && next != "<" => {
                    let end =
                        tokens[at..].iter().position(|token| token == ";").map_or(tokens.len(), |n| at + n);
                    let mut uses = Vec::new();
                    leaves(&tokens[at + 1..end], &mut Vec::new(), &mut uses);
                    self.modules.entry(here.clone()).or_default().extend(uses);
                    at = end;
                    continue;
                }
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union"
                    if is_name(next) =>
                {
                    self.items.insert((here.clone(), next.to_owned()));
                }
                _ if is_name(token) && next == "::" && before != "::" && before != "." => {
                    let mut path = vec![token.to_owned()];
                    let mut end = at;
                    while tokens.get(end + 1).is_some_and(|token| token == "::")
                        && tokens.get(end + 2).is_some_and(|token| is_name(token))
                    {
                        path.push(tokens[end + 2].clone());
                        end += 2;
                    }
                    self.modules.entry(here.clone()).or_default().push(Use { path, name: None });
                    at = end + 1;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        children
    }

    /// The module that a path leads to from another, and what it names there; `None` if it leads out of the crate.
    fn resolve(&self, from: &Module, path: &[String]) -> Option<(Module, Vec<String>)> {
        let mut rest = path.iter();
        let mut module = match path.first()?.as_str() {
            "crate" => {
                rest.next();
                Vec::new()
            }
            "self" => {
                rest.next();
                from.clone()
            }
            "super" => {
                let mut module = from.clone();
                while rest.as_slice().first().is_some_and(|segment| segment == "super") {
                    rest.next();
                    module.pop()?;
                }
                module
            }
            child if self.modules.contains_key(&below(from, child)) => from.clone(),
            _ => return None,
        };
        while let Some(segment) = rest.as_slice().first() {
            let child = below(&module, segment);
            if !self.modules.contains_key(&child) {
                break;
            }
            module = child;
            rest.next();
        }
        Some((module, rest.cloned().collect()))
    }

    /// The module that defines what a path names.
    fn origin(
        &self,
        from: &Module,
        path: &[String],
        seen: &mut BTreeSet<(Module, String)>,
    ) -> Option<Module> {
        let (module, rest) = self.resolve(from, path)?;
        let Some(name) = rest.first() else { return Some(module) };
        let key = (module.clone(), name.clone());
        if self.items.contains(&key) || !seen.insert(key) {
            return Some(module);
        }
        let uses = || self.modules[&module].iter();
        if let Some(passed_on) = uses().find(|one| one.name.as_ref() == Some(name)) {
            return self.origin(&module, &passed_on.path, seen).or(Some(module));
        }
        for glob in uses().filter(|one| one.name.as_deref() == Some("*")) {
            let through: Vec<String> = glob.path.iter().chain([name]).cloned().collect();
            if let Some(origin) = self.origin(&module, &through, seen)
                && self.items.contains(&(origin.clone(), name.clone()))
            {
                return Some(origin);
            }
        }
        Some(module)
    }

    fn circles(&self) -> Vec<(Module, Circle)> {
        // By parent: which child uses which other one, and by what.
        let mut graphs: BTreeMap<Module, BTreeMap<(String, String), BTreeSet<String>>> = BTreeMap::new();
        for (module, uses) in &self.modules {
            for one in uses {
                let Some(origin) = self.origin(module, &one.path, &mut BTreeSet::new()) else { continue };
                let common = module.iter().zip(&origin).take_while(|(a, b)| a == b).count();
                let (Some(user), Some(used)) = (module.get(common), origin.get(common)) else { continue };
                let text = format!("{} uses {}", module.join("::"), one.path.join("::"));
                let graph = graphs.entry(module[..common].to_vec()).or_default();
                graph.entry((user.clone(), used.clone())).or_default().insert(text);
            }
        }
        let mut circles = Vec::new();
        for (parent, graph) in graphs {
            let mut open: BTreeSet<&String> = graph.keys().map(|(user, _)| user).collect();
            while let Some(module) = open.pop_first() {
                let there = reached(&graph, module);
                let back = |other: &&String| reached(&graph, other).contains(module);
                let modules: BTreeSet<String> = there.iter().filter(back).cloned().collect();
                open.retain(|other| !modules.contains(*other));
                if modules.is_empty() {
                    continue;
                }
                let within =
                    |(user, used): &(String, String)| modules.contains(user) && modules.contains(used);
                let uses = graph.iter().filter(|(pair, _)| within(pair)).flat_map(|(_, uses)| uses).cloned();
                circles.push((parent.clone(), Circle { uses: uses.collect(), modules: modules.clone() }));
            }
        }
        circles
    }
}

/// The modules that one uses, directly or through others.
fn reached(graph: &BTreeMap<(String, String), BTreeSet<String>>, module: &String) -> BTreeSet<String> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![module]);
    while let Some(module) = open.pop() {
        for (_, used) in graph.keys().filter(|(user, _)| user == module) {
            if seen.insert(used.clone()) {
                open.push(used);
            }
        }
    }
    seen
}

fn below(module: &Module, child: &str) -> Module {
    module.iter().cloned().chain([child.to_owned()]).collect()
}

/// The file of a child.
fn file_of(file: &Path, module: &Module, child: &str) -> PathBuf {
    let folder = file.parent().expect("a file is in a folder");
    let has_folder = module.is_empty() || file.ends_with("mod.rs");
    let folder =
        if has_folder { folder.to_owned() } else { folder.join(module.last().expect("not the root")) };
    let flat = folder.join(format!("{child}.rs"));
    if flat.exists() { flat } else { folder.join(child).join("mod.rs") }
}

/// The paths of a `use` declaration.
fn leaves(tree: &[String], prefix: &mut Vec<String>, found: &mut Vec<Use>) {
    let depth = prefix.len();
    let mut at = 0;
    while at < tree.len() {
        match tree[at].as_str() {
            "{" => {
                let mut level = 0;
                let mut begin = at + 1;
                for (place, token) in tree.iter().enumerate().skip(at) {
                    match token.as_str() {
                        "{" => level += 1,
                        "}" => level -= 1,
                        _ => {}
                    }
                    if (level == 1 && token == ",") || level == 0 {
                        leaves(&tree[begin..place], prefix, found);
                        begin = place + 1;
                    }
                    if level == 0 {
                        break;
                    }
                }
                prefix.truncate(depth);
                return;
            }
            "as" => {
                let name = tree.get(at + 1).cloned();
                found.push(Use { path: prefix.clone(), name });
                prefix.truncate(depth);
                return;
            }
            "*" => {
                found.push(Use { path: prefix.clone(), name: Some("*".to_owned()) });
                prefix.truncate(depth);
                return;
            }
            // `a::{self}` names `a`.
            "self" if !prefix.is_empty() => {}
            name if is_name(name) => prefix.push(name.to_owned()),
            _ => {}
        }
        at += 1;
    }
    if !tree.is_empty() && !prefix.is_empty() {
        found.push(Use { path: prefix.clone(), name: prefix.last().cloned() });
    }
    prefix.truncate(depth);
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Names, `::` and single signs, without comments and literals.
fn tokens(text: &str) -> Vec<String> {
    let (text, mut found, mut at): (Vec<char>, Vec<String>, usize) = (text.chars().collect(), Vec::new(), 0);
    let char_at = |at: usize| text.get(at).copied().unwrap_or('\0');
    while at < text.len() {
        let (c, next) = (text[at], char_at(at + 1));
        if c == '/' && next == '/' {
            at += text[at..].iter().position(|c| *c == '\n').unwrap_or(text.len() - at);
        } else if c == '/' && next == '*' {
            let mut level = 0;
            loop {
                match (char_at(at), char_at(at + 1)) {
                    ('/', '*') => (level, at) = (level + 1, at + 2),
                    ('*', '/') => (level, at) = (level - 1, at + 2),
                    _ => at += 1,
                }
                if level == 0 || at >= text.len() {
                    break;
                }
            }
        } else if c == '"' {
            at += 1;
            while at < text.len() && text[at] != '"' {
                at += if text[at] == '\\' { 2 } else { 1 };
            }
            at += 1;
        } else if c == '\'' {
            // A lifetime has no second quote.
            let is_char = next == '\\' || char_at(at + 2) == '\'';
            at += if next == '\\' { 3 } else { 1 };
            if is_char {
                at += text[at..].iter().position(|c| *c == '\'').unwrap_or(0) + 1;
            }
        } else if is_name(&c.to_string()) {
            let begin = at;
            while at < text.len() && (text[at].is_alphanumeric() || text[at] == '_') {
                at += 1;
            }
            let name: String = text[begin..at].iter().collect();
            let hashes = text[at..].iter().take_while(|c| **c == '#').count();
            if matches!(name.as_str(), "r" | "br") && char_at(at + hashes) == '"' {
                let close: Vec<char> = ['"'].into_iter().chain(std::iter::repeat_n('#', hashes)).collect();
                at += hashes + 1;
                while at < text.len() && !text[at..].starts_with(&close) {
                    at += 1;
                }
                at += close.len();
            } else {
                found.push(name);
            }
        } else if c == ':' && next == ':' {
            found.push("::".to_owned());
            at += 2;
        } else {
            if !c.is_whitespace() {
                found.push(c.to_string());
            }
            at += 1;
        }
    }
    found
}

/// Without the items that only tests have.
fn without_tests(tokens: &[String]) -> Vec<String> {
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let attribute = attribute(&tokens[at..]);
        let is_test =
            ["cfg ( test )", "cfg ( all ( test"].iter().any(|cfg| attribute.join(" ").contains(cfg));
        if !is_test {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        at += attribute.len();
        while !self::attribute(&tokens[at..]).is_empty() {
            at += self::attribute(&tokens[at..]).len();
        }
        let mut level = 0;
        while at < tokens.len() {
            match tokens[at].as_str() {
                "{" | "(" | "[" => level += 1,
                "}" | ")" | "]" => level -= 1,
                _ => {}
            }
            at += 1;
            if level == 0 && matches!(tokens[at - 1].as_str(), ";" | "}" | ",") || level < 0 {
                break;
            }
        }
    }
    kept
}

/// The attribute that tokens begin with; empty if they begin with something else.
fn attribute(tokens: &[String]) -> &[String] {
    if tokens.len() < 2 || tokens[0] != "#" || tokens[1] != "[" {
        return &[];
    }
    let mut level = 0;
    for (at, token) in tokens.iter().enumerate().skip(1) {
        match token.as_str() {
            "[" => level += 1,
            "]" => level -= 1,
            _ => {}
        }
        if level == 0 {
            return &tokens[..=at];
        }
    }
    &[]
}

/// The circles of a crate of these modules.
fn circles_of(sources: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
    let mut code = Crate::default();
    for (module, text) in sources {
        let module: Module = module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        code.read(text, &module);
    }
    let circles = code.circles().into_iter();
    circles.map(|(parent, circle)| (parent.join("::"), circle.modules.into_iter().collect())).collect()
}

#[test]
fn siblings_that_use_each_other_are_found() {
    let at = |parent: &str, modules: &[&str]| {
        vec![(parent.to_owned(), modules.iter().map(ToString::to_string).collect::<Vec<_>>())]
    };
    let root = ("", "mod a; mod b; mod c; use std::fmt;");
    let c = ("c", "const R: &str = r#\"crate::a::X\"#; // crate::a::X");
    // Through a use, a path, and what a child does.
    let pair = [root, ("a", "use crate::b::{self, Y as Z};"), ("b", "fn f() { vec![super::a::X]; }"), c];
    assert_eq!(circles_of(&pair), at("", &["a", "b"]));
    let children = [root, ("a", "mod d;"), ("a::d", "use crate::{b::Y, c::T};"), ("b", "use crate::a;"), c];
    assert_eq!(circles_of(&children), at("", &["a", "b"]));
    // Through others, below a parent.
    let three = [
        ("", "mod m;"),
        ("m", "mod a; mod b; mod c; pub use c::T;"),
        ("m::a", "use super::b::Y;"),
        ("m::b", "type U = super::T;"),
        ("m::c", "pub struct T; mod inner { use super::super::a; }"),
    ];
    assert_eq!(circles_of(&three), at("m", &["a", "b", "c"]));
}

#[test]
fn what_is_no_circle_is_not_found() {
    let parent = [
        ("", "mod a; mod b; pub use a::X; pub fn help() {}"),
        ("a", "pub struct X; fn f<'a>(_: &'a str) -> char { crate::help(); '\"' }"),
        ("b", "use crate::X; /* use crate::c; /* */ */ fn g() { crate::help(); }"),
    ];
    assert_eq!(circles_of(&parent), []);
    let tests = [
        ("", "mod a; mod b;"),
        ("a", "use crate::b::Y; #[cfg(test)] #[allow(x)] mod tests { use crate::b; fn f() { } }"),
        (
            "b",
            "pub struct Y; #[cfg(test)] use crate::a::{X, Z}; #[cfg(all(test, unix))] fn f() { crate::a::X }",
        ),
    ];
    assert_eq!(circles_of(&tests), []);
}
