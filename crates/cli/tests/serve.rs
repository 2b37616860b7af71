//! `trunkline serve`: as a program.

#![allow(clippy::unwrap_used, reason = "where something is missing the test has failed")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const EXPERIMENT: &str = "name = \"hours\"\nduration = \"100 s\"\nrepetitions = 1000\n[hosts]\na = {}\nb = {}\n[link.l]\n\
                          between = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\n\
                          transport = \"udp\"\nsource = { kind = \"voice\", samples = 80 }\n";

fn trunkline(place: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command
        .env("XDG_CONFIG_HOME", place.join("config"))
        .env("XDG_RUNTIME_DIR", place)
        .env_remove("TRUNKLINE_STORE");
    command.arg("--store").arg(place.join("store")).current_dir(place);
    command
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A server at work, and its port. It is killed when this is dropped.
struct Serving(Child, String);

impl Serving {
    fn start(place: &Path, arguments: &[&str]) -> Serving {
        let mut command = trunkline(place);
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(arguments);
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        // What else it says goes nowhere, and holds it up nowhere.
        std::thread::spawn(move || lines.for_each(drop));
        let address = line.split("://").nth(1).and_then(|rest| rest.split([',', ';']).next());
        let address = address.unwrap_or_else(|| panic!("{line}")).trim().to_owned();
        Serving(child, address)
    }

    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.1).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (address, length) = (&self.1, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}content-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended as it should.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_description_is_printed() {
    let place = tempfile::tempdir().unwrap();
    let output = trunkline(place.path()).args(["serve", "--openapi"]).output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(!place.path().join("store").exists(), "nothing else is done");
}

#[test]
fn other_machines_are_not_served_without_tls() {
    let place = tempfile::tempdir().unwrap();
    for arguments in [
        &["--listen", "0.0.0.0:0"][..],
        &["--behind-proxy", "trunkline.example.org"],
        &["--certificate", "none.pem", "--key", "none.pem"],
        &["--files", "none"],
        &["--no-login", "--listen", "0.0.0.0:0", "--tls"],
        &["--no-login", "--behind-proxy", "https://trunkline.example.org"],
    ] {
        let output = trunkline(place.path()).arg("serve").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", told(&output));
        assert_eq!(told(&output).lines().count(), 1, "{}", told(&output));
    }
}

#[test]
fn a_server_that_is_told_to_end_keeps_what_it_measures() {
    let place = tempfile::tempdir().unwrap();
    let mut serving = Serving::start(place.path(), &["--no-login"]);
    let body = serde_json::json!({ "text": EXPERIMENT, "backend": "sim" }).to_string();
    let begun = serving.ask("POST", "/api/v1/runs", "", &body);
    assert!(begun.starts_with("HTTP/1.1 201") && begun.contains("\"run\":1"), "{begun}");
    let killed = Command::new("kill").args(["-TERM", &serving.0.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(serving.0.wait().unwrap().code(), Some(0));
    let runs = trunkline(place.path()).args(["--json", "runs"]).output().unwrap();
    let runs: serde_json::Value = serde_json::from_slice(&runs.stdout).unwrap();
    assert_eq!(runs["runs"][0]["status"], "partial", "{runs}");
}

#[test]
fn tokens_are_made_listed_and_revoked_while_it_serves() {
    let place = tempfile::tempdir().unwrap();
    let early = trunkline(place.path()).args(["serve", "token"]).output().unwrap();
    assert_eq!(early.status.code(), Some(2), "no server has been there: {}", told(&early));
    let serving = Serving::start(place.path(), &[]);
    assert!(serving.ask("GET", "/api/v1/server", "", "").starts_with("HTTP/1.1 401"));
    let run = |arguments: &[&str]| {
        let output = trunkline(place.path()).arg("serve").args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", told(&output));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let link = run(&["token"]);
    assert!(link.starts_with(&format!("http://{}/#/login/", serving.1)), "{link}");
    let bearer = format!("authorization: Bearer {}\r\n", run(&["token", "--name", "nightly"]));
    assert!(serving.ask("GET", "/api/v1/server", &bearer, "").starts_with("HTTP/1.1 200"));
    assert!(run(&["tokens"]).contains("nightly"));
    run(&["revoke", "nightly"]);
    assert!(serving.ask("GET", "/api/v1/server", &bearer, "").starts_with("HTTP/1.1 401"));
}

#[test]
#[cfg(unix)]
fn another_user_of_this_machine_is_a_stranger_to_a_server_on_loopback() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::tempdir().unwrap();
    // A browser that keeps what it was started with, and the page that it opens with its mode.
    let browser = place.path().join("browser");
    let script = "#!/bin/sh\ncp -p \"$1\" page\nstat -c %a \"$1\" > mode\nprintf '%s ' \"$@\" > arguments.new\n\
                  mv arguments.new arguments\n";
    std::fs::write(&browser, script).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = trunkline(place.path());
    command
        .args(["--json", "serve", "--listen", "127.0.0.1:0", "--browser", "always"])
        .env("BROWSER", &browser);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let output = child.stdout.take().unwrap();
    let mut serving = Serving(child, String::new());
    let mut documents = serde_json::Deserializer::from_reader(output).into_iter::<serde_json::Value>();
    let server = documents.next().unwrap().unwrap();
    serving.1 = server["url"].as_str().unwrap().trim_start_matches("http://").to_owned();

    for (method, path) in [("GET", "/api/v1/server"), ("GET", "/api/v1/runs"), ("POST", "/api/v1/runs")] {
        let refused = serving.ask(method, path, "", "{}");
        assert!(refused.starts_with("HTTP/1.1 401"), "{path}: {refused}");
    }

    // The browser gets the link through a file that only its user can read, and not by its command line.
    let link = server["link"].as_str().unwrap();
    let code = link.strip_prefix(&format!("http://{}/#/login/", serving.1)).unwrap();
    let read = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap_or_default();
    let ready = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        !read("arguments").is_empty()
    });
    assert!(ready, "no browser was opened");
    assert!(!read("arguments").contains(code), "{}", read("arguments"));
    assert_eq!(read("mode").trim(), "600");
    assert!(read("page").contains(link), "{}", read("page"));
    let page = std::path::PathBuf::from(read("arguments").trim());
    assert!(page.exists());

    let login = serving.ask("POST", "/api/v1/login", "", &serde_json::json!({ "code": code }).to_string());
    assert!(login.starts_with("HTTP/1.1 204"), "{login}");
    let cookie = login.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("cookie: {}\r\n", cookie.split(';').next().unwrap());
    assert!(serving.ask("GET", "/api/v1/server", &cookie, "").starts_with("HTTP/1.1 200"));
    let again = serving.ask("POST", "/api/v1/login", "", &serde_json::json!({ "code": code }).to_string());
    assert!(again.starts_with("HTTP/1.1 401"), "the link works once: {again}");

    assert!(Command::new("kill").args(["-TERM", &serving.0.id().to_string()]).status().unwrap().success());
    assert_eq!(serving.0.wait().unwrap().code(), Some(0));
    assert!(!page.exists(), "a server that ends removes the page");
}

#[test]
fn a_server_without_login_says_whom_it_serves() {
    let place = tempfile::tempdir().unwrap();
    let serving = Serving::start(place.path(), &["--no-login"]);
    assert!(serving.ask("GET", "/api/v1/server", "", "").starts_with("HTTP/1.1 200"));
}
