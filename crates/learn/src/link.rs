//! One direction of a link as it is learned: the parameters that estimates fill in and that the experiment file has keys for.

use std::fmt::Write as _;

use trunkline_core::quantity::significant;

/// A direction of a path. Rates are in bits per second, times in seconds, sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The rate of the line.
    pub rate: f64,
    /// Propagation delay.
    pub delay: f64,
    /// Framing per packet.
    pub overhead: f64,
    /// The queue in front of the line.
    pub queue: Queue,
    /// A token bucket.
    pub bucket: Option<Bucket>,
    /// Loss that does not depend on load.
    pub loss: Loss,
    /// Random delay that does not depend on load.
    pub jitter: Option<Jitter>,
    /// The share of packets that are delayed so that others overtake them, and by how much.
    pub reorder: Option<(f64, f64)>,
}

/// A queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queue {
    /// Tail drop at a limit in bytes.
    FifoBytes(f64),
    /// Tail drop at a limit in packets.
    FifoPackets(f64),
    /// CoDel with this target.
    Codel(f64),
    /// FQ-CoDel with this target.
    FqCodel(f64),
    /// A queue for each flow in turn, with a limit in bytes for all.
    Drr(f64),
    /// PIE with this target.
    Pie(f64),
}

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// True if packets without tokens wait. Otherwise they are discarded.
    pub shapes: bool,
    /// Tokens per second, in bits at the network layer.
    pub rate: f64,
    /// The size of the bucket.
    pub burst: f64,
}

/// A model of loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// No loss.
    None,
    /// Each packet by itself, with this probability.
    Random(f64),
    /// Bursts in time: mean durations without and with loss.
    Bursts {
        /// Without loss.
        good: f64,
        /// With loss of every packet.
        bad: f64,
    },
}

/// Random delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// Its distribution.
    pub shape: JitterShape,
    /// Its correlation time. `None` if delays are independent.
    pub memory: Option<f64>,
}

/// The distribution of a random delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JitterShape {
    /// Exponential with this mean.
    Exponential(f64),
    /// Uniform from 0 to this.
    Uniform(f64),
    /// Normal with this mean and deviation, of what is not negative.
    Normal(f64, f64),
}

impl Queue {
    /// The name of the discipline, as a person calls it.
    pub fn name(self) -> &'static str {
        match self {
            Queue::FifoBytes(_) => "FIFO with a limit in bytes",
            Queue::FifoPackets(_) => "FIFO with a limit in packets",
            Queue::Codel(_) => "CoDel",
            Queue::FqCodel(_) => "FQ-CoDel",
            Queue::Drr(_) => "fair queue (DRR)",
            Queue::Pie(_) => "PIE",
        }
    }

    /// The value of `queue` in a link.
    pub fn toml(self) -> String {
        match self {
            Queue::FifoBytes(limit) => format!("{{ kind = \"fifo\", limit = \"{}\" }}", bytes(limit)),
            Queue::FifoPackets(limit) => {
                format!("{{ kind = \"fifo\", limit = \"{:.0} packets\" }}", limit.max(1.0))
            }
            Queue::Codel(target) => format!("{{ kind = \"codel\", target = \"{}\" }}", time(target)),
            Queue::FqCodel(target) => format!("{{ kind = \"fq-codel\", target = \"{}\" }}", time(target)),
            Queue::Drr(limit) => format!("{{ kind = \"drr\", limit = \"{}\" }}", bytes(limit)),
            Queue::Pie(target) => format!("{{ kind = \"pie\", target = \"{}\" }}", time(target)),
        }
    }
}

impl Link {
    /// A line without anything beside it.
    pub fn line(rate: f64, delay: f64, queue: Queue) -> Link {
        Link {
            rate,
            delay,
            overhead: 0.0,
            queue,
            bucket: None,
            loss: Loss::None,
            jitter: None,
            reorder: None,
        }
    }

    /// The name of its mechanism under load: that of its bucket, or of its queue.
    pub fn mechanism(&self) -> &'static str {
        match self.bucket {
            Some(Bucket { shapes: false, .. }) => "policer",
            Some(_) => "shaper with a FIFO",
            None => self.queue.name(),
        }
    }

    /// Its keys in the order of a file, each with its value.
    pub fn keys(&self) -> Vec<(&'static str, String)> {
        let mut keys = vec![
            ("rate", quoted(&rate(self.rate))),
            ("delay", quoted(&time(self.delay))),
            ("queue", self.queue.toml()),
        ];
        if self.overhead >= 0.5 {
            keys.push(("overhead", format!("\"{:.0} B\"", self.overhead.min(1024.0))));
        }
        match self.bucket {
            Some(Bucket { shapes: true, rate: bits, burst }) => {
                keys.push(("shape-rate", quoted(&rate(bits))));
                keys.push(("shape-burst", quoted(&bytes(burst))));
            }
            Some(Bucket { rate: bits, burst, .. }) => {
                keys.push(("committed-rate", quoted(&rate(bits))));
                keys.push(("committed-burst", quoted(&bytes(burst))));
            }
            None => {}
        }
        match self.loss {
            Loss::None => {}
            Loss::Random(share) => keys.push(("loss", quoted(&percent(share)))),
            Loss::Bursts { good, bad } => keys.push((
                "loss",
                format!("{{ kind = \"bursts\", good = \"{}\", bad = \"{}\" }}", time(good), time(bad)),
            )),
        }
        if let Some(jitter) = self.jitter {
            let shape = match jitter.shape {
                JitterShape::Exponential(mean) => {
                    format!("{{ kind = \"exponential\", mean = \"{}\" }}", time(mean))
                }
                JitterShape::Uniform(max) => {
                    format!("{{ kind = \"uniform\", min = \"0 ms\", max = \"{}\" }}", time(max))
                }
                JitterShape::Normal(mean, deviation) => format!(
                    "{{ kind = \"normal\", mean = \"{}\", deviation = \"{}\" }}",
                    time(mean),
                    time(deviation)
                ),
            };
            keys.push(("jitter", shape));
            if let Some(memory) = jitter.memory {
                keys.push(("jitter-memory", quoted(&time(memory.max(1e-6)))));
            }
        }
        if let Some((share, by)) = self.reorder {
            keys.push(("reorder", quoted(&percent(share))));
            keys.push(("reorder-by", quoted(&time(by))));
        }
        keys
    }

    /// Its keys as lines of a table.
    pub fn toml(&self) -> String {
        self.keys().iter().fold(String::new(), |mut text, (key, value)| {
            let _ = writeln!(text, "{key} = {value}");
            text
        })
    }
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// A rate in a unit that people use, with four digits.
pub(crate) fn rate(bits: f64) -> String {
    match bits.clamp(1.0, 1e12) {
        bits @ 1e6.. => format!("{} Mbit/s", significant(bits / 1e6, 4)),
        bits @ 1e3.. => format!("{} kbit/s", significant(bits / 1e3, 4)),
        bits => format!("{bits:.0} bit/s"),
    }
}

/// A time in milliseconds, to the microsecond; long ones in seconds.
pub(crate) fn time(seconds: f64) -> String {
    let seconds = seconds.max(0.0);
    if seconds >= 10.0 {
        format!("{} s", significant(seconds, 4))
    } else {
        format!("{} ms", trimmed(seconds * 1e3))
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A size in bytes.
pub(crate) fn bytes(bytes: f64) -> String {
    format!("{:.0} B", bytes.clamp(1.0, 1e12))
}

/// A share.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", significant(share.clamp(0.0, 1.0) * 100.0, 3))
}
