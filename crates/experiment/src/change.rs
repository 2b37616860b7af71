//! Links that are changed while they run: the same keys and values as in the file.

use trunkline_core::schema::Kind;
use trunkline_core::{Port, Seed, Stream, Time};
use trunkline_network::{Change, Fixed, Medium, Outcome, queue};

use crate::build::place;
use crate::experiment::Experiment;
use crate::files::{Files, Shelf};
use crate::model::{Direction, Scenario};
use crate::schema::Schema;
use crate::tree::{self, Item, Node};
use crate::{link_profile, read, sweep};

impl Experiment {
    /// A point's scenario with some keys written otherwise, each as in a sweep: `("link.trunk.rate", "5 Mbit/s")`. Of two
    /// that contradict each other the later holds.
    ///
    /// # Errors
    /// In a sentence, if there is no such key, or if the file would be wrong with that value.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn rewritten(
        &self,
        point: usize,
        keys: &[(String, String)],
        files: &dyn Files,
    ) -> Result<Scenario, String> {
        let (schema, shelf) = (Schema::default(), Shelf::new(files));
        let choice = self.points.choices().nth(point).unwrap_or_else(|| panic!("no point {point}"));
        let unreadable = |_| "the experiment's text cannot be read".to_owned();
        let mut root = tree::parse(&self.text).map_err(unreadable)?;
        let invalid = |remark: crate::problem::Remark| remark.message;
        link_profile::fill_in_files(&mut root, &shelf, u64::MAX).map_err(invalid)?;
        let table = root.table().cloned().unwrap_or_default();
        let swept = sweep::read(&schema, &self.text, &table, &shelf, &mut Vec::new());
        let point = swept.iter().zip(&choice);
        let point = point.flat_map(|(swept, chosen)| sweep::values(&swept.axis.key, &swept.nodes[*chosen]));
        sweep::apply_point(&schema, &mut root, &shelf, u64::MAX, point);
        for (key, text) in keys {
            let table = root.table().cloned().unwrap_or_default();
            let known = sweep::sweepable(&schema, &table, &[key]);
            let of_all = |error| sweep::of_all(&schema, &table, key).unwrap_or(error);
            let kind = sweep::find(key, &known).map_err(of_all)?.kind;
            sweep::apply(&schema, &mut root, key, &written(text, kind));
        }
        let problem = |remarks: Vec<crate::problem::Remark>| {
            // Both directions of a link are read from the same keys.
            remarks.into_iter().next().map_or_else(String::new, |remark| remark.message)
        };
        read::read(&schema, &shelf, &root).map(|reading| reading.scenario).map_err(problem)
    }
}

/// A value written without quotes: a number or a truth value where one belongs, a table, or a text.
fn written(text: &str, kind: Option<Kind>) -> Node {
    let bare = matches!(kind, Some(Kind::Integer { .. } | Kind::Number { .. } | Kind::Flag))
        || text.starts_with('{');
    let read = || tree::parse(&format!("value = {text}")).ok()?.table()?.node("value").cloned();
    let item = Item::Text(text.into());
    bare.then(read).flatten().unwrap_or(Node { span: 0..0, item })
}

/// The changes that turn a link into another between the same hosts. The thread that drives its medium can receive them.
#[derive(Debug)]
pub struct LinkChange {
    ports: Vec<(Port, Direction, Option<Stream>)>,
}

impl Scenario {
    /// Changes that turn the link with this index into that of `to`, another reading of the same file.
    ///
    /// # Errors
    /// In a sentence, if that is not possible while it runs.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn link_change(&self, link: usize, to: &Scenario, seed: Seed) -> Result<LinkChange, String> {
        let (now, to) = (&self.links[link], &to.links[link]);
        let fixed =
            |what: &str| Err(format!("cannot change {what} of the link `{}` while it runs", now.name));
        if (now.medium, &now.between) != (to.medium, &to.between) {
            return fixed("the medium");
        }
        if now.shared != to.shared {
            return fixed("what is common to all stations");
        }
        let directions = now.directions.iter().zip(&to.directions);
        let changed = (0..).zip(directions).filter(|(_, (now, to))| now != to);
        let ports = changed.map(|(port, (was, to))| {
            // A queue that is told nothing new goes on as it is.
            let stream = (was.queue != to.queue)
                .then(|| seed.stream(&format!("{}/queue", place(now, &self.hosts, usize::from(port)))));
            (Port(port), to.clone(), stream)
        });
        Ok(LinkChange { ports: ports.collect() })
    }
}

impl LinkChange {
    /// True if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// Changes the link's medium at `at`.
    ///
    /// # Errors
    /// If such a medium stays as it was built; then nothing is changed.
    pub fn apply(self, at: Time, medium: &mut dyn Medium, out: &mut Outcome) -> Result<(), Fixed> {
        for (port, direction, stream) in self.ports {
            let (kind, values) = &direction.queue;
            let queue = stream.map(|stream| (queue::KINDS[*kind].build)(values, stream));
            let change = Change { values: &direction.values, queue, impairments: direction.impairments };
            medium.change(at, port, change, out)?;
        }
        Ok(())
    }
}
