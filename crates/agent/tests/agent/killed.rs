//! Agents in processes of their own: killed, in want of memory, and without root's rights.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use trunkline_agent::{Agent, Config, Ports, Settings, Stop, privileges};
use trunkline_control::clock::TimeRequest;
use trunkline_control::facts::PartState;
use trunkline_control::{FromAgent, Identity, RefusalKind, ToAgent};
use trunkline_core::{Bytes, Duration, Time};
use trunkline_testkit::skips::skip;

use crate::support::{Desk, Ground, Line, PATIENCE, VOICE, experiment, part, tally};

/// Where the agent of such a process keeps its state, and as whom it runs.
const STATE: &str = "TRUNKLINE_TEST_STATE";
const USER: &str = "TRUNKLINE_TEST_USER";
/// In bytes.
const MEMORY: &str = "TRUNKLINE_TEST_MEMORY";

/// An agent in a process of its own, which is killed when this is dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: String,
    pub(crate) fingerprint: trunkline_control::Fingerprint,
}

impl Process {
    fn start(state: &Path, user: Option<&str>) -> Process {
        Process::start_with(state, user, Bytes(512 << 20))
    }

    /// With an owner who limits its memory.
    pub(crate) fn start_with(state: &Path, user: Option<&str>, memory: Bytes) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([
            "--exact",
            "killed::as_a_process_of_its_own",
            "--nocapture",
            "--ignored",
            "--test-threads=1",
        ]);
        command.env(MEMORY, memory.count().to_string());
        command.env(STATE, state).stdout(Stdio::piped()).stderr(Stdio::null());
        user.map(|user| command.env(USER, user));
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (mut address, mut fingerprint) = (None, None);
        for line in lines {
            let line = line.unwrap();
            // The harness has written the name of the test on the same line.
            if let Some((_, rest)) = line.split_once("agent at ") {
                let (at, key) = rest.split_once(" is ").unwrap();
                (address, fingerprint) = (Some(at.to_owned()), Some(key.parse().unwrap()));
                break;
            }
        }
        let (address, fingerprint) = (address.expect("it starts"), fingerprint.expect("it has a key"));
        Process { child, address, fingerprint }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn connect(&self, desk: &Desk) -> Line {
        desk.try_connect(&self.address, &self.fingerprint).unwrap()
    }

    fn status(&self, key: &str) -> String {
        field(&std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap(), key)
    }

    /// What the kernel says of one of the agent's own threads: the harness has others beside it.
    fn of_keeper(&self) -> String {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let mut texts = tasks
            .map(|task| std::fs::read_to_string(task.unwrap().path().join("status")).unwrap_or_default());
        texts.find(|text| field(text, "Name") == "keeper").expect("an agent keeps house")
    }
}

fn field(status: &str, key: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "started by the other tests of this file"]
fn as_a_process_of_its_own() {
    let Some(state) = std::env::var_os(STATE) else { return };
    let mut config = Config::with_name("near");
    config.listen = "127.0.0.2:0".parse().unwrap();
    let memory = Bytes(std::env::var(MEMORY).unwrap().parse().unwrap());
    config.limits.memory = Some(memory);
    config.others.to = vec!["127.0.0.0/8".parse().unwrap()];
    privileges::limit_memory(memory).unwrap();
    let state = std::path::PathBuf::from(state);
    let ports = Ports::bind(&config).unwrap();
    if let Ok(user) = std::env::var(USER) {
        privileges::become_user(&user, &state).unwrap();
    }
    let settings = Settings { config, state, log: Box::new(|line| eprintln!("{line}")) };
    let agent = Agent::open(settings, ports).unwrap();
    println!("agent at {} is {}", agent.address(), agent.fingerprint());
    agent.serve(&Stop::default()).unwrap();
}

#[test]
fn what_a_killed_agent_had_recorded_is_collected_from_the_next() {
    let ground = Ground::new();
    let far = ground.agent("far", "127.0.0.3", "");
    let state = ground.state("near");
    let mut process = Process::start(&state, None);
    let desk = ground.controller("studio", &[&far]);
    ground.enrol("studio", desk.identity.fingerprint(), "near");
    let mut line = process.connect(&desk);
    let endpoint = desk.connect(&far).offer(&far, &part(0), &process.fingerprint);
    line.prepare(&part(0), &experiment("50 s", VOICE), endpoint);
    line.attach(&part(0), 0);
    line.start(&part(0));
    while line.chunks.len() < 5 {
        match line.next_within(PATIENCE).unwrap() {
            FromAgent::Chunk(chunk) => line.chunks.push(chunk),
            FromAgent::Progress { .. } => {}
            said => panic!("{said:?}"),
        }
    }
    let seen = std::mem::take(&mut line.chunks);
    process.kill();

    let process = Process::start(&state, None);
    let mut line = process.connect(&desk);
    line.say(ToAgent::Parts);
    let FromAgent::Parts(parts) = line.hear() else { panic!("no parts") };
    assert_eq!((parts.len(), parts[0].state), (1, PartState::Interrupted));
    assert!(parts[0].chunks >= seen.len() as u64);
    // Whoever was attached goes on behind what it has, and whoever was not has all of it.
    line.attach(&part(0), seen.len() as u64);
    match line.hear() {
        FromAgent::Failed { refusal, chunks, .. } => {
            assert_eq!(refusal.kind, RefusalKind::Environment);
            assert!(
                refusal.why.starts_with("the agent on near was stopped during the measurement; "),
                "{}",
                refusal.why
            );
            assert_eq!(chunks, parts[0].chunks);
        }
        said => panic!("{said:?}"),
    }
    let rest = std::mem::take(&mut line.chunks);
    line.attach(&part(0), 0);
    assert!(matches!(line.hear(), FromAgent::Failed { .. }));
    let both: Vec<_> = seen.into_iter().chain(rest).collect();
    assert_eq!(both, line.chunks);
    assert!(tally(&both).sent > 0);
}

#[test]
fn two_hundred_idle_controllers_take_little_memory() {
    let ground = Ground::new();
    let state = ground.state("near");
    let process = Process::start(&state, None);
    let desks: Vec<Desk> = (0..10).map(|_| Desk { identity: Identity::generate().unwrap() }).collect();
    for (number, desk) in desks.iter().enumerate() {
        ground.enrol(&format!("studio-{number}"), desk.identity.fingerprint(), "near");
    }
    let mut lines: Vec<Line> = (0..200).map(|number| process.connect(&desks[number % 10])).collect();
    for line in &mut lines {
        let request = TimeRequest { sent: Time::from_nanos(1) };
        line.say(ToAgent::Time(request));
        assert!(matches!(line.hear(), FromAgent::Time(reply) if reply.sent == request.sent));
    }
    let resident = process.status("VmRSS");
    let kib: u64 = resident.split(' ').next().unwrap().parse().unwrap();
    println!("200 control connections: {kib} KiB resident");
    assert!(kib < 100 << 10, "{resident}");
    lines[0].say(ToAgent::Status);
    let FromAgent::Status(status) = lines[0].hear() else { panic!("no status") };
    assert_eq!(status.sessions, 20, "its own");
    assert!(lines[1].next_within(Duration::from_millis(1)).is_none());
}

#[test]
fn an_agent_that_root_has_started_keeps_only_the_rights_that_it_needs() {
    if !nix::unistd::Uid::effective().is_root() {
        return skip("only root can become another user");
    }
    let Ok(Some(user)) = nix::unistd::User::from_name("nobody") else {
        return skip("there is no user `nobody`");
    };
    let ground = Ground::new();
    // The folder above is this test's alone.
    open_to_all(ground.state("near").parent().unwrap());
    let state = ground.state("near");
    let process = Process::start(&state, Some("nobody"));
    let id = user.uid.as_raw().to_string();
    assert_eq!(process.status("Uid").split_whitespace().collect::<Vec<_>>(), [&id; 4]);
    // It answers: so its threads are there.
    let identity = Identity::generate().unwrap();
    ground.enrol("studio", identity.fingerprint(), "near");
    give(&state, &user);
    let mut line = process.connect(&Desk { identity });
    line.say(ToAgent::Facts);
    let FromAgent::Facts(facts) = line.hear() else { panic!("no facts") };
    assert_eq!(facts.name, "near");
    let keeper = process.of_keeper();
    let raw_and_nice: u64 = 1 << 13 | 1 << 23;
    for set in ["CapEff", "CapPrm"] {
        let rights = u64::from_str_radix(&field(&keeper, set), 16).unwrap();
        assert_eq!(rights & !raw_and_nice, 0, "{set} {rights:x}");
    }
    for (key, value) in [("CapInh", "0000000000000000"), ("CapAmb", "0000000000000000"), ("NoNewPrivs", "1")]
    {
        assert_eq!(field(&keeper, key), value, "{key}");
    }
    assert_eq!(
        facts.features.contains("raw"),
        u64::from_str_radix(&field(&keeper, "CapEff"), 16).unwrap() & 1 << 13 != 0
    );
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn give(folder: &Path, user: &nix::unistd::User) {
    for entry in std::fs::read_dir(folder.join("controllers")).unwrap() {
        std::os::unix::fs::lchown(entry.unwrap().path(), Some(user.uid.as_raw()), Some(user.gid.as_raw()))
            .unwrap();
    }
}
