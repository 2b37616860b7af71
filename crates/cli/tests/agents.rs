//! Agents from the command line: two commands to enrol, and a run between two hosts.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod support;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use support::Bench;

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
        bench.write(
            &format!("{name}.toml"),
            format!("name = \"{name}\"\nlisten = \"{ip}:0\"\n[limits]\nmemory = \"1 GiB\"\n"),
        );
        let (config, state) = (format!("{name}.toml"), format!("{name}.state"));
        let mut child = command(bench, &["agent", "--config", &config, "--state", &state])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        log.read_line(&mut line).unwrap();
        assert!(line.starts_with(&format!("{name} listens at {ip}:")), "{line}");
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
    assert!(refused.err.contains("ottawa does not know this controller"), "{}", refused.err);
    run(&bench, &["agent", "forget", "ottawa"]).ok();
    let unknown = run(&bench, &["agent", "status", "ottawa"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.err.contains("`ottawa` is no agent that is enrolled here: those are berlin"),
        "{}",
        unknown.err
    );
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
    assert!(absent.err.contains("the configuration absent.toml cannot be read"), "{}", absent.err);
    let code = run(&bench, &["agent", "enrol", "127.0.0.2", "ABCD-EFGH"]);
    assert_eq!(code.code, Some(2), "{}", code.err);
    let nobody = run(&bench, &["agent", "status", "--state", "s"]);
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.err.contains("no agent runs with the folder s"), "{}", nobody.err);

    let agent = Agent::start(&bench, "berlin", "127.0.0.2");
    let second = run(&bench, &["agent", "--config", "berlin.toml", "--state", &agent.state]);
    assert_eq!(second.code, Some(1));
    assert!(second.err.contains("another agent runs with the folder berlin.state"), "{}", second.err);
    // One that is killed leaves its folder to the next.
    drop(agent);
    assert_eq!(Agent::start(&bench, "berlin", "127.0.0.2").stop(), "berlin has stopped");
}
