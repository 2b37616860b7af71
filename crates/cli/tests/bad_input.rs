//! Bad input: one clear sentence, exit code 2, nothing written.

mod support;

use support::Bench;

const GOOD: &str = r#"name = "good"
duration = "1 s"
[hosts]
a = {}
b = {}
[link.trunk]
between = ["a", "b"]
rate = "2 Mbit/s"
[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice", samples = 80 }
"#;

/// Runs the changed file on both backends and by `check`: the same sentence each time, and nothing is written.
#[track_caller]
fn refused(text: &str, position: &str, says: &[&str]) {
    let bench = Bench::new();
    bench.write("bad.toml", text);
    for arguments in
        [vec!["check", "bad.toml"], vec!["run", "bad.toml"], vec!["run", "bad.toml", "--on", "live"]]
    {
        let ran = bench.run(&arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:#?}");
        assert!(ran.out.is_empty(), "{ran:#?}");
        assert!(ran.err.contains(&format!("bad.toml:{position}")), "wants {position}: {ran:#?}");
        for words in says {
            assert!(ran.err.contains(words), "wants `{words}`: {ran:#?}");
        }
        assert!(!bench.store().exists(), "nothing is written");
    }
}

#[test]
fn a_file_without_flows_is_for_the_wire_alone() {
    let bench = Bench::new();
    bench.write("links.toml", GOOD.split("[flow").next().unwrap_or_default());
    bench.run(&["check", "links.toml"]).ok();
    for backend in ["sim", "live"] {
        let ran = bench.run(&["run", "links.toml", "--on", backend]);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.err.contains("the experiment has no flows"), "{ran:#?}");
        assert!(!bench.store().exists(), "nothing is written");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn hosts_with_a_kernel_need_one_and_the_simulator() {
    let bench = Bench::new();
    let with =
        |kernel: &str| GOOD.replace("a = {}", &format!("a = {{ kernel = \"{kernel}\", run = \"true\" }}"));
    bench.write("text", "no program");
    for (kernel, on, says) in [
        ("none", "sim", "no kernel at `none`"),
        ("text", "sim", "`text` is not an executable file"),
        (".", "sim", "is not an executable file"),
        ("/bin/true", "sim", "host `a` is a kernel, on which programs run (`run`), not flows"),
        ("/bin/true", "live", "on `live` a host has no `kernel` of its own; use `--on sim`"),
    ] {
        bench.write("kernel.toml", with(kernel));
        for command in ["check", "run"] {
            let ran = bench.run(&[command, "kernel.toml", "--on", on]);
            assert_eq!(ran.code, Some(2), "{kernel}: {ran:#?}");
            assert!(ran.err.contains(says), "wants `{says}`: {ran:#?}");
            assert!(kernel == "/bin/true" && on == "sim" || ran.err.contains("kernel.toml:4:16"), "{ran:#?}");
        }
    }
    assert!(!bench.store().exists(), "nothing is written");
}

#[test]
#[cfg(target_os = "linux")]
fn a_kernel_is_found_by_its_name() {
    let bench = Bench::new();
    let folder = bench.path("data/trunkline/kernels");
    let run = |arguments: &[&str], path: &str| {
        let mut command = bench.command(arguments);
        command.env("XDG_DATA_HOME", bench.path("data")).env("PATH", path);
        support::Ran::from(command.output().expect("the program starts"))
    };
    let unnamed = run(&["kernel", "build", "../linux"], "/usr/bin");
    assert_eq!(unnamed.code, Some(2), "{unnamed:#?}");
    assert!(
        unnamed.err.contains("`../linux` cannot be the name of a kernel; expected letters"),
        "{unnamed:#?}"
    );
    let without_tools = run(&["kernel", "build"], "/nowhere");
    assert_eq!(without_tools.code, Some(1), "{without_tools:#?}");
    for words in
        ["`make`", "`flex`", "install them with `sudo apt-get install linux-source-6.1 build-essential"]
    {
        assert!(without_tools.err.contains(words), "wants `{words}`: {without_tools:#?}");
    }
    assert!(!folder.exists(), "nothing is written");
    let none = run(&["kernel", "list"], "/nowhere").ok();
    assert!(none.out.is_empty() && none.err.contains("`trunkline kernel build` builds one"), "{none:#?}");

    std::fs::create_dir_all(&folder).expect("a folder");
    std::os::unix::fs::symlink("/bin/true", folder.join("mine")).expect("a link");
    let listed = run(&["kernel", "list"], "/nowhere").ok();
    assert!(listed.out.contains("mine") && listed.out.contains("data/trunkline/kernels/mine"), "{listed:#?}");
    for (name, says) in [
        ("mine", "data/trunkline/kernels/mine` has ended before it connected to the simulation's clock"),
        (
            "other",
            "no kernel at `other` (No such file or directory (os error 2)); `trunkline kernel build` has built `mine`",
        ),
        ("./mine", "no kernel at `./mine`"),
    ] {
        let host = format!("a = {{}}\nc = {{ kernel = \"{name}\" }}");
        let link = "[link.other]\nbetween = [\"b\", \"c\"]\nrate = \"2 Mbit/s\"\n[flow.voice]";
        bench.write("kernel.toml", GOOD.replace("a = {}", &host).replace("[flow.voice]", link));
        let ran = run(&["run", "kernel.toml"], "/nowhere");
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.err.contains(says), "wants `{says}`: {ran:#?}");
    }
}

#[test]
fn the_good_file_is_good() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    assert!(bench.run(&["check", "good.toml"]).ok().out.contains("is valid"));
    assert_eq!(bench.run(&["check", "good.toml", "--json"]).ok().json()["points"], 1);
    assert!(!bench.store().exists());
}

#[test]
fn an_unknown_key_names_the_nearest_known_one() {
    refused(&GOOD.replace("rate =", "rat ="), "8:1", &["rat", "rate"]);
}

#[test]
fn a_wrong_unit_is_named() {
    refused(&GOOD.replace("2 Mbit/s", "2 ms"), "8:8", &["`ms`", "Mbit/s"]);
}

#[test]
fn impossible_values_are_refused_with_their_range() {
    refused(&GOOD.replace("2 Mbit/s", "0 Mbit/s"), "8:8", &["rate"]);
    refused(&GOOD.replace("rate =", "delay = \"-1 ms\"\nrate ="), "8:9", &["negative"]);
    refused(&(GOOD.to_owned() + "channels = 0\n"), "14:12", &["channels", "1", "65535"]);
    refused(&GOOD.replace("samples = 80", "samples = 5000"), "13:", &["samples", "8", "4096"]);
}

#[test]
fn a_flow_without_a_path_names_both_hosts() {
    refused(
        &GOOD.replace("b = {}", "b = {}\nc = {}").replace("to = \"b\"", "to = \"c\""),
        "",
        &["`a`", "`c`", "path"],
    );
}

/// A terminal names a few values of a long sweep; JSON has all of them.
#[test]
fn a_long_sweep_is_checked_in_a_line() {
    let bench = Bench::new();
    let text = GOOD.to_owned() + "[sweep]\n\"flow.voice.count\" = { from = 1, to = 1000, step = 1 }\n";
    bench.write("long.toml", &text);
    let out = bench.run(&["check", "long.toml"]).ok().out;
    assert!(out.contains("  sweeps flow.voice.count over 1, 2, 3, ... 1000 (1000 values)\n"), "{out}");
    let json = bench.run(&["check", "long.toml", "--json"]).ok().json();
    assert_eq!(json["sweep"][0]["values"].as_array().map(Vec::len), Some(1000));
    bench.write("long.toml", text.replace("1000,", "8,"));
    let out = bench.run(&["check", "long.toml"]).ok().out;
    assert!(out.contains("  sweeps flow.voice.count over 1, 2, 3, 4, 5, 6, 7, 8\n"), "{out}");
}

#[test]
fn sweeps_are_checked() {
    refused(&(GOOD.to_owned() + "[sweep]\n\"flow.voice.cuont\" = [1]\n"), "15:1", &["cuont", "count"]);
    refused(&(GOOD.to_owned() + "[sweep]\n\"flow.voice.count\" = []\n"), "15:", &["empty"]);
    refused(&(GOOD.to_owned() + "[sweep]\n\"flow.voice.count\" = [1, -2]\n"), "15:26", &["count"]);
}

#[test]
fn a_mistake_beside_a_sweep_stays_where_it_is() {
    let swept = GOOD.to_owned() + "[sweep]\n\"flow.voice.count\" = [1, 2]\n";
    refused(&swept.replace("2 Mbit/s", "2 mx"), "8:8", &["`mx`", "Mbit/s"]);
}

#[test]
fn audio_files_are_checked() {
    let naming = GOOD.replace("samples = 80", "file = \"speech.wav\"");
    refused(&naming, "13:", &["speech.wav", "does not exist"]);
    let bench = Bench::new();
    bench.write("bad.toml", &naming);
    // A WAV in mu-law (format 7), and one whose data is cut off.
    let header = |format: u16, bits: u16, announced: u32| {
        let mut wav = b"RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00".to_vec();
        wav.extend(format.to_le_bytes());
        wav.extend(1u16.to_le_bytes());
        wav.extend(8_000u32.to_le_bytes());
        wav.extend((8_000 * u32::from(bits) / 8).to_le_bytes());
        wav.extend((bits / 8).to_le_bytes());
        wav.extend(bits.to_le_bytes());
        wav.extend(b"data");
        wav.extend(announced.to_le_bytes());
        wav.extend([0u8; 160]);
        let length = (wav.len() - 8) as u32;
        wav[4..8].copy_from_slice(&length.to_le_bytes());
        wav
    };
    for (wav, says) in
        [(header(7, 8, 160), "PCM"), (header(1, 16, 16_000), "truncated"), (b"MP3".to_vec(), "WAV")]
    {
        bench.write("speech.wav", wav);
        let ran = bench.run(&["check", "bad.toml"]);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.err.contains(says), "wants `{says}`: {ran:#?}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let bench = Bench::new();
    let ran = bench.run(&["run", "nowhere.toml"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("nowhere.toml") && ran.err.contains("does not exist"), "{ran:#?}");
    assert!(!bench.store().exists());
}

#[test]
fn a_port_in_use_is_named_and_nothing_is_written() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let port = taken.local_addr().expect("a bound socket has an address").port().to_string();
    let ran = bench.run(&["run", "good.toml", "--on", "live", "--port", &port]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.err.contains(&port) && ran.err.contains("in use"), "{ran:#?}");
    assert!(!bench.store().exists());
}

#[test]
fn unknown_runs_and_options_are_refused() {
    let bench = Bench::new();
    assert_eq!(bench.run(&["report", "17"]).code, Some(2));
    assert_eq!(bench.run(&["run", "x.toml", "--on", "mars"]).code, Some(2));
    assert_eq!(bench.run(&["run"]).code, Some(2));
}

#[test]
fn a_mistake_in_a_profile_is_told_in_the_profile() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("study/hosts")).unwrap();
    bench.write("study/x.toml", GOOD.replace("a = {}", "a = { profile = \"hosts/vax.toml\" }"));
    bench.write("study/hosts/vax.toml", "doc = \"slow\"\nsend-mesage = \"3 ms\"\n");
    let ran = bench.run(&["check", "study/x.toml"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.err.contains("study/hosts/vax.toml:2:1: unknown key `send-mesage`"), "{ran:#?}");
    bench.write("study/hosts/vax.toml", "doc = \"slow\"\nsend-message = \"3 ms\"\n");
    bench.run(&["check", "study/x.toml"]).ok();
}

#[test]
fn a_custom_model_without_its_function_is_refused_at_its_place() {
    let bench = Bench::new();
    let (rate, loss) = ("rate = \"2 Mbit/s\"\n", "loss = { kind = \"custom\" }\n");
    bench.write("own.toml", GOOD.replace(rate, &format!("{rate}{loss}")));
    for (backend, reason) in [("sim", "needs a function"), ("wire", "works in `sim` only")] {
        let ran = bench.run(&["check", "own.toml", "--on", backend]);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        let expected = format!("error: own.toml:9:8: link `trunk`, loss: `custom` {reason}");
        assert!(ran.err.starts_with(&expected), "{ran:#?}");
    }
}

#[test]
fn messages_without_headers_are_said_to_be_for_the_simulator() {
    let bench = Bench::new();
    let text = GOOD.replace("\"udp\"", "\"tcp\"\nframing = \"none\"");
    bench.write("bare.toml", &text);
    let out = bench.run(&["check", "bare.toml"]).ok().out;
    assert!(
        out.contains("not on `live`: flow `voice` cannot be set up: `framing = \"none\"` works in"),
        "{out}"
    );
    let backends = bench.run(&["check", "bare.toml", "--json"]).ok().json()["backends"].clone();
    assert_eq!(backends, serde_json::json!(["sim", "wire"]));
    let ran = bench.run(&["run", "bare.toml", "--on", "live"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.err.contains("`framing = \"none\"` works in `sim` only"), "{ran:#?}");
    let line = text.lines().position(|line| line.starts_with("framing")).unwrap() + 1;
    assert!(ran.err.starts_with(&format!("error: bare.toml:{line}:11: ")), "{ran:#?}");
    assert!(!bench.store().exists(), "nothing is written");
}

#[test]
fn options_say_what_they_expect() {
    let bench = Bench::new();
    for (arguments, expected) in [
        (["run", "x.toml", "--jobs", "0"], "expected a whole number from 1 to 1024"),
        (["send", "x", "--blocks", "0"], "expected a whole number of at least 1"),
        (
            ["serve", "--listen", "foo", "-q"],
            "expected an address of this host, with or without a port: `192.0.2.1`",
        ),
        (["receive", "--listen", "foo", "-q"], "`0.0.0.0:4780`"),
    ] {
        let ran = bench.run(&arguments);
        assert!(ran.code == Some(2) && ran.err.contains(expected), "{ran:#?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn results_that_cannot_be_printed_are_a_failure() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let ran = Bench::new().command(&["papers"]).stdout(full).output().expect("the program starts");
    assert_eq!(ran.status.code(), Some(1));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("cannot write to standard output"), "{said}");
}
