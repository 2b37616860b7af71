//! Agents and controllers as processes of their own, which can be killed, and what a store holds in the end.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests, shared with a bench that uses fewer of them"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use trunkline_agent::controller::Fleet;
use trunkline_agent::{Agent, Config, Settings, Stop};
use trunkline_control::{Identity, Peer, Peers};
use trunkline_core::Duration;
use trunkline_experiment::{Experiment, Files};
use trunkline_live::{FarEnd, LiveOptions};
use trunkline_metrics::Fate;
use trunkline_runner::{DirectoryFiles, Hear, Observer, Outcome, Plan, Request, RunnerError};
use trunkline_store::{Backend, Status, Store, StoredRun, read_trace};

/// What a process of its own is to be, and in which folder.
const ROLE: &str = "TRUNKLINE_TEST_ROLE";
const FOLDER: &str = "TRUNKLINE_TEST_FOLDER";
const LISTEN: &str = "TRUNKLINE_TEST_LISTEN";

pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Is what the environment says, in a process that was started by a [`Ground`]; false in any other.
pub(crate) fn be_what_is_asked() -> bool {
    let (Ok(role), Some(folder)) = (std::env::var(ROLE), std::env::var_os(FOLDER)) else { return false };
    let folder = PathBuf::from(folder);
    match role.as_str() {
        "controller" => {
            let said = match measure(&folder, &Told) {
                Ok(outcome) => format!("ended {:?}", outcome.run.status),
                Err(error) => format!("failed {error}"),
            };
            println!("\n{said}");
        }
        name => {
            let listen = std::env::var(LISTEN).unwrap();
            let here = "[controller-default]\nto = [\"127.0.0.0/8\"]\n";
            let config = format!("name = \"{name}\"\nlisten = \"{listen}\"\n{here}");
            let config = Config::parse("agent.toml", &config, "host").unwrap();
            let log = Box::new(|_: &str| ());
            let agent = Agent::bind(Settings { config, state: folder, log }).unwrap();
            agent.serve(&Stop::default()).unwrap();
        }
    }
    true
}

/// Runs or resumes the experiment of a folder, through the agents that it names.
pub(crate) fn measure(folder: &Path, observer: &dyn Observer) -> Result<Outcome, RunnerError> {
    measure_with(folder, &DirectoryFiles::beside(&folder.join("experiment.toml")), observer)
}

/// Runs the experiment of a folder once more, as another run.
pub(crate) fn measure_anew(folder: &Path) -> Result<Outcome, RunnerError> {
    let files = DirectoryFiles::beside(&folder.join("experiment.toml"));
    run_or_resume(folder, &files, &Warnings::default(), true)
}

/// As [`measure`]; what the experiment names is read from `files`.
pub(crate) fn measure_with(
    folder: &Path,
    files: &dyn Files,
    observer: &dyn Observer,
) -> Result<Outcome, RunnerError> {
    run_or_resume(folder, files, observer, false)
}

fn run_or_resume(
    folder: &Path,
    files: &dyn Files,
    observer: &dyn Observer,
    is_new: bool,
) -> Result<Outcome, RunnerError> {
    let file = folder.join("experiment.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let experiment =
        Experiment::parse(&text, "experiment.toml", files).unwrap_or_else(|problems| panic!("{problems}"));
    let store = Store::open(&folder.join("store")).unwrap();
    let live = LiveOptions::new(FarEnd::Thread);
    let agents = trunkline_agent::controller::agents_of(&experiment)?;
    let identity = Arc::new(Identity::open(&folder.join("identity")).unwrap());
    let known = Peers::open(&folder.join("agents")).unwrap();
    let fleet = match agents.is_empty() {
        true => None,
        false => Some(Fleet::connect(&agents, identity, &known, PATIENCE)?),
    };
    let request = Request {
        experiment: &experiment,
        file: &file,
        backend: Backend::Live,
        jobs: 1,
        live: &live,
        wire: None,
        hear: Hear::nothing(),
        tap: None,
        kernels: None,
        fleet: fleet.as_ref(),
    };
    trunkline_runner::precheck(&request)?;
    let stop = AtomicBool::new(false);
    match store.runs().unwrap().first().filter(|_| !is_new) {
        Some(run) => trunkline_runner::resume(&store, run.id, request, observer, &stop),
        None => trunkline_runner::run(&store, request, observer, &stop),
    }
}

/// The run of a folder's store.
pub(crate) fn stored(folder: &Path) -> StoredRun {
    let store = Store::open(&folder.join("store")).unwrap();
    let run = store.runs().unwrap().first().unwrap().id;
    store.run(run).unwrap()
}

/// Whether the run of a folder's store is there and complete.
pub(crate) fn is_finished(folder: &Path) -> bool {
    let store = Store::open(&folder.join("store")).unwrap();
    store.runs().unwrap().first().is_some_and(|run| run.status == Status::Complete)
}

/// Prints what happens, for whoever has started this process.
struct Told;

impl Observer for Told {
    fn planned(&self, _: &Plan) {
        println!("\nplanned");
    }
    fn advanced(&self, _: Duration) {}
    fn repetition_done(&self) {
        println!("\ndone");
    }
    fn point_done(&self) {}
    fn warning(&self, message: &str) {
        println!("\nwarning {message}");
    }
}

/// Remembers the warnings.
#[derive(Default)]
pub(crate) struct Warnings(pub(crate) Mutex<Vec<String>>);

impl Observer for Warnings {
    fn planned(&self, _: &Plan) {}
    fn advanced(&self, _: Duration) {}
    fn repetition_done(&self) {}
    fn point_done(&self) {}
    fn warning(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

/// A folder with a controller, and agents that know it.
pub(crate) struct Ground {
    folder: tempfile::TempDir,
    /// What makes this program call [`be_what_is_asked`].
    arguments: &'static [&'static str],
}

impl Ground {
    pub(crate) fn new(arguments: &'static [&'static str]) -> Ground {
        Ground { folder: tempfile::tempdir().unwrap(), arguments }
    }

    /// The controller's folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, experiment: &str) {
        std::fs::write(self.folder().join("experiment.toml"), experiment).unwrap();
    }

    /// Starts an agent on an address of this machine, and enrols the controller there.
    pub(crate) fn agent(&self, name: &str, ip: &str) -> AgentProcess {
        let state = self.folder().join(format!("agent-{name}"));
        let ours = Identity::open(&self.folder().join("identity")).unwrap().fingerprint();
        let theirs = Identity::open(&state.join("identity")).unwrap().fingerprint();
        // Free a moment ago.
        let address = TcpListener::bind((ip, 0)).unwrap().local_addr().unwrap();
        let enrolled = jiff::Timestamp::now();
        let controllers = Peers::open(&state.join("controllers")).unwrap();
        controllers.add(&Peer { name: "studio".into(), fingerprint: ours, address: None, enrolled }).unwrap();
        self.enrol(name, theirs, address);
        let mut agent = AgentProcess {
            name: name.to_owned(),
            state,
            address,
            fingerprint: theirs,
            arguments: self.arguments,
            child: None,
        };
        agent.start();
        agent
    }

    /// Lets the controller know an agent by an address.
    pub(crate) fn enrol(&self, name: &str, fingerprint: trunkline_control::Fingerprint, address: SocketAddr) {
        let agents = Peers::open(&self.folder().join("agents")).unwrap();
        let (address, enrolled) = (Some(address.to_string()), jiff::Timestamp::now());
        agents.add(&Peer { name: name.to_owned(), fingerprint, address, enrolled }).unwrap();
    }

    /// Starts a controller that runs or resumes the experiment.
    pub(crate) fn controller(&self) -> ControllerProcess {
        let mut child = start(self.arguments, "controller", self.folder(), None, Stdio::piped());
        let output = child.stdout.take().unwrap();
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let heard = Arc::clone(&lines);
        let listener = std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                heard.lock().unwrap().push(line);
            }
        });
        ControllerProcess { child, lines, listener: Some(listener) }
    }
}

fn start(arguments: &[&str], role: &str, folder: &Path, listen: Option<SocketAddr>, output: Stdio) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments).env(ROLE, role).env(FOLDER, folder).stdout(output);
    if let Some(listen) = listen {
        command.env(LISTEN, listen.to_string());
    }
    command.spawn().unwrap()
}

/// An agent in a process of its own, which is killed when this is dropped.
pub(crate) struct AgentProcess {
    name: String,
    state: PathBuf,
    pub(crate) address: SocketAddr,
    pub(crate) fingerprint: trunkline_control::Fingerprint,
    arguments: &'static [&'static str],
    child: Option<Child>,
}

impl AgentProcess {
    /// Starts it, and waits until it listens.
    pub(crate) fn start(&mut self) {
        self.child = Some(start(self.arguments, &self.name, &self.state, Some(self.address), Stdio::null()));
        for _ in 0..1000 {
            if TcpStream::connect(self.address).is_ok() {
                return;
            }
            std::thread::sleep(core::time::Duration::from_millis(10));
        }
        panic!("agent {} does not listen", self.name);
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Copies the folder in which it keeps parts.
    pub(crate) fn copy_spool(&self, to: &Path) {
        let copied = Command::new("cp").arg("-r").arg(self.state.join("spool")).arg(to).status().unwrap();
        assert!(copied.success());
    }

    /// Puts a copy of that folder in its place.
    pub(crate) fn take_spool(&self, from: &Path) {
        std::fs::remove_dir_all(self.state.join("spool")).unwrap();
        std::fs::rename(from, self.state.join("spool")).unwrap();
    }

    /// How many parts it keeps.
    pub(crate) fn kept(&self) -> usize {
        std::fs::read_dir(self.state.join("spool")).map_or(0, Iterator::count)
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A controller in a process of its own, which is killed when this is dropped.
pub(crate) struct ControllerProcess {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    listener: Option<JoinHandle<()>>,
}

impl ControllerProcess {
    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// How many lines that begin so it has said.
    pub(crate) fn said(&self, begin: &str) -> usize {
        self.lines.lock().unwrap().iter().filter(|line| line.starts_with(begin)).count()
    }

    /// `kill -9`, if it has not ended; all that it has said.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.end();
        core::mem::take(&mut *self.lines.lock().unwrap())
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

impl Drop for ControllerProcess {
    fn drop(&mut self) {
        self.end();
    }
}

/// Stands between a controller and an agent, and can cut them off from each other.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    pub(crate) fn to(agent: SocketAddr) -> Relay {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let streams = Arc::<Mutex<Vec<TcpStream>>>::default();
        let known = Arc::clone(&streams);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(agent) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || pass_on(from, to));
                }
                known.lock().unwrap().extend([near, far]);
            }
        });
        Relay { address, streams }
    }

    /// Ends all connections; new ones are possible.
    pub(crate) fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..length]).is_err() {
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// What a store holds of a run, against what was to be measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) points: usize,
    /// Repetitions that are there and whole, each with every message that was due in every flow.
    pub(crate) whole: usize,
    pub(crate) records: usize,
    /// Messages of which there is no record though a later one of their channel has one, or that are lost.
    pub(crate) lost: usize,
    /// Records of messages that have one already.
    pub(crate) doubled: usize,
}

/// Counts the records of a run. Its flows send `messages` in each channel.
pub(crate) fn account(run: &StoredRun, messages: u32) -> Account {
    let mut account = Account { points: run.points.len(), ..Account::default() };
    for repetition in run.points.iter().flat_map(|point| &point.repetitions) {
        let mut is_whole = !repetition.partial && repetition.summary.is_some();
        for (_, trace) in &repetition.traces {
            let mut seen = BTreeSet::new();
            let mut channels: BTreeMap<(u32, u16), u32> = BTreeMap::new();
            read_trace(trace, &mut |record| {
                account.records += 1;
                if record.fate == Fate::Duplicate
                    || !seen.insert((record.member, record.channel, record.sequence))
                {
                    account.doubled += 1;
                }
                account.lost += usize::from(record.fate == Fate::Lost);
                let last = channels.entry((record.member, record.channel)).or_default();
                *last = (*last).max(record.sequence + 1);
            })
            .unwrap();
            let expected: usize = channels.values().map(|last| *last as usize).sum();
            account.lost += expected.saturating_sub(seen.len());
            is_whole &= channels.values().all(|last| *last == messages) && !channels.is_empty();
        }
        account.whole += usize::from(is_whole);
    }
    account
}

/// An experiment with these keys between hosts with these agents.
pub(crate) fn experiment(keys: &str, hosts: &[(&str, Option<String>)], flows: &str) -> String {
    let mut text = format!("name = \"test\"\n{keys}\n");
    for (name, agent) in hosts {
        text.push_str(&format!("[hosts.{name}]\n"));
        if let Some(agent) = agent {
            text.push_str(&format!("agent = \"{agent}\"\n"));
        }
    }
    for (name, a, b) in [("ab", "a", "b"), ("ac", "a", "c"), ("bc", "b", "c")] {
        if hosts.iter().any(|host| host.0 == a) && hosts.iter().any(|host| host.0 == b) {
            text.push_str(&format!("[link.{name}]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"100 Mbit/s\"\n"));
        }
    }
    text + flows
}

/// One flow there and one reflected back, in so many points.
pub(crate) fn short(points: usize, duration: &str, a: &str, b: &str) -> String {
    let delays: Vec<String> = (1..=points).map(|delay| format!("\"{delay} ms\"")).collect();
    let flows = format!(
        "[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = {{ kind = \"voice\", samples = 80 }}\n\
         [flow.echo]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nreflect = true\n\
         source = {{ kind = \"voice\", samples = 80 }}\n\
         [sweep]\n\"link.ab.delay\" = [{}]\n",
        delays.join(", ")
    );
    let hosts = [("a", Some(a.to_owned())), ("b", Some(b.to_owned()))];
    experiment(&format!("duration = \"{duration}\"\ndrain = \"300 ms\""), &hosts, &flows)
}

/// Lets so much time pass.
pub(crate) fn pause(milliseconds: u64) {
    std::thread::sleep(core::time::Duration::from_millis(milliseconds));
}
