//! The hosts of a wire, as programs on them see them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests too")]

mod support;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use support::terminal::Terminal;
use support::{Bench, Ran};

const PAIR: &str = r#"
name = "pair"
duration = "1 s"

[hosts]
a = {}
b = {}

[link.trunk]
between = ["a", "b"]
rate = "10 Mbit/s"
"#;

fn bench() -> Option<Bench> {
    Bench::with_wire("pair.toml", PAIR)
}

fn command(bench: &Bench, arguments: &[&str]) -> Command {
    bench.command(&[&["wire"], arguments].concat())
}

fn wire(bench: &Bench, arguments: &[&str]) -> Ran {
    Ran::from(command(bench, arguments).output().expect("the program starts"))
}

/// A wire in front of this test; killed when dropped.
struct Up(Child);

impl Up {
    fn start(bench: &Bench) -> Up {
        let mut up = command(bench, &["up", "pair.toml", "--foreground"]);
        let mut child = up.stdout(Stdio::piped()).spawn().expect("the program starts");
        let stdout = child.stdout.take().expect("standard output is a pipe");
        assert_eq!(BufReader::new(stdout).lines().next().unwrap().unwrap(), "wire `pair` is up");
        Up(child)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_host_has_a_name_of_its_own() {
    let Some(bench) = bench() else { return };
    for host in ["a", "b"] {
        assert_eq!(
            wire(&bench, &["pair.toml", "--at", host, "--", "uname", "-n"]).ok().out,
            format!("{host}\n")
        );
    }
    let _up = Up::start(&bench);
    assert_eq!(wire(&bench, &["exec", "b", "--", "uname", "-n"]).ok().out, "b\n");
}

#[test]
fn a_shell_says_in_its_prompt_on_which_host_it_is() {
    let Some(bench) = bench() else { return };
    // bash with a prompt that the user's file sets, with one that shows the host's name already, and a shell that has the
    // environment's.
    // Without escape sequences around the prompt.
    let files = [("plain", "PS1='> '"), ("full", "PS1='\\h% '")];
    for (name, text) in files {
        bench.write(name, format!("bind 'set enable-bracketed-paste off'\n{text}\n"));
    }
    let shells: [(&[&str], &str); 3] = [
        (&["bash", "--noprofile", "--rcfile", "plain"], "\n[b] > "),
        (&["bash", "--noprofile", "--rcfile", "full"], "\nb% "),
        (&["sh"], "\n[b] "),
    ];
    for (shell, prompt) in shells {
        let arguments = [&["pair.toml", "--at", "b", "--"], shell].concat();
        let mut terminal = Terminal::start(&command(&bench, &arguments));
        // The first prompt stands at the beginning of a line; the second says so of all.
        terminal.press("echo he''re\n");
        terminal.wait_for("here");
        terminal.wait_for(prompt);
        terminal.press("exit 3\n");
        assert_eq!(terminal.end(), Some(3));
    }
}

/// A shell at a terminal, from which wires are started.
fn outer_shell(bench: &Bench) -> Terminal {
    bench.write("rc", "bind 'set enable-bracketed-paste off'\nPS1='outer> '\n");
    let mut shell = Command::new("bash");
    shell.args(["--noprofile", "--rcfile", "rc"]).current_dir(bench.path(""));
    shell.env("XDG_RUNTIME_DIR", bench.path(""));
    let mut terminal = Terminal::start(&shell);
    terminal.wait_for("outer> ");
    terminal
}

#[test]
fn a_program_at_a_terminal_is_stopped_and_goes_on_like_a_job() {
    let Some(bench) = bench() else { return };
    let mut terminal = outer_shell(&bench);
    let program = env!("CARGO_BIN_EXE_trunkline");
    let line = "echo at $(uname -n); read word; echo got $word; read word; exit 4";
    terminal.press(&format!("{program} wire pair.toml --at b -- sh -c '{line}'\n"));
    terminal.wait_for("at b\r\n");
    terminal.press("\x1a");
    terminal.wait_for("Stopped");
    terminal.wait_for("outer> ");
    terminal.press("fg\n");
    terminal.wait_for("wire pair.toml");
    terminal.press("hello\n");
    terminal.wait_for("got hello");
    // Ctrl-C is for the program.
    terminal.press("\x03");
    terminal.wait_for("outer> ");
    terminal.press("exit $?\n");
    assert_eq!(terminal.end(), Some(130));
}

#[test]
fn a_program_has_the_terminal_from_its_first_instruction() {
    let Some(bench) = bench() else { return };
    let mut terminal = outer_shell(&bench);
    // After the name: its state, parent, group, session, terminal, and the group that has the terminal.
    bench.write("who", "read line </proc/self/stat; set -- ${line##*)}; echo group $3 of $6.\n");
    let program = env!("CARGO_BIN_EXE_trunkline");
    for _ in 0..20 {
        terminal.press(&format!("{program} wire pair.toml --at b -- sh who\n"));
        terminal.wait_for("group ");
        let shown = terminal.wait_for(".\r\n");
        let (group, foreground) = shown.trim_end_matches(".\r\n").split_once(" of ").expect("two groups");
        assert_eq!(group, foreground, "its group and that of the terminal");
        terminal.wait_for("outer> ");
    }
}

#[test]
fn a_program_sees_the_programs_of_its_own_host_only() {
    let Some(bench) = bench() else { return };
    // The first process stands on the host too: whoever enters its network gets nowhere else.
    let line = "cat /proc/[0-9]*/comm; readlink /proc/1/ns/net /proc/self/ns/net";
    let ran = wire(&bench, &["pair.toml", "--with", "b=exec sleep 600", "--", "sh", "-c", line]).ok();
    let lines: Vec<&str> = ran.out.lines().collect();
    let (names, networks) = lines.split_at(lines.len() - 2);
    assert!(!names.contains(&"sleep") && names.contains(&"sh"), "{}", ran.out);
    assert_eq!(networks[0], networks[1], "{}", ran.out);
}

#[test]
fn a_killed_first_process_is_reported_for_what_it_is() {
    let Some(bench) = bench() else { return };
    let _up = Up::start(&bench);
    let hosts = |bench: &Bench| wire(bench, &["status", "--json"]).ok().json()["wires"][0]["hosts"].clone();
    let first = hosts(&bench)[0]["process"].as_u64().expect("the number of the first process of `a`");
    let kill = Command::new("kill").args(["-KILL", &first.to_string()]).status().unwrap();
    assert!(kill.success());
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while hosts(&bench)[0]["alive"] != false {
        assert!(std::time::Instant::now() < until, "it stays alive");
    }
    let ran = wire(&bench, &["exec", "a", "--", "true"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("the init process of host `a` was killed"), "{}", ran.err);
    assert!(
        wire(&bench, &["status"]).ok().err.contains("the init process of host `a` of wire `pair` was killed")
    );
    // The other host is as it was.
    wire(&bench, &["exec", "b", "--", "true"]).ok();
    wire(&bench, &["down"]).ok();
}

#[test]
fn a_command_that_cannot_be_started_has_the_exit_code_that_shells_give() {
    let Some(bench) = bench() else { return };
    bench.write("no-program", "");
    let _up = Up::start(&bench);
    for before in [&["pair.toml", "--name", "other", "--"][..], &["exec", "a", "--"]] {
        let of = |program: &str| wire(&bench, &[before, &[program]].concat());
        let ran = of("no-such-program");
        assert_eq!(ran.code, Some(127), "{}", ran.err);
        assert!(
            ran.err.contains("cannot start `no-such-program` on `a`: there is no such program"),
            "{}",
            ran.err
        );
        let ran = of("./no-program");
        assert_eq!(ran.code, Some(126), "{}", ran.err);
        assert!(ran.err.contains("may not be executed"), "{}", ran.err);
    }
}

#[test]
fn the_first_packet_is_the_first_on_the_link() {
    let Some(bench) = bench() else { return };
    let _up = Up::start(&bench);
    for address in ["198.18.0.2", "2001:2::2"] {
        let line = format!("echo hello > /dev/udp/{address}/9");
        wire(&bench, &["exec", "a", "--", "bash", "-c", &line]).ok();
    }
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let link = loop {
        let status = wire(&bench, &["status", "--json"]).ok().json();
        let link = status["wires"][0]["counters"]["links"][0].clone();
        // Nobody listens there, which `b` says of each.
        let answers = link["flows"].as_array().unwrap().iter().filter(|flow| {
            flow["name"].as_str().unwrap().starts_with("icmp")
                && flow["directions"][0]["delivered"]["packets"] == 1
        });
        if answers.count() >= 2 {
            break link;
        }
        assert!(std::time::Instant::now() < until, "nothing comes: {status}");
    };
    // No question for a hardware address was among them: neither ARP, which is not of IP, nor one to the group of those whose
    // address ends alike (RFC 4291 section 2.7.1).
    for flow in link["flows"].as_array().unwrap() {
        let name = flow["name"].as_str().unwrap();
        assert!(!name.contains("ff02::1:ff"), "{link}");
        assert!(name != "other" || flow["directions"][0]["offered"]["packets"] == 0, "{link}");
    }
}
