//! Rounds of work and faults.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::faults::{request, strangers};
use super::place::{Monitored, Place, WIRE, has_ended, signal, ticks};

/// An operation that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// A panic of Rust.
const PANIC: i32 = 101;

/// The simulation that the server measures again and again.
const SIMULATION: &str = "name = \"short\"\nduration = \"2 s\"\nrepetitions = REPETITIONS\n[hosts]\na = {}\nb = {}\n\
    [link.l]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\nloss = \"1 %\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\n\
    transport = \"udp\"\nsource = { kind = \"voice\", samples = 80 }\n[sweep]\n\"flow.voice.count\" = [1, 2]\n";

/// A flow between agents.
const VOICE: &str = "source = { kind = \"voice\", samples = 160 }";

/// The load of one place, and how its operations ended.
pub(super) struct Load {
    monitored: Vec<Monitored>,
    round: usize,
    began: Instant,
    /// Processor time that may be used, in percent of a core.
    share: u64,
    ticks_before: u64,
    is_over: Arc<AtomicBool>,
    /// By operation: as expected, and not.
    counts: BTreeMap<&'static str, (u64, u64)>,
    problems: Vec<String>,
    half_open: Vec<TcpStream>,
}

impl Load {
    pub(super) fn new(place: &Place, share: u64, is_over: Arc<AtomicBool>) -> Load {
        Load {
            monitored: place.monitored().collect(),
            round: 0,
            began: Instant::now(),
            share,
            ticks_before: 0,
            is_over,
            counts: BTreeMap::new(),
            problems: Vec::new(),
            half_open: Vec::new(),
        }
    }

    pub(super) fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    /// Fills the memories that have a limit which the rounds of the warm-up would not reach: the server remembers 200 jobs, and
    /// the runs of a round are four.
    pub(super) fn fill(&mut self, place: &Place) {
        for _ in 0..50 {
            self.server_runs(&place.serve.1);
        }
    }

    /// One round: each server is used, and meets another fault than in the round before.
    pub(super) fn round(&mut self, place: &mut Place) {
        let ticks_before = self.ticks();
        if self.round == 0 {
            (self.ticks_before, self.began) = (ticks_before, Instant::now());
        }
        self.half_open.clear();
        for address in [&place.berlin.address, &place.ottawa.address, &place.reflect.1, &place.serve.1] {
            self.half_open.extend(strangers(address));
        }
        self.reflector(place);
        self.server(place);
        self.wire(place);
        match self.round % 6 {
            0 => self.quota(place),
            1 => self.run_agents(place, "runs", |_, _| Ends::No),
            2 => self.run_agents(place, "runs whose connection is cut", |place, _| {
                place.proxy.cut();
                Ends::No
            }),
            3 => self.run_agents(place, "runs stopped and resumed", |_, run| {
                signal(run, "INT");
                Ends::Yes
            }),
            4 => self.run_agents(place, "runs killed and resumed", |_, run| {
                signal(run, "KILL");
                Ends::Yes
            }),
            _ => self.killed_agent(place),
        }
        // Stores stay small.
        self.must(place, "pruning", &["runs", "prune", "--within", "0 s"]);
        self.round += 1;
        self.pause();
    }

    /// Waits without any load.
    pub(super) fn rest(&mut self, time: Duration) {
        self.half_open.clear();
        let began = Instant::now();
        while self.goes_on() && began.elapsed() < time {
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Waits until the processor time used so far is within the share.
    fn pause(&self) {
        let used = self.ticks() - self.ticks_before;
        // A hundredth of a second is 10 ms.
        let wanted = Duration::from_millis(used * 10 * 100 / self.share);
        let pause = wanted.saturating_sub(self.began.elapsed()).min(MAX_PAUSE);
        let began = Instant::now();
        while self.goes_on() && began.elapsed() < pause {
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn ticks(&self) -> u64 {
        ticks("self") + self.monitored.iter().map(Monitored::ticks).sum::<u64>()
    }

    fn note(&mut self, operation: &'static str, problem: Option<String>) {
        let (good, bad) = self.counts.entry(operation).or_default();
        if let Some(problem) = problem {
            *bad += 1;
            // Errors come first, and a table may follow.
            let problem: String = problem.chars().take(1000).collect();
            let text = format!("round {}: {operation}: {problem}", self.round);
            anstream::println!("{text}");
            self.problems.push(text);
        } else {
            *good += 1;
        }
    }

    /// Prints how the operations ended, and returns what was not as expected.
    pub(super) fn table(&mut self) -> Vec<String> {
        let (used, time) =
            ((self.ticks() - self.ticks_before) as f64 / 100.0, self.began.elapsed().as_secs_f64());
        anstream::println!(
            "\n{} rounds in {time:.0} s, {:.0} % of a core; operations:",
            self.round,
            100.0 * used / time
        );
        for (operation, (good, bad)) in &self.counts {
            anstream::println!("{operation:<44} {good:>6} as expected {bad:>4} not");
        }
        std::mem::take(&mut self.problems)
    }

    /// Runs a command that must succeed.
    fn must(&mut self, place: &Place, operation: &'static str, arguments: &[&str]) {
        let problem = finished(place, arguments).and_then(|(status, text)| {
            if status.success() { Ok(()) } else { Err(format!("{status}: {text}")) }
        });
        self.note(operation, problem.err());
    }

    /// Kills a command while it works.
    fn cut_short(&mut self, place: &Place, operation: &'static str, arguments: &[&str], after: Duration) {
        let child = place.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let problem = match child {
            Ok(mut child) => {
                thread::sleep(after);
                signal(&child, "KILL");
                let has_ended = has_ended(&mut child, PATIENCE);
                (!has_ended).then(|| "it does not end".to_owned())
            }
            Err(error) => Some(error.to_string()),
        };
        self.note(operation, problem);
    }

    fn reflector(&mut self, place: &Place) {
        let probe =
            ["probe", &place.reflect.1, "--budget", "5 s", "--no-load", "--transports", "udp,tcp,sctp,quic"];
        self.must(place, "probes", &probe);
        self.cut_short(place, "killed probes", &probe, Duration::from_millis(700));
    }

    fn wire(&mut self, place: &Place) {
        let exec = ["wire", "exec", "--wire", WIRE, "client", "--"];
        let program = place.program().to_string_lossy().into_owned();
        let probe = [&program, "probe", "server", "--budget", "5 s", "--no-load", "--transports", "udp,tcp"];
        let probe = [&exec[..], &probe].concat();
        self.must(place, "probes over the wire", &probe);
        self.cut_short(place, "killed probes over the wire", &probe, Duration::from_millis(700));
        for (operation, setting) in [
            ("changes of a link", "link.rate=2 Mbit/s"),
            ("links down", "link.up=false"),
            ("links up", "link.up=true"),
            ("changes of a link", "link.rate=10 Mbit/s"),
        ] {
            self.must(place, operation, &["wire", "set", "--wire", WIRE, setting]);
        }
        self.must(place, "counters of the wire", &["wire", "top", "--wire", WIRE, "--json"]);
        let problem = self.wire_noise(place);
        self.note("noise at the wire's socket", problem.err());
    }

    fn wire_noise(&mut self, place: &Place) -> Result<(), String> {
        let (_, status) = finished(place, &["wire", "status", "--json"])?;
        let status: Value = serde_json::from_str(&status).map_err(|e| format!("{e}: {status}"))?;
        let socket = find_text(&status, "socket").ok_or("a wire that runs has no socket")?;
        for words in
            [&b"{\"set\":"[..], b"\xff\xff\n", b"GET /metrics HTTP/1.1\r\n\r\n", b"{\"set\":{\"key\":1}}\n"]
        {
            let mut stream = UnixStream::connect(&socket).map_err(|e| format!("{socket}: {e}"))?;
            // That it closes is right.
            let _ = stream.write_all(words);
        }
        Ok(())
    }

    /// The page's API: a run to its end, one that is stopped, resumed, stopped and removed, and requests that are wrong.
    fn server(&mut self, place: &Place) {
        let address = &place.serve.1;
        self.server_runs(address);
        let long = "x".repeat(9 << 20);
        for (path, body) in [
            ("/check", "{"),
            ("/check", "{\"text\": \"[a\"}"),
            ("/runs", "[]"),
            ("/runs/import", "x"),
            ("/drawing", &long),
        ] {
            let problem = match request(address, "POST", path, body) {
                Ok((200 | 400..=499, _)) => None,
                Ok((status, body)) => Some(format!("{path}: {status} {body}")),
                Err(problem) => Some(problem),
            };
            self.note("wrong requests", problem);
        }
        // Watchers that read nothing and leave.
        for _ in 0..5 {
            if let Ok(mut stream) = TcpStream::connect(address) {
                let _ = write!(stream, "GET /api/v1/events HTTP/1.1\r\nhost: {address}\r\n\r\n");
                let _ = stream.read(&mut [0; 16]);
            }
        }
    }

    fn server_runs(&mut self, address: &str) {
        self.note("runs of the server", self.served_run(address).err());
        self.note("stopped and resumed runs of the server", self.stopped_run(address).err());
    }

    fn served_run(&self, address: &str) -> Result<(), String> {
        let (job, run) = begin(address, 2)?;
        wait(address, &job)?;
        for path in ["json", "report", "figures", "csv", "export"] {
            let (status, body) = request(address, "GET", &format!("/runs/{run}/{path}"), "")?;
            if status != 200 {
                return Err(format!("{path}: {status} {body}"));
            }
        }
        remove(address, &run)
    }

    fn stopped_run(&self, address: &str) -> Result<(), String> {
        let (mut job, run) = begin(address, 1000)?;
        for _ in 0..2 {
            thread::sleep(Duration::from_millis(500));
            request(address, "POST", &format!("/jobs/{job}/stop"), "{}")?;
            wait(address, &job)?;
            let (status, body) = request(address, "POST", &format!("/runs/{run}/resume"), "{}")?;
            let resumed: Value = serde_json::from_str(&body).map_err(|e| format!("{status} {body}: {e}"))?;
            resumed["job"].as_str().ok_or_else(|| format!("{status} {body}"))?.clone_into(&mut job);
        }
        request(address, "POST", &format!("/jobs/{job}/stop"), "{}")?;
        wait(address, &job)?;
        remove(address, &run)
    }

    /// A run from berlin to ottawa, in the midst of which something happens; if that ends it, it is resumed.
    fn run_agents(
        &mut self,
        place: &mut Place,
        operation: &'static str,
        happens: fn(&mut Place, &Child) -> Ends,
    ) {
        let text = agents(place, &place.ottawa.address, VOICE);
        let problem = self.agents_with(place, &text, happens);
        self.note(operation, problem.err());
    }

    fn agents_with(
        &mut self,
        place: &mut Place,
        text: &str,
        happens: fn(&mut Place, &Child) -> Ends,
    ) -> Result<(), String> {
        fs::write(place.path("agents.toml"), text).map_err(|e| format!("agents.toml: {e}"))?;
        let mut command = place.command(&["run", "agents.toml", "--on", "live", "--no-report"]);
        let log = fs::File::create(place.path("run.log")).map_err(|e| format!("run.log: {e}"))?;
        let mut child = command.stdout(Stdio::null()).stderr(log).spawn().map_err(|e| e.to_string())?;
        // Connecting takes less than a second, and each of the two repetitions four and the wait for late packets.
        thread::sleep(Duration::from_secs(3));
        let ends = happens(place, &child);
        let status = ended(&mut child)?;
        let said = fs::read_to_string(place.path("run.log")).unwrap_or_default();
        match ends {
            Ends::No if !status.success() => return Err(format!("{status}: {said}")),
            Ends::No => return Ok(()),
            Ends::Perhaps if status.success() => return Ok(()),
            Ends::With(word) if status.code() == Some(1) && said.contains(word) => return Ok(()),
            Ends::With(word) => return Err(format!("{status}, and no `{word}`: {said}")),
            Ends::Perhaps | Ends::Yes => {}
        }
        if status.success() || status.code() == Some(PANIC) {
            return Err(format!("{status}: {said}"));
        }
        let resumed = finished(place, &["run", "--resume", "latest", "--no-report"])?;
        if resumed.0.success() { Ok(()) } else { Err(format!("resumed: {}: {}", resumed.0, resumed.1)) }
    }

    /// A run whose controller does not fetch its records, which do not fit into what the owner allows.
    fn quota(&mut self, place: &mut Place) {
        let text =
            agents(place, &place.ottawa.address, "count = 4\nsource = { kind = \"voice\", samples = 8 }");
        let problem = self.agents_with(place, &text, |_, run| {
            signal(run, "STOP");
            thread::sleep(Duration::from_secs(5));
            signal(run, "CONT");
            Ends::With("disk")
        });
        self.note("runs that reach the disk limit", problem.err());
    }

    /// A run from berlin to an agent that is killed in its midst and started again.
    fn killed_agent(&mut self, place: &mut Place) {
        let text = agents(place, &place.halifax.address, VOICE);
        let problem = self.agents_with(place, &text, |place, _| {
            // If it does not start again, the run will say so.
            let _ = place.kill_halifax(Duration::from_secs(2));
            Ends::Perhaps
        });
        self.note("runs with an agent that is killed", problem.err());
    }
}

/// The end of a run after a fault.
enum Ends {
    No,
    Perhaps,
    Yes,
    /// It fails with this word, and cannot be resumed.
    With(&'static str),
}

/// Two repetitions between berlin and another agent over the kernel's transports and our own.
fn agents(place: &Place, far: &str, voice: &str) -> String {
    let mut text = format!(
        "name = \"agents\"\nduration = \"4 s\"\nrepetitions = 2\n[hosts]\na = {{ agent = \"{}\" }}\nb = {{ agent = \
         \"{far}\" }}\n[link.l]\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\n",
        place.proxy.address
    );
    for transport in ["udp", "tcp", "sctp", "quic"] {
        text += &format!(
            "[flow.{transport}]\nfrom = \"a\"\nto = \"b\"\ntransport = \"{transport}\"\nreflect = true\n{voice}\n"
        );
    }
    text
}

/// Runs a command to its end, and returns its status and what it printed.
fn finished(place: &Place, arguments: &[&str]) -> Result<(ExitStatus, String), String> {
    let path = place.path("command.log");
    let log = || fs::File::options().create(true).append(true).open(&path).map_err(|e| e.to_string());
    // Whoever is killed may have children that write into it for a moment.
    let _ = fs::remove_file(&path);
    let mut command = place.command(arguments);
    let mut child = command.stdout(log()?).stderr(log()?).spawn().map_err(|e| e.to_string())?;
    let status = ended(&mut child)?;
    Ok((status, fs::read_to_string(&path).unwrap_or_default()))
}

/// Waits for the end of a process, and kills it where it does not come.
fn ended(child: &mut Child) -> Result<ExitStatus, String> {
    if !has_ended(child, PATIENCE) {
        signal(child, "KILL");
        // Its status is that of the signal.
        let _ = child.wait();
        return Err(format!("it did not end within {} s", PATIENCE.as_secs()));
    }
    child.wait().map_err(|e| e.to_string())
}

/// Begins a run of the server, and returns its job and its number.
fn begin(address: &str, repetitions: u32) -> Result<(String, String), String> {
    let text = SIMULATION.replace("REPETITIONS", &repetitions.to_string());
    let (status, body) =
        request(address, "POST", "/runs", &json!({ "text": text, "backend": "sim" }).to_string())?;
    let run: Value = serde_json::from_str(&body).map_err(|e| format!("{status} {body}: {e}"))?;
    let job = run["job"].as_str().ok_or_else(|| format!("{status} {body}"))?;
    Ok((job.to_owned(), run["run"].to_string()))
}

/// Waits for the end of a job.
fn wait(address: &str, job: &str) -> Result<(), String> {
    let began = Instant::now();
    loop {
        let (status, body) = request(address, "GET", &format!("/jobs/{job}"), "")?;
        let state: Value = serde_json::from_str(&body).map_err(|e| format!("{status} {body}: {e}"))?;
        match state["state"].as_str() {
            Some("done" | "stopped") => return Ok(()),
            Some("failed") => return Err(body),
            _ if began.elapsed() > PATIENCE => return Err(format!("the job does not end: {body}")),
            _ => thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn remove(address: &str, run: &str) -> Result<(), String> {
    match request(address, "DELETE", &format!("/runs/{run}"), "")? {
        (200 | 204, _) => Ok(()),
        (status, body) => Err(format!("{status} {body}")),
    }
}

/// The first text of this name in a value.
fn find_text(value: &Value, name: &str) -> Option<String> {
    match value {
        Value::Object(fields) => {
            let own = fields.get(name).and_then(Value::as_str).map(str::to_owned);
            own.or_else(|| fields.values().find_map(|value| find_text(value, name)))
        }
        Value::Array(values) => values.iter().find_map(|value| find_text(value, name)),
        _ => None,
    }
}
