//! The threads of the near end, and what they leave behind.

use std::sync::mpsc::{Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};

use trunkline_experiment::Scenario;

use crate::engine::Counters;
use crate::error::LiveError;
use crate::near::engine::EngineFlow;
use crate::near::tcp::Spoken;
use crate::near::{self, Common};
use crate::options::LiveOptions;
use crate::setup;

/// What a thread leaves behind, with the index of its flow.
pub(crate) enum Left {
    Tcp(usize, Spoken),
    Engines(usize, Counters),
}

/// The stack of a thread that serves one conversation: what is large is on the heap, and where memory is limited stacks count
/// whole.
pub(crate) const SLIM: usize = 256 << 10;

/// The threads of the near end.
pub(crate) struct Crew<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    pub(crate) threads: Vec<ScopedJoinHandle<'scope, Option<Left>>>,
}

impl<'scope, 'env> Crew<'scope, 'env> {
    /// Nobody yet.
    pub(crate) fn new(scope: &'scope Scope<'scope, 'env>) -> Crew<'scope, 'env> {
        Crew { scope, threads: Vec::new() }
    }

    /// Starts a thread for each flow over engines of ours, and waits until all have connected. A conversation begins when
    /// its thread is told what it shares with the others.
    pub(crate) fn connect(
        &mut self,
        flows: Vec<(usize, EngineFlow<'env>)>,
        scenario: &'env Scenario,
        options: &'env LiveOptions,
    ) -> Result<Vec<Sender<&'env Common<'env>>>, LiveError> {
        let (tell, told) = channel();
        let mut conversing = Vec::new();
        for (index, mut flow) in flows {
            let (begin, begun) = channel();
            conversing.push(begin);
            let tell = tell.clone();
            self.start("engines", move || {
                // Who does not wait for it any more will not begin either.
                let _ = tell.send(setup::connect_engines(&mut flow.engines, &scenario.flows[index], options));
                drop(tell);
                let common = begun.recv().ok()?;
                Some(Left::Engines(index, near::engine::converse(flow, common)))
            })?;
        }
        drop(tell);
        told.iter().collect::<Result<(), LiveError>>()?;
        Ok(conversing)
    }

    pub(crate) fn start(
        &mut self,
        name: &str,
        work: impl FnOnce() -> Option<Left> + Send + 'scope,
    ) -> Result<(), LiveError> {
        self.spawn(std::thread::Builder::new().name(name.to_owned()), work)
    }

    /// A thread of which there is one for each conversation.
    pub(crate) fn start_slim(
        &mut self,
        name: &str,
        work: impl FnOnce() -> Option<Left> + Send + 'scope,
    ) -> Result<(), LiveError> {
        self.spawn(std::thread::Builder::new().name(name.to_owned()).stack_size(SLIM), work)
    }

    fn spawn(
        &mut self,
        thread: std::thread::Builder,
        work: impl FnOnce() -> Option<Left> + Send + 'scope,
    ) -> Result<(), LiveError> {
        let thread = thread.spawn_scoped(self.scope, work);
        self.threads.push(thread.map_err(LiveError::system("cannot start a thread"))?);
        Ok(())
    }
}
