//! Places of values in an experiment that is already read, for what only a backend can find wrong with them.

use core::ops::Range;
use std::sync::Arc;

use crate::edit;
use crate::experiment::Experiment;
use crate::problem::Problems;

impl Experiment {
    /// A problem with the value that `path` leads to (`flow`, `voice`, `transport`, `congestion-control`), at its place:
    /// in a setting, in the sweep or in the file. `written` is the value as written; `file` is what the file is called.
    /// The nearest place above the value stands for one that the file does not have.
    pub fn problem_at(&self, file: &str, path: &[&str], written: &str, message: &str) -> Problems {
        let key = path.join(".");
        let is_it = |other: &str| key == other || key.starts_with(&format!("{other}."));
        let of_setting = self.settings.iter().rev().find_map(|setting| {
            let value = setting.value_with(written).filter(|_| is_it(setting.key()))?;
            Some(Problems::of_setting(setting, value, message))
        });
        of_setting.unwrap_or_else(|| {
            let place = edit::place(&self.text, path, written);
            Problems::at(file, &self.text, place, message)
        })
    }
}

impl Problems {
    fn at(file: &str, text: &str, place: Range<usize>, message: &str) -> Problems {
        Problems::place(vec![crate::problem::Remark::new(place, message)], file, text, |_| Arc::from(""))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Experiment, Setting};

    const FILE: &str = "name = \"place\"\nduration = \"1 s\"\n[hosts]\na = {}\nb = {}\n[link.l]\nbetween = [\"a\", \"b\"]\n\
        rate = \"1 Mbit/s\"\n[flow.f]\nfrom = \"a\"\nto = \"b\"\nsource = \"bulk\"\n";
    const PATH: [&str; 4] = ["flow", "f", "transport", "congestion-control"];

    #[track_caller]
    fn placed(more: &str, settings: &[&str]) -> String {
        let settings: Vec<Setting> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
        let text = format!("{FILE}{more}");
        let no_files = crate::NamedFiles::default();
        let read = Experiment::parse_with(&text, "f.toml", &no_files, &settings);
        let read = read.unwrap_or_else(|problems| panic!("{problems}"));
        let problems = read.problem_at("f.toml", &PATH, "cubicc", "wrong");
        let problem = problems.iter().next().expect("one");
        format!("{} ^{}", problem.headline(), problem.width())
    }

    #[test]
    fn a_value_is_found_in_its_table_in_the_sweep_and_in_a_setting() {
        let inline = "transport = { kind = \"tcp\", congestion-control = \"cubicc\" }\n";
        assert_eq!(placed(inline, &[]), "f.toml:13:50: wrong ^8");
        let table = "[flow.f.transport]\nkind = \"tcp\"\ncongestion-control = \"cubicc\"\n";
        assert_eq!(placed(table, &[]), "f.toml:15:22: wrong ^8");
        let swept = "transport = \"tcp\"\n[sweep]\n\"flow.f.transport.congestion-control\" = [\"reno\", \"cubicc\"]\n";
        assert_eq!(placed(swept, &[]), "f.toml:15:50: wrong ^8");
        let set = ["flow.f.transport.congestion-control=cubicc"];
        let told = placed("transport = \"tcp\"\n", &set);
        assert_eq!(told, "--set flow.f.transport.congestion-control=cubicc: wrong ^6");
        // A table as a value of the sweep.
        let whole = "[sweep]\n\"flow.f.transport\" = [\"tcp\", { kind = \"tcp\", congestion-control = \"cubicc\" }]\n";
        let told = placed(&format!("transport = \"tcp\"\n{whole}"), &[]);
        assert!(told.starts_with("f.toml:15:"), "{told}");
    }
}
