//! From the points of an experiment to the rows of tables.

use trunkline_experiment::Experiment;

use crate::study::{self, Axis};
use crate::value::{Keys, Value};

/// The cells of every point in key columns, in the points' order.
///
/// # Errors
/// If the file does not sweep what the mapping says, or a value of it is unknown to the mapping: points would become
/// wrong rows.
pub(crate) fn keys(
    experiment: &Experiment,
    mapping: &'static study::Experiment,
) -> Result<Vec<Keys>, String> {
    let swept = |key: &str| experiment.axes.iter().position(|axis| axis.key == key);
    for axis in &mapping.axes {
        swept(&axis.key).ok_or_else(|| format!("{} does not sweep `{}`", mapping.file, axis.key))?;
    }
    for axis in experiment.axes.iter().filter(|axis| axis.values.len() > 1) {
        if mapping.axes.iter().all(|mapped| mapped.key != axis.key) {
            return Err(format!(
                "{} sweeps `{}`, which is not a column of any table",
                mapping.file, axis.key
            ));
        }
    }
    let of_point = |choice: Vec<usize>| {
        let mut keys = Keys::default();
        for mapped in &mapping.axes {
            let axis = swept(&mapped.key).unwrap_or_default();
            let cells = cells(mapped, &experiment.axes[axis], choice[axis])
                .map_err(|problem| format!("{}: {problem}", mapping.file))?;
            keys.0.extend(mapped.columns.iter().map(String::as_str).zip(cells));
        }
        Ok(keys)
    };
    experiment.points.choices().map(of_point).collect()
}

/// The cells of one chosen value.
fn cells(mapped: &Axis, axis: &trunkline_experiment::Axis, chosen: usize) -> Result<Vec<Value>, String> {
    let written = axis.values.get(chosen).map_or("", String::as_str);
    let columns = mapped.columns.join(", ");
    let unknown = || format!("`{written}` of `{}` is not a cell of {columns}", axis.key);
    match &mapped.values {
        None => {
            let number = axis.numbers.as_ref().and_then(|numbers| numbers.get(chosen)).ok_or_else(unknown)?;
            Ok(vec![Value::Number(*number)])
        }
        Some(values) => {
            let value = squeezed(written);
            let fits = |parts: &[String]| parts.iter().all(|part| value.contains(&squeezed(part)));
            let mut fitting = values.iter().filter(|value| fits(&value.holding));
            let found = fitting.next().ok_or_else(unknown)?;
            if fitting.next().is_some() {
                return Err(format!("`{written}` of `{}` can be more than one of {columns}", axis.key));
            }
            Ok(found.cells.iter().map(|cell| Value::read(cell)).collect())
        }
    }
}

/// Without white space.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        name = "a"
        duration = "1 s"
        [hosts]
        a = {}
        b = {}
        [link.l]
        between = ["a", "b"]
        rate = "1 Mbit/s"
        [flow.f]
        from = "a"
        to = "b"
        transport = "udp"
        source = { kind = "interactive", message = "64 B" }
        reflect = true
        [sweep]
        "link.l.queue" = [{ kind = "fifo", limit = "10 packets" }, { kind = "fifo", limit = "20 packets" }]
        "flow.f.source.message" = ["1 B", "2 B"]
    "#;

    const SIZE: &str = r#"{ key = "flow.f.source.message", columns = ["message_bytes"] }"#;

    /// The cells of the file's points by these axes.
    fn keys_of(axes: &[&str]) -> Result<Vec<String>, String> {
        let axis = |text: &&str| {
            toml::from_str::<std::collections::BTreeMap<String, Axis>>(&format!("axis = {text}"))
        };
        let axes = axes.iter().flat_map(|text| axis(text).unwrap().into_values()).collect();
        let mapping = Box::leak(Box::new(study::Experiment { file: "a.toml".to_owned(), axes }));
        let keys = keys(&Experiment::parse(FILE, "a.toml", &()).unwrap(), mapping)?;
        Ok(keys.iter().map(Keys::values).collect())
    }

    #[test]
    fn swept_values_become_cells_of_one_or_more_columns() {
        let queue = r#"{ key = "link.l.queue", columns = ["board", "limit"], values = [
            { holding = ['kind="fifo"', 'limit = "10 packets"'], cells = ["small", 10] },
            { holding = ["20  packets"], cells = ["large", 20] },
        ] }"#;
        let keys = keys_of(&[queue, SIZE]).unwrap();
        assert_eq!(keys, ["small, 10, 1", "small, 10, 2", "large, 20, 1", "large, 20, 2"]);
    }

    #[test]
    fn what_a_file_sweeps_must_be_known() {
        let other = r#"{ key = "link.l.queue", columns = ["board"], values = [
            { holding = ["10 packets"], cells = ["small"] },
        ] }"#;
        let both = r#"{ key = "link.l.queue", columns = ["board"], values = [
            { holding = ["10 packets"], cells = ["small"] },
            { holding = ["fifo"], cells = ["any"] },
        ] }"#;
        let absent = r#"{ key = "flow.f.count", columns = ["count"] }"#;
        for (axes, problem) in [
            (&[SIZE][..], "a.toml sweeps `link.l.queue`, which is not a column of any table"),
            (
                &[other, SIZE],
                r#"a.toml: `{ kind = "fifo", limit = "20 packets" }` of `link.l.queue` is not a cell of board"#,
            ),
            (
                &[both, SIZE],
                r#"a.toml: `{ kind = "fifo", limit = "10 packets" }` of `link.l.queue` can be more than one of board"#,
            ),
            (&[other, SIZE, absent], "a.toml does not sweep `flow.f.count`"),
        ] {
            assert_eq!(keys_of(axes).unwrap_err(), problem);
        }
    }
}
