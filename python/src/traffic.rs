//! Sources and loss models by themselves.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use trunkline_core::{Seed, Time};
use trunkline_network::impairment::LossModel;
use trunkline_traffic::source::{Answer, Feedback, MessageBuffer};

use crate::errors;
use crate::parts::World;
use crate::timed::{Timed, goes_on};

/// A message: the time at which it is due, bytes, channel, and true if it asks for an answer.
type Message = (u64, u64, u16, bool);

/// A source of messages. All times are nanoseconds, and never decrease.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub(crate) struct Source {
    state: Timed<State>,
    /// True if it waits for answers, or for its transport.
    waits: bool,
}

struct State {
    source: Box<dyn trunkline_traffic::Source>,
    buffer: MessageBuffer,
}

impl State {
    fn produce(&mut self, at: Time, mut take: impl FnMut(Message)) {
        self.source.produce(at, &mut self.buffer);
        for message in self.buffer.messages() {
            let size = message.range.len() as u64;
            take((message.due.as_nanos(), size, message.channel, message.asks));
        }
        self.buffer.take_overflows().for_each(drop);
        self.buffer.clear();
    }
}

impl Source {
    fn notify(&self, py: Python<'_>, now: u64, what: Feedback) -> PyResult<()> {
        self.state.at(py, now, |state, at| {
            state.source.notify(at, what);
            // Nothing is recorded here.
            while state.source.take_transfer().is_some() {}
        })
    }
}

#[pymethods]
impl Source {
    /// The source that an experiment file names, `{ kind = "voice", samples = 80 }`, of this many channels and this long.
    #[new]
    fn new(written: &str, channels: u16, duration: &str, seed: u64) -> PyResult<Source> {
        let flow = |reflect: bool| {
            format!("transport = \"tcp\"\nsource = {written}\nchannels = {channels}\nreflect = {reflect}")
        };
        let read = |reflect| World { flow: &flow(reflect), duration, ..World::new("<source>") }.read();
        // Some wait for their messages to come back, and the file must say that they do.
        let read = read(false).or_else(|error| read(true).map_err(|_| error))?;
        let scenario = &read.points.first().scenario;
        let of = &scenario.flows[0].source;
        let kind = &trunkline_traffic::KINDS[of.kind];
        let waits = (kind.answer)(&of.values) != Answer::None || (kind.needs_flow_control)(&of.values);
        let source = scenario.build_source(0, 0, Seed::new(seed, 0)).map_err(errors::bad_input)?;
        Ok(Source { state: Timed::new(State { source, buffer: MessageBuffer::default() }), waits })
    }

    /// The time of the next message.
    #[getter]
    fn next_due(&self, py: Python<'_>) -> Option<u64> {
        self.state.with(py, |state| state.source.next_due()).map(Time::as_nanos)
    }

    /// True if nothing will ever be due again.
    #[getter]
    fn is_finished(&self, py: Python<'_>) -> bool {
        self.state.with(py, |state| state.source.is_finished())
    }

    /// The messages that are due; of a source that is held back by its transport, as many as it gives at once.
    fn produce(&self, py: Python<'_>, now: u64) -> PyResult<Vec<Message>> {
        self.state.at(py, now, |state, at| {
            let mut messages = Vec::new();
            state.produce(at, |message| messages.push(message));
            while !self.waits && state.source.next_due().is_some_and(|due| due <= at) {
                state.produce(at, |message| messages.push(message));
            }
            messages
        })
    }

    /// The transport takes messages again.
    fn writable(&self, py: Python<'_>, now: u64) -> PyResult<()> {
        self.notify(py, now, Feedback::Writable)
    }

    /// The answer to this message has come back; messages are counted for each channel, from 0.
    fn answered(&self, py: Python<'_>, now: u64, channel: u16, sequence: u32) -> PyResult<()> {
        self.notify(py, now, Feedback::Answered { channel, sequence })
    }

    /// All messages that are left: the times at which they are due (64-bit), sizes (32-bit) and channels (16-bit) in the
    /// machine's byte order.
    fn schedule<'p>(&self, py: Python<'p>) -> PyResult<[Bound<'p, PyBytes>; 3]> {
        if self.waits {
            return Err(errors::bad_input(
                "the source waits for answers or for its transport, so its messages depend on them: use `produce`",
            ));
        }
        let (mut times, mut sizes, mut channels) = (Vec::new(), Vec::new(), Vec::new());
        let mut is_over = false;
        while !is_over {
            is_over = py.detach(|| {
                let (state, now) = &mut *self.state.lock();
                for _ in 0..BETWEEN_SIGNALS {
                    let Some(due) = state.source.next_due() else { return true };
                    *now = due.max(*now);
                    state.produce(*now, |(due, size, channel, _)| {
                        times.extend(due.to_ne_bytes());
                        sizes.extend(u32::try_from(size).unwrap_or(u32::MAX).to_ne_bytes());
                        channels.extend(channel.to_ne_bytes());
                    });
                }
                false
            });
            py.check_signals()?;
        }
        Ok([&times, &sizes, &channels].map(|bytes| PyBytes::new(py, bytes)))
    }
}

/// Times at which messages are made between two looks for signals.
const BETWEEN_SIGNALS: u32 = 1 << 16;

/// A loss model. All times are nanoseconds, and never decrease.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub(crate) struct Loss {
    state: Mutex<(LossModel, u64)>,
}

#[pymethods]
impl Loss {
    /// The model that an experiment file names, `{ kind = "gilbert-elliott", to-bad = "1 %", to-good = "25 %" }`.
    #[new]
    fn new(written: &str, seed: u64) -> PyResult<Loss> {
        let link = format!("rate = \"1 Gbit/s\"\nloss = {written}");
        let read = World { link: &link, ..World::new("<loss>") }.read()?;
        let loss = read.points.first().scenario.links[0].directions[0].impairments.loss.clone();
        let model = LossModel::new(loss, Seed::new(seed, 0).stream("loss"));
        Ok(Loss { state: Mutex::new((model, 0)) })
    }

    /// For packets at these times (64-bit, in the machine's byte order) a byte each, 1 for those that are lost.
    fn losses<'p>(&self, py: Python<'p>, times: &[u8]) -> PyResult<Bound<'p, PyBytes>> {
        let times: Vec<u64> = times.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect();
        let lost = py.detach(|| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let (model, now) = &mut *state;
            // Before any is drawn: what is refused changes nothing.
            times.first().map_or(Ok(()), |first| goes_on(*now, *first))?;
            times.array_windows().try_for_each(|&[one, next]| goes_on(one, next))?;
            *now = times.last().copied().unwrap_or(*now);
            Ok(times.iter().map(|time| u8::from(model.loses(Time::from_nanos(*time)))).collect::<Vec<u8>>())
        });
        lost.map(|lost| PyBytes::new(py, &lost)).map_err(|why: String| errors::bad_input(why))
    }
}
