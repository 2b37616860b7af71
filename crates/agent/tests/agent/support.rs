//! Agents in this process, and a controller that does what a test wants.

use std::path::PathBuf;
use std::thread::JoinHandle;

use jiff::Timestamp;
use tempfile::TempDir;
use trunkline_agent::{Agent, Config, Settings, Stop};
use trunkline_control::message::{Chunk, FarEndpoint, Offer, Prepare, Purpose};
use trunkline_control::{
    Connection, Fingerprint, FromAgent, Identity, PartId, Peer, Peers, Refusal, ToAgent, connect,
};
use trunkline_core::{Bytes, Duration, FlowId, Time};
use trunkline_metrics::{Observation, Recorder};

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// An agent in this process. It stops when it is dropped.
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) metrics: Option<std::net::SocketAddr>,
    pub(crate) state: PathBuf,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

/// A test's agents and controllers, with their folders.
pub(crate) struct Ground {
    folder: TempDir,
}

impl Ground {
    pub(crate) fn new() -> Ground {
        Ground { folder: tempfile::tempdir().unwrap() }
    }

    /// The folder of an agent.
    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts an agent at an address of this machine, whose owner has written this.
    pub(crate) fn agent(&self, name: &str, ip: &str, config: &str) -> Host {
        // All agents of the tests are on the loopback interface, to which an agent does not connect by default.
        let here = match config.contains("[controller-default]") {
            true => "",
            false => "\n[controller-default]\nto = [\"127.0.0.0/8\"]\n",
        };
        let text = format!("name = \"{name}\"\nlisten = \"{ip}:0\"\n{config}{here}");
        self.agent_with(Config::parse("agent.toml", &text, "host").unwrap())
    }

    pub(crate) fn agent_with(&self, config: Config) -> Host {
        let (name, state) = (config.name.clone(), self.state(&config.name));
        let agent = Agent::bind(Settings { config, state: state.clone(), log: Box::new(|_| {}) }).unwrap();
        let (address, fingerprint) = (agent.address().to_string(), agent.fingerprint());
        let metrics = agent.metrics_address();
        let stop = Stop::default();
        let of_thread = stop.clone();
        let thread = std::thread::spawn(move || agent.serve(&of_thread).unwrap());
        Host { name, address, fingerprint, metrics, state, stop, thread: Some(thread) }
    }

    /// A controller that these agents know.
    pub(crate) fn controller(&self, name: &str, agents: &[&Host]) -> Desk {
        let identity = Identity::generate().unwrap();
        for agent in agents {
            self.enrol(name, identity.fingerprint(), &agent.name);
        }
        Desk { identity }
    }

    pub(crate) fn enrol(&self, name: &str, fingerprint: Fingerprint, agent: &str) {
        let peers = Peers::open(&self.state(agent).join("controllers")).unwrap();
        peers
            .add(&Peer { name: name.into(), fingerprint, address: None, enrolled: Timestamp::now() })
            .unwrap();
    }
}

impl Host {
    pub(crate) fn stop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// How many parts it keeps.
    pub(crate) fn kept(&self) -> usize {
        std::fs::read_dir(self.state.join("spool")).unwrap().count()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Somebody with a key.
pub(crate) trait Known {
    fn key(&self) -> Fingerprint;
}

impl Known for Host {
    fn key(&self) -> Fingerprint {
        self.fingerprint
    }
}

impl Known for Fingerprint {
    fn key(&self) -> Fingerprint {
        *self
    }
}

/// Who runs experiments.
pub(crate) struct Desk {
    pub(crate) identity: Identity,
}

impl Desk {
    pub(crate) fn connect(&self, agent: &Host) -> Line {
        self.try_connect(&agent.address, &agent.fingerprint).unwrap()
    }

    pub(crate) fn try_connect(
        &self,
        address: &str,
        fingerprint: &Fingerprint,
    ) -> Result<Line, trunkline_control::PeerError> {
        let mut connection = connect(address, &self.identity, fingerprint, PATIENCE)?;
        connection.introduce(Purpose::Control, PATIENCE)?;
        Ok(Line { connection, chunks: Vec::new() })
    }
}

/// A connection with an agent.
pub(crate) struct Line {
    connection: Connection,
    /// That have come.
    pub(crate) chunks: Vec<Chunk>,
}

impl Line {
    pub(crate) fn say(&self, what: ToAgent) {
        self.connection.send(&what).unwrap();
    }

    /// Sends any message.
    pub(crate) fn say_raw(&self, what: &impl trunkline_control::wire::Message) {
        self.connection.send(what).unwrap();
    }

    /// Sends any message; the agent may have closed the connection.
    pub(crate) fn try_say_raw(
        &self,
        what: &impl trunkline_control::wire::Message,
    ) -> Result<(), trunkline_control::PeerError> {
        self.connection.send(what)
    }

    /// The next answer that is neither a chunk nor progress.
    pub(crate) fn hear(&mut self) -> FromAgent {
        loop {
            match self
                .connection
                .receive_within(PATIENCE, "a test waits")
                .unwrap()
                .expect("the agent has left")
            {
                FromAgent::Chunk(chunk) => self.chunks.push(chunk),
                FromAgent::Progress { .. } => {}
                said => return said,
            }
        }
    }

    /// What comes next, whatever it is; `None` if nothing does for so long.
    pub(crate) fn next_within(&mut self, patience: Duration) -> Option<FromAgent> {
        self.connection.receive_within(patience, "a test waits").ok().flatten()
    }

    pub(crate) fn refusal(&mut self) -> Refusal {
        match self.hear() {
            FromAgent::Refused { refusal, .. } => refusal,
            said => panic!("not refused: {said:?}"),
        }
    }

    /// Asks for a far end, and gives where it is.
    pub(crate) fn offer(&mut self, agent: &Host, part: &PartId, near: &impl Known) -> FarEndpoint {
        self.say(ToAgent::Offer(offer(part, near)));
        match self.hear() {
            FromAgent::Offered { token, .. } => {
                FarEndpoint { address: agent.address.clone(), fingerprint: agent.fingerprint, token }
            }
            said => panic!("not offered: {said:?}"),
        }
    }

    /// Prepares a part, and waits until it can begin.
    pub(crate) fn prepare(&mut self, part: &PartId, experiment: &str, far: FarEndpoint) {
        self.say(prepare(part, experiment, far));
        match self.hear() {
            FromAgent::Prepared { .. } => {}
            said => panic!("not prepared: {said:?}"),
        }
    }

    pub(crate) fn start(&mut self, part: &PartId) {
        let at = trunkline_io::clock::raw_now() + 300_000_000;
        self.say(ToAgent::Start { part: part.clone(), at });
        match self.hear() {
            FromAgent::Started { .. } => {}
            said => panic!("not started: {said:?}"),
        }
    }

    pub(crate) fn attach(&self, part: &PartId, from: u64) {
        self.say(ToAgent::Attach { part: part.clone(), from });
    }
}

pub(crate) fn offer(part: &PartId, near: &impl Known) -> Offer {
    Offer {
        part: part.clone(),
        near: "near".to_owned(),
        near_fingerprint: near.key(),
        conversations: 8,
        duration: Duration::from_secs(60),
        rate: None,
        buffers: Bytes(16 << 20),
    }
}

pub(crate) fn prepare(part: &PartId, experiment: &str, far: FarEndpoint) -> ToAgent {
    ToAgent::Prepare(Box::new(Prepare {
        part: part.clone(),
        experiment: experiment.to_owned(),
        files: Default::default(),
        choice: Vec::new(),
        seed: 7,
        flows: vec![0],
        far,
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
    }))
}

pub(crate) fn part(point: u32) -> PartId {
    PartId { run: "0123456789abcdef0123456789abcdef".into(), point, repetition: 0, pair: 0, attempt: 0 }
}

/// An experiment with one flow.
pub(crate) fn experiment(duration: &str, flow: &str) -> String {
    format!(
        "name = \"test\"\nduration = \"{duration}\"\ndrain = \"500 ms\"\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\nbetween = [\"a\", \"b\"]\n\
         rate = \"1 Gbit/s\"\n[flow.f]\nfrom = \"a\"\nto = \"b\"\n{flow}\n"
    )
}

/// Reflected speech: 100 packets a second.
pub(crate) const VOICE: &str =
    "transport = \"udp\"\nreflect = true\nsource = { kind = \"voice\", samples = 80 }";

/// What chunks hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

impl Recorder for Tally {
    fn record(&mut self, _: Time, _: FlowId, what: Observation) {
        match what {
            Observation::Sent { .. } => self.sent += 1,
            Observation::Received { .. } => self.received += 1,
            _ => {}
        }
    }
}

/// Unpacks chunks, which must be without a gap from 0 on.
pub(crate) fn tally(chunks: &[Chunk]) -> Tally {
    let mut tally = Tally::default();
    for (number, chunk) in (0..).zip(chunks) {
        assert_eq!(chunk.number, number);
        trunkline_live::packed::unpack(&chunk.data, &mut tally).unwrap();
    }
    tally
}
