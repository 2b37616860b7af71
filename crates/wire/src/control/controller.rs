//! What can be done to a running wire.

use std::sync::{Arc, Mutex, PoisonError};

use trunkline_core::{Seed, Time};
use trunkline_experiment::{Experiment, Files, Scenario};
use trunkline_network::{Medium, Outcome, medium};

use super::snapshot::{LinkSnapshot, WireSnapshot};
use super::{Reply, Request};
use crate::capture::Captures;
use crate::relay::{Change, RelayCounters, RelayEnded, RelayHandle};

/// What drives a link, as far as control needs it.
pub trait Drive: Send + Sync {
    /// What was counted so far.
    ///
    /// # Errors
    /// If it drives no more.
    fn counters(&self) -> Result<RelayCounters, RelayEnded>;

    /// Lets something work on the medium between two packets.
    ///
    /// # Errors
    /// If it drives no more.
    fn change(&self, change: Change) -> Result<(), RelayEnded>;

    /// Takes the link down or up.
    ///
    /// # Errors
    /// If it drives no more.
    fn set_up(&self, up: bool) -> Result<(), RelayEnded>;
}

impl Drive for RelayHandle {
    fn counters(&self) -> Result<RelayCounters, RelayEnded> {
        RelayHandle::counters(self)
    }

    fn change(&self, change: Change) -> Result<(), RelayEnded> {
        RelayHandle::change(self, change)
    }

    fn set_up(&self, up: bool) -> Result<(), RelayEnded> {
        RelayHandle::set_up(self, up)
    }
}

/// A link under control.
pub struct ControlledLink {
    /// Its name.
    pub name: String,
    /// Its hosts, by port.
    pub stations: Vec<String>,
    /// What drives it.
    pub drive: Arc<dyn Drive>,
}

/// A running wire under control; may be used by several threads.
pub struct Controller {
    name: String,
    experiment: Experiment,
    seed: Seed,
    files: Box<dyn Files + Send + Sync>,
    links: Vec<ControlledLink>,
    captures: Option<Arc<Captures>>,
    written: Mutex<Written>,
}

/// What holds now.
struct Written {
    /// The keys that were set, each once, in the order in which they were set last.
    keys: Vec<(String, String)>,
    scenario: Arc<Scenario>,
}

impl Controller {
    /// Controls the links of the wire `name`, which are those of the experiment's first point, in its order. `files` reads
    /// what the experiment names; `seed` is that of the links.
    ///
    /// # Panics
    /// If the experiment has no points or other links: a mistake in the program.
    pub fn new(
        name: &str,
        experiment: Experiment,
        files: Box<dyn Files + Send + Sync>,
        seed: Seed,
        links: Vec<ControlledLink>,
    ) -> Controller {
        let scenario = Arc::clone(&experiment.points.first().scenario);
        assert_eq!(scenario.links.len(), links.len(), "links of the experiment and links that run");
        let written = Mutex::new(Written { keys: Vec::new(), scenario });
        Controller { name: name.to_owned(), experiment, seed, files, links, captures: None, written }
    }

    /// The same, which says how its capture goes.
    pub fn with_captures(self, captures: Arc<Captures>) -> Controller {
        Controller { captures: Some(captures), ..self }
    }

    /// What the links have counted.
    pub fn counters(&self) -> WireSnapshot {
        let links = self.links.iter().map(|link| match link.drive.counters() {
            Ok(counters) => LinkSnapshot::new(&link.name, &link.stations, &counters),
            Err(RelayEnded) => LinkSnapshot::ended(&link.name),
        });
        WireSnapshot {
            wire: self.name.clone(),
            links: links.collect(),
            capture_failure: self.captures.as_ref().and_then(|captures| captures.failure()),
        }
    }

    /// Sets a key of a link as the file would, `trunk.rate` to `5mbit` or `trunk.backward.loss` to `1 %`, from now on; what
    /// waits goes on waiting. `trunk.up` is `true` or `false`: while a link is down, all that comes is lost.
    ///
    /// # Errors
    /// In a sentence, if there is no such key, if the file would be wrong with that value, or if it cannot be changed while
    /// the link runs.
    pub fn set(&self, key: &str, value: &str) -> Result<(), String> {
        let Some((name, part)) = key.split_once('.') else {
            return Err(format!("`{key}` is not a key of a link; expected LINK.KEY such as `trunk.rate`"));
        };
        let Some(link) = self.links.iter().position(|link| link.name == name) else {
            let known =
                self.links.iter().map(|link| format!("`{}`", link.name)).collect::<Vec<_>>().join(", ");
            return Err(format!("there is no link `{name}`; the wire has {known}"));
        };
        let ended = |ended: RelayEnded| format!("link `{name}`: {ended}");
        if part == "up" {
            let up =
                value.parse().map_err(|_| format!("`{key}` must be `true` or `false`, not `{value}`"))?;
            return self.links[link].drive.set_up(up).map_err(ended);
        }
        // One at a time, so that what is written and what runs are the same.
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let key = format!("link.{key}");
        let mut keys: Vec<_> = written.keys.iter().filter(|(known, _)| *known != key).cloned().collect();
        keys.push((key, value.to_owned()));
        // Here a key begins with its link.
        let scenario =
            self.experiment.rewritten(0, &keys, &*self.files).map_err(|e| e.replace("`link.", "`"))?;
        let change = written.scenario.link_change(link, &scenario, self.seed)?;
        let mtus = |scenario: &Scenario| -> Vec<_> {
            scenario.links[link].directions.iter().map(|direction| direction.mtu).collect()
        };
        if mtus(&scenario) != mtus(&written.scenario) {
            return Err(format!(
                "the MTU of link `{name}` is that of the hosts' interfaces and cannot change while the wire \
                is up"
            ));
        }
        let (answer, answered) = std::sync::mpsc::channel();
        let apply = move |at: Time, medium: &mut dyn Medium, out: &mut Outcome| {
            // Nobody else waits for it.
            let _ = answer.send(change.apply(at, medium, out));
        };
        self.links[link].drive.change(Box::new(apply)).map_err(ended)?;
        let changed = answered.recv().map_err(|_| ended(RelayEnded))?;
        changed.map_err(|_| {
            let medium = medium::KINDS.get(scenario.links[link].medium).map_or("", |kind| kind.name);
            format!("link `{name}` is of medium `{medium}`, which cannot be changed while it runs")
        })?;
        *written = Written { keys, scenario: Arc::new(scenario) };
        Ok(())
    }

    /// Does what is asked.
    pub fn handle(&self, request: &Request) -> Reply {
        match request {
            Request::Counters => Reply::Counters(self.counters()),
            Request::Set { key, value } => self.set(key, value).map_or_else(Reply::Refused, |()| Reply::Done),
        }
    }

    /// What the links have counted, as Prometheus reads it.
    pub fn metrics(&self) -> String {
        super::prometheus::text(&self.counters())
    }
}
