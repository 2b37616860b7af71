//! Agents from the command line: two commands to enrol, and a run between two hosts.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests are tests, and say why they skip"
)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use support::Bench;
use trunkline_testkit::programs::is_installed;
use trunkline_testkit::real_time::in_real_time;
use trunkline_testkit::skips::{Missing, skip, skip_without};

/// The program with a home of its own.
fn command(bench: &Bench, arguments: &[&str]) -> Command {
    let mut command = bench.command(arguments);
    command.env("XDG_CONFIG_HOME", bench.path("config")).env("XDG_STATE_HOME", bench.path("state"));
    command
}

fn run(bench: &Bench, arguments: &[&str]) -> support::Ran {
    support::Ran::from(command(bench, arguments).output().unwrap())
}

/// An agent, which is killed when this is dropped.
struct Agent {
    child: Child,
    state: String,
    log: BufReader<std::process::ChildStderr>,
}

impl Agent {
    fn start(bench: &Bench, name: &str, ip: &str) -> Agent {
        Agent::start_with(bench, name, &format!("{ip}:0"), "[limits]\nmemory = \"1 GiB\"\n", |agent| agent)
    }

    /// One whose owner has written this, and that is started in a way of its own.
    fn start_with(
        bench: &Bench,
        name: &str,
        listen: &str,
        config: &str,
        how: impl FnOnce(Command) -> Command,
    ) -> Agent {
        let here = "[controller-default]\nto = [\"127.0.0.0/8\"]\n";
        let text = format!("name = \"{name}\"\nlisten = \"{listen}\"\n{config}{here}");
        bench.write(&format!("{name}.toml"), text);
        let (config, state) = (format!("{name}.toml"), format!("{name}.state"));
        let agent = command(bench, &["agent", "--config", &config, "--state", &state]);
        let mut child = how(agent).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        // What an earlier process has left is told before.
        let (mut said, ip) = (String::new(), listen.rsplit_once(':').unwrap().0);
        while !said.contains(&format!("{name} listens at {ip}:")) {
            assert!(log.read_line(&mut said).unwrap() > 0, "{said}");
        }
        Agent { child, state, log }
    }

    /// Tells it to stop, as a service manager would, and gives its last words.
    fn stop(mut self) -> String {
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(self.child.wait().unwrap().success());
        let lines: Vec<String> = self.log.by_ref().lines().map_while(Result::ok).collect();
        lines.last().cloned().unwrap_or_default()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Does what `agent pair` prints.
fn pair(bench: &Bench, agent: &Agent) -> String {
    let printed = run(bench, &["agent", "pair", "--state", &agent.state]).ok().out;
    let line = printed.lines().find_map(|line| line.trim().strip_prefix("trunkline ")).unwrap().to_owned();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[..2], ["agent", "enrol"], "{line}");
    let enrolled = run(bench, &[&words[..], &["--name", "studio"]].concat()).ok().out;
    assert!(enrolled.contains("knows this controller as studio"), "{enrolled}");
    // Once.
    let again = run(bench, &words);
    assert_eq!(again.code, Some(2), "{}", again.err);
    words[2].to_owned()
}

#[test]
fn two_commands_enrol_and_then_an_experiment_runs_between_hosts() {
    let bench = Bench::new();
    let (near, far) =
        (Agent::start(&bench, "berlin", "127.0.0.2"), Agent::start(&bench, "ottawa", "127.0.0.3"));
    let (at_near, at_far) = (pair(&bench, &near), pair(&bench, &far));

    let status = run(&bench, &["agent", "status", "berlin"]).ok().out;
    assert!(status.starts_with(&format!("berlin at {at_near}, Trunkline ")), "{status}");
    assert!(status.contains("studio") && status.contains("connected"), "{status}");
    let json = run(&bench, &["agent", "status", "--json", "--state", &far.state]).ok().out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["status"]["name"], "ottawa");
    assert_eq!(json["status"]["controllers"][0]["name"], "studio");
    let listed = run(&bench, &["agent", "list", "--state", &far.state]).ok().out;
    assert!(listed.contains("berlin") && listed.contains("ottawa") && listed.contains("studio"), "{listed}");

    let text = format!(
        "name = \"agents\"\nduration = \"1 s\"\n[hosts]\na = {{ agent = \"{at_near}\" }}\nb = {{ agent = \"{at_far}\" }}\n\
         [link.l]\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\n\
         transport = \"udp\"\nsource = {{ kind = \"voice\", samples = 80 }}\n"
    );
    bench.write("agents.toml", text.clone());
    let ran = run(&bench, &["run", "agents.toml", "--on", "live", "--no-report"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);

    // A search goes through them too.
    let limits = "[limits]\n\"flow.voice.loss\" = \"< 50 %\"\n";
    bench.write(
        "plan.toml",
        format!("{}{limits}", text.replace("duration = \"1 s\"", "duration = \"200 ms\"")),
    );
    let (on, search) =
        (["plan", "plan.toml", "--on", "live", "--no-report"], ["--maximise", "flow.voice.count"]);
    let terms = ["--from", "1", "--to", "2", "--repetitions", "2"];
    let planned = run(&bench, &[&on[..], &search, &terms].concat());
    assert_eq!(planned.code, Some(0), "{}", planned.err);
    assert!(planned.out.contains("2 keeps the limits"), "{}", planned.out);

    run(&bench, &["agent", "revoke", "studio", "--state", &far.state]).ok();
    let refused = run(&bench, &["agent", "status", "ottawa"]);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(refused.err.contains("this controller is not enrolled at ottawa"), "{}", refused.err);
    run(&bench, &["agent", "forget", "ottawa"]).ok();
    let unknown = run(&bench, &["agent", "status", "ottawa"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("no agent `ottawa` is enrolled here; known: berlin"), "{}", unknown.err);
    assert_eq!(near.stop(), "berlin has stopped");
}

#[test]
fn what_is_wrong_is_told_before_anything_starts() {
    let bench = Bench::new();
    bench.write("agent.toml", "[limits]\nrate = \"fast\"\n");
    let wrong = run(&bench, &["agent", "--config", "agent.toml", "--state", "s"]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.err.contains("agent.toml:2:8: `rate`: `fast` does not start with a number"),
        "{}",
        wrong.err
    );
    let absent = run(&bench, &["agent", "--config", "absent.toml", "--state", "s"]);
    assert_eq!(absent.code, Some(2));
    assert!(absent.err.contains("cannot read the configuration absent.toml"), "{}", absent.err);
    let code = run(&bench, &["agent", "enrol", "127.0.0.2", "ABCD-EFGH"]);
    assert_eq!(code.code, Some(2), "{}", code.err);
    let nobody = run(&bench, &["agent", "status", "--state", "s"]);
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.err.contains("no agent is running with the folder s"), "{}", nobody.err);

    let agent = Agent::start(&bench, "berlin", "127.0.0.2");
    let second = run(&bench, &["agent", "--config", "berlin.toml", "--state", &agent.state]);
    assert_eq!(second.code, Some(1));
    assert!(second.err.contains("another agent uses the folder berlin.state"), "{}", second.err);
    // One that is killed leaves its folder to the next.
    drop(agent);
    assert_eq!(Agent::start(&bench, "berlin", "127.0.0.2").stop(), "berlin has stopped");
}

/// Two agents whose owners have written this, enrolled, and an experiment between them.
fn between(bench: &Bench, near: &Agent, far: &Agent, keys: &str, flow: &str) {
    let (at_near, at_far) = (pair(bench, near), pair(bench, far));
    bench.write(
        "between.toml",
        format!(
            "name = \"between\"\n{keys}\n[hosts]\na = {{ agent = \"{at_near}\" }}\nb = {{ agent = \"{at_far}\" }}\n\
             [link.l]\nbetween = [\"a\", \"b\"]\nrate = \"1 Gbit/s\"\n[flow.f]\nfrom = \"a\"\nto = \"b\"\n{flow}\n"
        ),
    );
}

const RUN: [&str; 5] = ["run", "between.toml", "--on", "live", "--no-report"];
const VOICE: &str = "transport = \"udp\"\nsource = { kind = \"voice\", samples = 80 }";
/// 10,000 messages a second.
const MANY: &str =
    "count = 10\ntransport = \"udp\"\nsource = { kind = \"load\", message = \"100 B\", interval = \"1 ms\" }";
const SHORT: &str = "duration = \"1 s\"\ndrain = \"500 ms\"";

/// The only run of the store.
fn stored(bench: &Bench) -> trunkline_store::StoredRun {
    trunkline_store::Store::open(&bench.store()).unwrap().run(1).unwrap()
}

#[test]
fn an_owners_rate_slows_a_greedy_flow_and_the_user_is_told_that_it_is_no_network() {
    let bench = Bench::new();
    let limits = "[limits]\nrate = \"4 Mbit/s\"\n";
    let near = Agent::start_with(&bench, "berlin", "127.0.0.2:0", limits, |agent| agent);
    let far = Agent::start(&bench, "ottawa", "127.0.0.3");
    between(&bench, &near, &far, SHORT, "transport = \"tcp\"\nsource = { kind = \"bulk\" }");
    let ran = run(&bench, &RUN);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let told = "flow `f`: the owner of `berlin` limits that host to 4 Mbit/s, which held it back for ";
    assert!(ran.err.contains(told), "{}", ran.err);
    let stored = stored(&bench);
    let flow = &stored.points[0].repetitions[0].summary.as_ref().unwrap().flows[0];
    assert!(flow.transport_counters["held-back-by-owner-ms"] > 0, "{:?}", flow.transport_counters);
    // A second of it, and a little for the burst at its beginning.
    assert!(flow.counts.sent * 8192 < 550_000, "{:?}", flow.counts);
}

#[test]
fn an_agent_that_is_gone_is_told_with_what_to_do_and_so_is_its_return() {
    let bench = Bench::new();
    let (near, far) =
        (Agent::start(&bench, "berlin", "127.0.0.2"), Agent::start(&bench, "ottawa", "127.0.0.3"));
    between(&bench, &near, &far, "duration = \"60 s\"", VOICE);
    let mut running = command(&bench, &RUN).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let (say, said) = mpsc::channel();
    let log = BufReader::new(running.stderr.take().unwrap());
    std::thread::spawn(move || log.lines().map_while(Result::ok).try_for_each(|line| say.send(line)));
    let mut heard = String::new();
    let mut hear = |wanted: &str| {
        while !heard.contains(wanted) {
            let line = said.recv_timeout(Duration::from_secs(60));
            heard.push_str(&line.unwrap_or_else(|_| panic!("nobody says {wanted}: {heard}")));
            heard.push('\n');
        }
        heard.clone()
    };
    let address = std::fs::read_to_string(bench.path("berlin.state/address")).unwrap();
    wait_for_chunks(&bench);
    drop(near);
    let gone = hear("the run waits another");
    assert!(gone.contains(&format!("lost contact with the agent `berlin` at {address} for ")), "{gone}");
    assert!(gone.contains("start it again on its host"), "{gone}");
    let near = Agent::start_with(&bench, "berlin", &address, "", |agent| agent);
    hear("the agent `berlin` is back after ");
    // It has lost its part; what it had kept of it is here, and that was the only repetition.
    let end = hear("have survived; the results so far are kept");
    assert!(end.contains("the agent on berlin was stopped during the measurement"), "{end}");
    running.wait().unwrap();
    let stored = stored(&bench);
    assert!(stored.points[0].repetitions[0].summary.as_ref().unwrap().flows[0].counts.sent > 0);
    drop(near);
}

/// Waits until the near agent has recorded something.
fn wait_for_chunks(bench: &Bench) {
    for _ in 0..1000 {
        let kept = support::files_below(&bench.path("berlin.state/spool"));
        let mut segments = kept.iter().filter(|file| file.to_string_lossy().contains("chunks"));
        if segments.any(|file| std::fs::metadata(file).is_ok_and(|meta| meta.len() > 4000)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts the agent in namespaces of its own, after this command in them; `None` if this system does not let us.
fn unshared(flags: &'static [&'static str], first: String) -> Option<impl FnOnce(Command) -> Command> {
    if !is_installed("unshare", "the Debian package `util-linux`") {
        return None;
    }
    let tried = Command::new("unshare").args(flags).arg("true").output().expect("it is installed");
    if !tried.status.success() {
        skip_without(Missing::Namespaces, &String::from_utf8_lossy(&tried.stderr));
        return None;
    }
    Some(move |agent: Command| {
        let mut command = Command::new("unshare");
        command.args(flags).args(["sh", "-c", &format!("{first} exec \"$0\" \"$@\"")]);
        command.arg(agent.get_program()).args(agent.get_args());
        command.current_dir(agent.get_current_dir().unwrap()).stdin(Stdio::null());
        command.envs(agent.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    })
}

/// Whether a run ended with the words, once, and what it had measured is there.
fn assert_partial(bench: &Bench, ran: &support::Ran, words: &str) {
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_eq!(ran.err.matches("cannot store the results").count(), 1, "{}", ran.err);
    assert!(ran.err.contains(words), "{}", ran.err);
    let runs = bench.run(&["runs"]).ok().out;
    assert!(runs.contains("partial"), "{runs}");
    let stored = stored(bench);
    let counts = &stored.points[0].repetitions[0].summary.as_ref().unwrap().flows[0].counts;
    assert!(counts.received > 10, "{counts:?}");
}

#[test]
fn an_owners_disk_limit_ends_a_run_in_order() {
    let bench = Bench::new();
    let limits = "[limits]\ndisk = \"1 MiB\"\n";
    let near = Agent::start_with(&bench, "berlin", "127.0.0.2:0", limits, |agent| agent);
    let far = Agent::start(&bench, "ottawa", "127.0.0.3");
    between(&bench, &near, &far, "duration = \"60 s\"", MANY);
    let ran = run(&bench, &RUN);
    assert_partial(&bench, &ran, "set by the host's owner");
    let status = run(&bench, &["agent", "status", "berlin"]).ok().out;
    assert!(status.contains("cannot store the results"), "{status}");
}

#[test]
fn a_full_disk_ends_a_run_in_order() {
    let bench = Bench::new();
    let flags = &["--user", "--map-root-user", "--mount"];
    let mount = "mkdir -p berlin.state/spool && mount -t tmpfs -o size=512k none berlin.state/spool &&";
    let Some(how) = unshared(flags, mount.to_owned()) else { return };
    let near = Agent::start_with(&bench, "berlin", "127.0.0.2:0", "", how);
    let far = Agent::start(&bench, "ottawa", "127.0.0.3");
    between(&bench, &near, &far, "duration = \"60 s\"", MANY);
    let ran = run(&bench, &RUN);
    assert_partial(&bench, &ran, "is full");
}

#[test]
fn hosts_whose_clocks_are_days_apart_measure_as_if_they_were_not() {
    in_real_time(|| {
        let bench = Bench::new();
        let flags = &[
            "--user",
            "--map-root-user",
            "--time",
            "--fork",
            "--kill-child",
            "--monotonic",
            "864000",
            "--boottime",
            "864000",
        ];
        let Some(how) = unshared(flags, String::new()) else { return };
        let near = Agent::start_with(&bench, "berlin", "127.0.0.2:0", "", how);
        let far = Agent::start(&bench, "ottawa", "127.0.0.3");
        between(&bench, &near, &far, SHORT, VOICE);
        let ran = run(&bench, &RUN);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let stored = stored(&bench);
        let flow = &stored.points[0].repetitions[0].summary.as_ref().unwrap().flows[0];
        assert_eq!(flow.counts.sent, 100);
        // Ten days, and not one of them in a figure.
        let figures = [flow.clock_error.unwrap(), flow.latency.unwrap().max];
        assert!(figures.iter().all(|figure| figure.as_secs_f64() < 1.0), "{figures:?}");
    });
}

/// Lets the monotonic clock of a program jump by 100 ms once a file is there, as that of a virtual machine may that was moved.
const JUMPING: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *t) {
    static int (*real)(clockid_t, struct timespec *);
    static volatile unsigned calls;
    static volatile int has_jumped;
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, t);
    if (result || id == CLOCK_REALTIME) return result;
    if (!has_jumped && ++calls % 64 == 0 && access(getenv("TRUNKLINE_TEST_JUMP"), F_OK) == 0) has_jumped = 1;
    if (has_jumped && (t->tv_nsec += 100000000) >= 1000000000) { t->tv_nsec -= 1000000000; t->tv_sec++; }
    return 0;
}
"#;

#[test]
fn a_clock_that_jumps_ends_the_run_and_what_was_measured_before_is_kept() {
    in_real_time(|| {
        let bench = Bench::new();
        let (source, library) = (bench.write("jumping.c", JUMPING), bench.path("jumping.so"));
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .output();
        if !built.is_ok_and(|built| built.status.success()) {
            return skip("`cc` does not work; install the Debian package `build-essential`");
        }
        let jump = bench.path("jump");
        let near = Agent::start(&bench, "berlin", "127.0.0.2");
        let far = Agent::start_with(&bench, "ottawa", "127.0.0.3:0", "", |mut agent| {
            agent.env("LD_PRELOAD", &library).env("TRUNKLINE_TEST_JUMP", &jump);
            agent
        });
        between(&bench, &near, &far, "duration = \"60 s\"", VOICE);
        let running = command(&bench, &RUN).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        wait_for_chunks(&bench);
        bench.write("jump", "");
        let ran = support::Ran::from(running.wait_with_output().unwrap());
        assert!(ran.err.contains("jumped by "), "{}", ran.err);
        assert_eq!(ran.err.matches("jumped").count(), 1, "{}", ran.err);
        let stored = stored(&bench);
        let flow = &stored.points[0].repetitions[0].summary.as_ref().unwrap().flows[0];
        // Arrivals that nobody can place in time are not among what is kept, and those before the jump are right.
        assert!(flow.counts.received > 0, "{:?}", flow.counts);
        let bound = flow.clock_error.unwrap();
        assert!(
            flow.latency.unwrap().max.as_secs_f64() < 0.1 + bound.as_secs_f64(),
            "{:?} {bound}",
            flow.latency
        );
    });
}

#[test]
fn an_owner_sees_what_is_kept_and_deletes_it() {
    let bench = Bench::new();
    let (near, far) =
        (Agent::start(&bench, "berlin", "127.0.0.2"), Agent::start(&bench, "ottawa", "127.0.0.3"));
    between(&bench, &near, &far, "duration = \"3 s\"", MANY);
    let clean = |more: &[&str]| {
        let fixed = ["agent", "clean", "--json", "--state", &near.state];
        let printed = run(&bench, &[&fixed, more].concat()).ok().out;
        serde_json::from_str::<serde_json::Value>(&printed).unwrap()
    };
    let count = |kept: &serde_json::Value| kept["parts"].as_array().unwrap().len();
    assert_eq!(count(&clean(&[])), 0, "nothing was measured yet");

    // A controller that dies collects nothing, and the part goes on to its end.
    let mut controller = command(&bench, &RUN).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    wait_for_chunks(&bench);
    controller.kill().unwrap();
    controller.wait().unwrap();
    let kept = (0..1000).map(|_| clean(&[])).find(|kept| count(kept) > 0).expect("the part ends");
    assert_eq!((count(&kept), &kept["deleted"]), (1, &false.into()), "{kept}");
    assert_eq!(kept["parts"][0]["controller"], "studio");
    assert!(kept["bytes"].as_u64().unwrap() > 0, "{kept}");

    assert_eq!(count(&clean(&["--controller", "else", "--delete"])), 0, "another controller's");
    let table = run(&bench, &["agent", "clean", "--state", &near.state]).ok();
    assert!(table.out.contains("studio") && table.err.contains("`--delete` deletes them"), "{table:?}");
    let deleted = clean(&["--controller", "studio", "--delete"]);
    assert_eq!((count(&deleted), &deleted["deleted"]), (1, &true.into()), "{deleted}");
    assert_eq!(count(&clean(&[])), 0);
    let left = support::files_below(&bench.path("berlin.state/spool"));
    assert!(left.is_empty(), "{left:?}");
}

/// Loopback is faster than the learner overloads, so its queue stays unknown; its delay is far below a millisecond.
#[test]
fn a_path_between_agents_is_learned() {
    in_real_time(|| {
        let bench = Bench::new();
        let (near, far) =
            (Agent::start(&bench, "berlin", "127.0.0.2"), Agent::start(&bench, "ottawa", "127.0.0.3"));
        let (at_near, at_far) = (pair(&bench, &near), pair(&bench, &far));
        let arguments = ["learn", &at_far, "--here", &at_near, "--budget", "20 s", "--gentle", "--no-verify"];
        let ran = run(&bench, &[&arguments[..], &["--to", "loopback.toml"]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let written = std::fs::read_to_string(bench.path("loopback.toml")).unwrap();
        let delays = written
            .lines()
            .filter_map(|line| line.strip_prefix("delay = \"")?.split_once(" ms").map(|d| d.0));
        let delays: Vec<f64> = delays.map(|delay| delay.parse().unwrap()).collect();
        assert_eq!(delays.len(), 2, "{written}");
        assert!(delays.iter().all(|delay| *delay < 1.0), "{written}");
    });
}
