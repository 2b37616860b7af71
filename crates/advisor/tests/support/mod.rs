//! A prober whose network is the simulator's.

#![allow(dead_code, unreachable_pub, reason = "every test program uses a part of this")]

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use trunkline_advisor::{
    Blocks, Bulk, Configuration, Load, Marking, Measured, Observer, Prober, Question, Step, Trace, Transport,
    Use,
};
use trunkline_core::{Bytes, Duration, FlowId, Rate, Ratio, Seed, Time};
use trunkline_experiment::{Experiment, Progress, Supervisor};
use trunkline_metrics::{DriverOutcome, Observation, Recorder};

/// What a measurement takes beside its blocks: the control connection and stragglers.
const OVERHEAD: Duration = Duration::from_millis(150);

/// Known networks.
pub const LAN: &str =
    "rate = \"20 Mbit/s\"\ndelay = \"100 us\"\njitter = { kind = \"exponential\", mean = \"20 us\" }\n";

/// A cell in which nothing gets through for 20 ms some two times a second.
pub const WIFI: &str = "medium = \"wifi\"\nmode = \"ad-hoc\"\noccupied = \"4 %\"\noccupied-for = \"20 ms\"\n\
    occupied-lengths = \"equal\"\n";

/// Single losses of one packet in fifty.
pub const LOSSY: &str = "rate = \"30 Mbit/s\"\ndelay = \"5 ms\"\nloss = \"1 %\"\n";

/// A line with a deep queue in front of it.
pub const DSL: &str = "rate = \"50 Mbit/s\"\ndelay = \"8 ms\"\nqueue = { kind = \"fifo\", limit = \"1 MB\" }\n\
    [link.line.forward]\nrate = \"10 Mbit/s\"\nqueue = { kind = \"fifo\", limit = \"300 KB\" }\n";

/// Measures in virtual time.
pub struct Simulated {
    pub link: &'static str,
    pub now: Time,
    pub seed: u64,
    /// Transports whose connections hang.
    pub hanging: Vec<Transport>,
    pub steps: Vec<Step>,
}

impl Simulated {
    pub fn over(link: &'static str) -> Simulated {
        Simulated { link, now: Time::ZERO, seed: 1, hanging: Vec::new(), steps: Vec::new() }
    }
}

impl Prober for Simulated {
    fn now(&self) -> Time {
        self.now
    }

    fn measure(&mut self, step: &Step, _: &dyn Observer) -> Result<Measured, String> {
        self.steps.push(*step);
        if self.hanging.contains(&step.configuration.transport) {
            self.now = step.until;
            return Err("the connection hangs".to_owned());
        }
        // Each configuration has chances of its own: they do not change if others are measured before it.
        let mut hasher = DefaultHasher::new();
        let earlier = self.steps.iter().filter(|one| one.configuration == step.configuration).count();
        (self.seed, step.configuration.to_string(), earlier).hash(&mut hasher);
        let done = self.now + step.settling + step.lasting + OVERHEAD;
        self.now = done.min(step.until);
        simulate(self.link, step, hasher.finish())
    }
}

/// The transport of this name.
pub fn transport(name: &str) -> Transport {
    name.parse().expect("it is measured")
}

/// What every test asks, but for the transports.
pub fn question(transports: &[Transport]) -> Question {
    Question {
        budget: Duration::from_secs(60),
        transports: transports.to_vec(),
        uses: Use::ALL.to_vec(),
        channels: 2,
        sample_rate: 48_000,
        sample_bytes: 2,
        concealed: Ratio::new(0.005).expect("a share"),
        load: true,
    }
}

pub fn stereo(frames: u32) -> Blocks {
    Blocks { sample_rate: 48_000, frames, channels: 2, sample_bytes: 2 }
}

/// The step's blocks, and the bulk transfers if it asks for them, over the simulator's link.
pub fn simulate(link: &str, step: &Step, seed: u64) -> Result<Measured, String> {
    simulated(link, step, seed).map(|(measured, _)| measured)
}

pub fn simulated(link: &str, step: &Step, seed: u64) -> Result<(Measured, DriverOutcome), String> {
    let Configuration { transport, blocks, load, .. } = step.configuration;
    let (packets, bytes) = blocks.packets();
    let options = match transport.name() {
        "mptcp" => return Err("the kernel has it not".to_owned()),
        "tcp" => "{ kind = \"tcp\", nodelay = true }".to_owned(),
        other => format!("\"{other}\""),
    };
    let bulk = |name: &str, from: &str, to: &str| {
        format!(
            "[flow.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\ntransport = {{ kind = \"tcp\", window = \"2 MiB\", congestion-control = \
             \"cubic\" }}\nsource = {{ kind = \"bulk\", message = \"64 KiB\" }}\n"
        )
    };
    let loads = match load {
        Load::Idle => String::new(),
        Load::Bulk => bulk("there", "here", "reflector") + &bulk("back", "reflector", "here"),
    };
    let text = format!(
        "name = \"test\"\nduration = \"{} us\"\ndrain = \"1 s\"\n[hosts]\nhere = {{}}\nreflector = {{}}\n[link.line]\nbetween = \
         [\"here\", \"reflector\"]\n{link}\n[flow.audio]\nfrom = \"here\"\nto = \"reflector\"\ntransport = {options}\nreflect = \
         true\nstart = \"{} us\"\nsource = {{ kind = \"load\", message = \"{} B\", interval = \"{} ns\", burst = {packets} }}\n{loads}",
        (step.settling + step.lasting).as_nanos() / 1_000,
        step.settling.as_nanos() / 1_000,
        bytes,
        blocks.interval().as_nanos(),
    );
    let experiment =
        Experiment::parse(&text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    let scenario = &experiment.points.first().scenario;
    let mut log = Log { audio: scenario.flows[0].meta.first, due: Vec::new(), back: Vec::new() };
    let lasting = step.settling + step.lasting;
    let mut arrived = Arrived {
        flows: scenario.flows.iter().map(|flow| flow.meta.first).collect(),
        bytes: vec![0; 3],
        until: Time::ZERO + lasting,
    };
    let outcome =
        trunkline_simulator::run(scenario, Seed::new(seed, 0), &mut (&mut log, &mut arrived), &mut GoOn)
            .map_err(|error| error.to_string())?;
    let rate = |flow: usize| Rate::of(Bytes(arrived.bytes[flow]), lasting);
    let bulk = (load == Load::Bulk).then(|| Bulk { there: rate(1), back: rate(2) });
    let whole = log.back.chunks_exact(packets as usize);
    let round_trips = whole.map(|packets| {
        packets.iter().copied().max_by_key(|back| back.map_or(Duration::MAX, |back| back)).flatten()
    });
    let round_trips = round_trips.collect();
    Ok((Measured { trace: Trace { round_trips }, bulk }, outcome))
}

struct Log {
    audio: FlowId,
    due: Vec<Time>,
    back: Vec<Option<Duration>>,
}

impl Recorder for &mut Log {
    fn record(&mut self, at: Time, flow: FlowId, what: Observation) {
        if flow != self.audio {
            return;
        }
        match what {
            Observation::Sent { due, sequence, .. } | Observation::Refused { due, sequence, .. } => {
                assert_eq!(sequence as usize, self.due.len(), "messages are told in their order");
                self.due.push(due);
                self.back.push(None);
            }
            Observation::Received { sequence, .. } => {
                let sequence = sequence as usize;
                self.back[sequence].get_or_insert(at.since(self.due[sequence]));
            }
            _ => {}
        }
    }
}

struct Arrived {
    flows: Vec<FlowId>,
    bytes: Vec<u64>,
    /// What comes later was sent before, and is no rate of this time.
    until: Time,
}

impl Recorder for &mut Arrived {
    fn record(&mut self, at: Time, flow: FlowId, what: Observation) {
        if let (Some(index), Observation::Received { payload, .. }) =
            (self.flows.iter().position(|first| *first == flow), what)
            && at <= self.until
        {
            self.bytes[index] += payload.count();
        }
    }
}

struct GoOn;

impl Supervisor for GoOn {
    fn progress(&mut self, _: Duration) -> Progress {
        Progress::Continue
    }
}

pub fn idle(transport: Transport, blocks: Blocks) -> Configuration {
    Configuration { transport, blocks, load: Load::Idle, marking: Marking::Expedited }
}
