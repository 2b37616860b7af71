//! JACK: one client, with the ports of both directions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use trunkline_core::Time;
use trunkline_io::jack::{Client, Direction, Period, Process};

use crate::cycle::Cycle;
use crate::error::SoundError;
use crate::hardware::{Hardware, Running};
use crate::place::Place;
use crate::shared::Shared;
use crate::wanted::{Format, Wanted};

/// A client with its ports.
pub(crate) struct Jack {
    client: Client,
    format: Format,
    plugs: [Plugs; 2],
    shared: Arc<Shared>,
}

impl Jack {
    /// `again`: the server was there before, so ports of other clients may still have to come back.
    pub(crate) fn open(wanted: &Wanted, again: bool, shared: Arc<Shared>) -> Result<Jack, SoundError> {
        let mut client = Client::open(&wanted.client, wanted.server.as_deref())?;
        let plugs = [
            Plugs::new(Direction::Input, wanted.capture.as_ref()),
            Plugs::new(Direction::Output, wanted.playback.as_ref()),
        ];
        for plugs in &plugs {
            plugs.register(&mut client)?;
            if !again {
                plugs.check(&client)?;
            }
        }
        let notices = client.notices();
        let format = Format {
            sample_rate: notices.sample_rate.load(Ordering::Relaxed),
            block_frames: notices.buffer_size.load(Ordering::Relaxed),
            ..wanted.channels()
        };
        Ok(Jack { client, format, plugs, shared })
    }

    fn plug_in(&mut self) {
        for plugs in &mut self.plugs {
            plugs.plug_in(&self.client);
        }
    }
}

impl Hardware for Jack {
    fn format(&self) -> Format {
        self.format
    }

    fn start(mut self: Box<Self>, cycle: Cycle) -> Result<Box<dyn Running>, SoundError> {
        let [inputs, outputs] = self.plugs.each_ref().map(|plugs| plugs.wired.len());
        self.client.activate(Box::new(Handler { cycle, inputs, outputs }))?;
        self.plug_in();
        Ok(self)
    }
}

impl Running for Jack {
    fn check(&mut self) -> Result<(), String> {
        let notices = self.client.notices();
        self.shared.lose(notices.xruns.swap(0, Ordering::Relaxed));
        if notices.is_gone.load(Ordering::Relaxed) {
            return Err("the JACK server disappeared; waiting for it to return".to_owned());
        }
        if notices.has_panicked.load(Ordering::Relaxed) {
            return Err("the audio thread has failed; restarting it".to_owned());
        }
        let (rate, frames) =
            (notices.sample_rate.load(Ordering::Relaxed), notices.buffer_size.load(Ordering::Relaxed));
        if (rate, frames) != (self.format.sample_rate, self.format.block_frames) {
            return Err(format!("the JACK server changes to {frames} frames per period at {rate} Hz"));
        }
        self.plug_in();
        Ok(())
    }
}

/// A period of JACK's is a turn of the cycle.
struct Handler {
    cycle: Cycle,
    inputs: usize,
    outputs: usize,
}

impl Process for Handler {
    fn process(&mut self, period: &mut Period<'_>) {
        let (frames, now) = (period.frames(), Time::from_nanos(period.start()));
        for output in 0..self.outputs {
            period.output(output).fill(0.0);
        }
        if frames > self.cycle.most_frames() {
            // The size has changed: silence until this client is opened anew.
            return;
        }
        let (inputs, outputs) = (self.inputs, self.outputs);
        self.cycle.capture(now, frames, |captured| {
            for input in 0..inputs {
                let samples = period.input(input);
                captured
                    .iter_mut()
                    .skip(input)
                    .step_by(inputs)
                    .zip(samples)
                    .for_each(|(to, from)| *to = *from);
            }
        });
        self.cycle.play(now, frames, |rendered| {
            for output in 0..outputs {
                let samples = period.output(output);
                samples
                    .iter_mut()
                    .zip(rendered.iter().skip(output).step_by(outputs))
                    .for_each(|(to, from)| *to = *from);
            }
        });
    }
}

/// The ports of one direction, and what they are connected to.
struct Plugs {
    direction: Direction,
    /// Which ports of others: `None` for those of sound cards.
    pattern: Option<String>,
    /// For each port, the port of another client that it was connected to. It is connected once; somebody who disconnects it
    /// means it.
    wired: Vec<Option<String>>,
}

impl Plugs {
    fn new(direction: Direction, wanted: Option<&(Place, u16)>) -> Plugs {
        match wanted {
            Some((Place::Jack { ports }, channels)) => {
                Plugs { direction, pattern: ports.clone(), wired: vec![None; usize::from(*channels)] }
            }
            _ => Plugs { direction, pattern: None, wired: Vec::new() },
        }
    }

    fn register(&self, client: &mut Client) -> Result<(), SoundError> {
        for channel in 0..self.wired.len() {
            client.register(&name(self.direction, channel), self.direction)?;
        }
        Ok(())
    }

    /// Whether there is a port of a name that was asked for.
    fn check(&self, client: &Client) -> Result<(), SoundError> {
        match &self.pattern {
            Some(pattern)
                if !self.wired.is_empty() && !pattern.is_empty() && self.others(client).is_empty() =>
            {
                let there = client.ports(opposite(self.direction), false);
                let there =
                    if there.is_empty() { "none".to_owned() } else { format!("`{}`", there.join("`, `")) };
                Err(SoundError::Ports { pattern: pattern.clone(), there })
            }
            _ => Ok(()),
        }
    }

    /// Connects each port that has none to the next of the others that has none.
    fn plug_in(&mut self, client: &Client) {
        if self.wired.is_empty() {
            return;
        }
        let others = self.others(client);
        for wired in &mut self.wired {
            *wired = wired.take().filter(|other| others.contains(other));
        }
        let mut refused = Vec::new();
        for channel in 0..self.wired.len() {
            if self.wired[channel].is_some() {
                continue;
            }
            let is_free = |other: &&String| !self.wired.iter().flatten().any(|taken| taken == *other);
            let Some(other) = others.iter().find(is_free) else { break };
            let own = format!("{}:{}", client.name(), name(self.direction, channel));
            let is_connected = match self.direction {
                Direction::Input => client.connect(other, &own),
                Direction::Output => client.connect(&own, other),
            };
            self.wired[channel] = Some(other.clone());
            if !is_connected {
                refused.push(channel);
            }
        }
        // The server refuses ports of a client that is not active yet, or just going away: they are tried again.
        for channel in refused {
            self.wired[channel] = None;
        }
    }

    /// The ports of others, in the server's order.
    fn others(&self, client: &Client) -> Vec<String> {
        let mut ports = client.ports(opposite(self.direction), self.pattern.is_none());
        if let Some(pattern) = &self.pattern {
            ports.retain(|port| matches(pattern, port));
        }
        ports
    }
}

/// The name of an own port.
fn name(direction: Direction, channel: usize) -> String {
    let direction = match direction {
        Direction::Input => "input",
        Direction::Output => "output",
    };
    format!("{direction}_{}", channel + 1)
}

fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Input => Direction::Output,
        Direction::Output => Direction::Input,
    }
}

/// Whether a name is that of the pattern, in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name.strip_prefix(head).is_some_and(|rest| {
            rest.char_indices().map(|(at, _)| &rest[at..]).chain([""]).any(|rest| matches(tail, rest))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        for (pattern, name, expected) in [
            ("system:capture_1", "system:capture_1", true),
            ("system:capture_1", "system:capture_10", false),
            ("system:capture_*", "system:capture_10", true),
            ("system:capture_*", "system:capture_", true),
            ("*:out*", "synth:out_l", true),
            ("*:out", "synth:out_l", false),
            ("*", "anything", true),
            ("", "anything", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
