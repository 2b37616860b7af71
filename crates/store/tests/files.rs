//! Hosts of a team share the files of runs in a bucket of S3. The server is moto's, which the tests start and end; it is
//! reached through a door that they can shut.
//!
//! How a bucket is reached is in the environment: so each host is a process, this test program started again with what it is
//! to do in `TRUNKLINE_STORE_CHILD`.

#![allow(clippy::unwrap_used, reason = "helpers of tests too")]
#![allow(clippy::print_stdout, reason = "a host says what it does")]
#![cfg(all(target_os = "linux", feature = "s3"))]

mod scenarios;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use scenarios::{new_run, record, sequences, summary};
use trunkline_metrics::TraceSink as _;
use trunkline_store::{Backend, NewRun, RunInfo, Status, Store};
use trunkline_testkit::postgres::PostgresServer;
use trunkline_testkit::skips;

const CHILD: &str = "TRUNKLINE_STORE_CHILD";
const URL: &str = "TRUNKLINE_STORE_CHILD_URL";
const FILES: &str = "TRUNKLINE_STORE_CHILD_FILES";
/// More than one part of an upload has, for one of them.
const RECORDS: [u32; 3] = [1_000, 1_200_000, 2_000];

/// Not a test: the life of a host. Without the variable it does nothing.
#[test]
fn child() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let url = std::env::var(URL).unwrap();
    let files = std::env::var_os(FILES).unwrap();
    let store = match Store::connect(&url, Path::new(&files)) {
        // A bucket that takes nothing is known for that earlier.
        Ok(store) => store.with_patience(Duration::from_secs(3)),
        Err(error) => return println!("error: {error}"),
    };
    match task.as_str() {
        "measure" => measure(&store),
        "read" => read(&store),
        "wait" => {
            while !store.is_idle() {
                std::thread::sleep(Duration::from_millis(20));
            }
            println!("waited");
        }
        "remove" => {
            store.remove(1).unwrap();
            println!("removed");
        }
        other => panic!("{other}"),
    }
}

/// Three points, of which the second is large.
fn measure(store: &Store) {
    let points = (0..).zip((0..RECORDS.len()).map(|point| vec![point])).collect();
    let run = NewRun { points, repetitions: 1, ..new_run(Backend::Sim, "a = 1\n") };
    let run = match store.begin(run) {
        Ok(run) => run,
        Err(error) => return println!("error: {error}"),
    };
    for (point, records) in (0..).zip(RECORDS) {
        let mut writer = run.begin_repetition(point, 0, &["voice"]).unwrap();
        // Noise, so that it does not shrink.
        let noise = |n: u32| n.wrapping_mul(2_654_435_761).rotate_left(n % 31);
        (0..records).for_each(|n| {
            let mut record = record(n);
            record.payload = noise(n);
            record.received =
                record.received.map(|at| at + trunkline_core::Duration::from_nanos(u64::from(noise(!n))));
            writer.write(0, &record);
        });
        let audio = writer.audio_directory();
        std::fs::create_dir_all(&audio).unwrap();
        let audio = audio.join("voice-0-0.wav");
        std::fs::write(&audio, "RIFF").unwrap();
        writer.close().unwrap().finish(&summary(false), &[audio]).unwrap();
        println!("stored {point}");
    }
    let info = run.finish_telling(Status::Complete, &|warning| println!("warning: {warning}")).unwrap();
    println!("finished {:?}", info.status);
}

/// Everything, as if it had been measured here.
fn read(store: &Store) {
    let run = store.run(1).unwrap();
    for (point, records) in run.points.iter().zip(RECORDS) {
        let repetition = &point.repetitions[0];
        for path in repetition.traces.iter().map(|(_, path)| path).chain(&repetition.audio) {
            if let Err(error) = store.fetch(&run.info, path) {
                return println!("error: {error}");
            }
        }
        assert_eq!(sequences(&repetition.traces[0].1), (0..records).collect::<Vec<_>>());
        assert_eq!(std::fs::read(&repetition.audio[0]).unwrap(), b"RIFF");
    }
    let mut archive = Vec::new();
    store.export(1, &mut archive).unwrap();
    assert!(archive.len() > 8 << 20, "{} bytes", archive.len());
    println!("read {:?}", run.info.status);
}

/// A bucket's server, and the door to it.
struct Bucket {
    server: Child,
    port: u16,
    door: u16,
    open: Arc<AtomicBool>,
}

impl Bucket {
    /// Starts one with the bucket `team`; `None` where moto is not installed. If it is strict, it asks for keys of which there
    /// are none.
    fn start(is_strict: bool) -> Option<Bucket> {
        let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let moto = |arguments: &[&str]| {
            let mut command = Command::new(&python);
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        if !moto(&["-c", "import moto.server"]).status().is_ok_and(|status| status.success()) {
            skips::skip("moto is not installed; `.ci/run` installs it into the folder of `$PYTHON`");
            return None;
        }
        let free = || TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free().local_addr().unwrap().port();
        let mut command = moto(&["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
        if is_strict {
            // The bucket is made before.
            command.env("INITIAL_NO_AUTH_ACTION_COUNT", "1");
        }
        let server = command.spawn().unwrap();
        let listener = free();
        let (door, open) = (listener.local_addr().unwrap().port(), Arc::new(AtomicBool::new(true)));
        let is_open = Arc::clone(&open);
        std::thread::spawn(move || {
            listener.incoming().flatten().for_each(|from| keep_door(from, port, &is_open));
        });
        let bucket = Bucket { server, port, door, open };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(bucket.asked("PUT", "/team").starts_with("HTTP/1.1 200"), "{}", bucket.asked("PUT", "/team"));
        Some(bucket)
    }

    fn shut(&self, is_shut: bool) {
        self.open.store(!is_shut, Ordering::Relaxed);
    }

    /// The names of what is there.
    fn names(&self) -> Vec<String> {
        let answer = self.asked("GET", "/team?list-type=2&prefix=runs/");
        let names = answer.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>"));
        names.map(|(name, _)| name.to_owned()).collect()
    }

    fn asked(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = "Host: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0";
        write!(stream, "{method} {path} HTTP/1.1\r\n{head}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Lets a connection through while the door is open.
fn keep_door(from: TcpStream, port: u16, is_open: &Arc<AtomicBool>) {
    if !is_open.load(Ordering::Relaxed) {
        return; // dropped
    }
    let to = TcpStream::connect(("127.0.0.1", port)).unwrap();
    for (mut from, mut to) in [(from.try_clone().unwrap(), to.try_clone().unwrap()), (to, from)] {
        let is_open = Arc::clone(is_open);
        std::thread::spawn(move || {
            let mut bytes = vec![0; 64 << 10];
            while let Ok(read @ 1..) = from.read(&mut bytes) {
                if !is_open.load(Ordering::Relaxed) || to.write_all(&bytes[..read]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
        });
    }
}

/// A team: a database, a bucket, and hosts with folders of their own.
struct Team {
    database: PostgresServer,
    bucket: Bucket,
    hosts: [tempfile::TempDir; 2],
}

impl Team {
    fn start(is_strict: bool) -> Option<Team> {
        let bucket = Bucket::start(is_strict)?;
        let hosts = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        Some(Team { database: PostgresServer::start()?, bucket, hosts })
    }

    fn spawn(&self, host: usize, task: &str) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(CHILD, task)
            .env(URL, format!("{}&files=s3://team/runs", self.database.url()))
            .env(FILES, self.hosts[host].path())
            .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.bucket.door))
            .env("AWS_ACCESS_KEY_ID", "somebody")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_REGION", "us-east-1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// What a host says until its end.
    fn run(&self, host: usize, task: &str) -> String {
        let output = self.spawn(host, task).wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{said}");
        said
    }

    /// The run as the database and a host's folder have it.
    fn stored(&self, host: usize) -> RunInfo {
        let store = Store::connect(&self.database.url(), self.hosts[host].path()).unwrap();
        store.runs().unwrap().remove(0)
    }

    fn is_pending(&self) -> bool {
        self.stored(0).directory.join("files.pending").exists()
    }
}

/// What a run of [`RECORDS`] has: a trace and a sound for each point, and the experiment.
const WHOLE: usize = 2 * RECORDS.len() + 1;

#[test]
fn what_one_host_measures_another_reads() {
    let Some(team) = Team::start(false) else { return };
    let said = team.run(0, "measure");
    assert!(said.contains("finished Complete") && !said.contains("warning"), "{said}");
    assert_eq!(team.bucket.names().len(), WHOLE, "{:?}", team.bucket.names());
    assert!(!team.is_pending());
    let said = team.run(1, "read");
    assert!(said.contains("read Complete"), "{said}");
    // Once it is here, it stays here.
    team.bucket.shut(true);
    assert!(team.run(1, "read").contains("read Complete"));
    let unfinished = std::fs::read_dir(team.stored(1).directory.join("traces")).unwrap();
    assert_eq!(unfinished.count(), RECORDS.len());
    team.bucket.shut(false);
    assert!(team.run(1, "remove").contains("removed"));
    assert_eq!(team.bucket.names(), [] as [&str; 0]);
}

#[test]
fn a_server_that_is_away_is_waited_for_told_and_caught_up_with() {
    let Some(team) = Team::start(false) else { return };
    let mut child = team.spawn(0, "measure");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("stored 0")));
    team.bucket.shut(true);
    let said: Vec<String> = lines.collect();
    assert!(child.wait().unwrap().success());
    let warning = said.iter().find(|line| line.contains("warning")).unwrap_or_else(|| panic!("{said:?}"));
    assert!(warning.contains("s3://team/runs") && warning.contains("complete on this host"), "{warning}");
    assert!(said.iter().any(|line| line.contains("finished Complete")), "{said:?}");
    assert!(team.is_pending() && team.bucket.names().len() < WHOLE);
    // The other host is told that it is not there yet.
    team.bucket.shut(false);
    assert!(team.run(1, "read").contains("is not on this host"));
    assert!(team.run(0, "wait").contains("waited"));
    assert_eq!(team.bucket.names().len(), WHOLE);
    assert!(!team.is_pending());
    assert!(team.run(1, "read").contains("read Complete"));
}

#[test]
fn a_process_that_is_killed_while_it_uploads_is_continued() {
    let Some(team) = Team::start(false) else { return };
    for round in 0..3 {
        let mut child = team.spawn(0, "measure");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("stored 1")));
        std::thread::sleep(Duration::from_millis(15 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(team.run(0, "wait").contains("waited"));
        let store = Store::connect(&team.database.url(), team.hosts[0].path()).unwrap();
        let run = store.run(store.find("latest").unwrap()).unwrap();
        assert!(!run.info.directory.join("files.pending").exists());
        let folder = run.info.directory.file_name().unwrap().to_string_lossy().into_owned();
        let there: Vec<String> =
            team.bucket.names().into_iter().filter(|name| name.contains(&format!("/{folder}-"))).collect();
        let here = run.points.iter().flat_map(|point| &point.repetitions);
        for (_, trace) in here.flat_map(|repetition| &repetition.traces) {
            let name = trace.file_name().unwrap().to_string_lossy();
            assert!(there.iter().any(|there| there.ends_with(&*name)), "{name} of {there:?}");
        }
    }
}

#[test]
fn who_may_not_write_is_told_before_anything_is_measured() {
    let Some(team) = Team::start(true) else { return };
    let said = team.run(0, "measure");
    assert!(said.contains("error: ") && said.contains("AWS_ACCESS_KEY_ID"), "{said}");
    assert!(!said.contains("stored"), "{said}");
    assert!(Store::connect(&team.database.url(), team.hosts[0].path()).unwrap().runs().unwrap().is_empty());
    assert_eq!(std::fs::read_dir(team.hosts[0].path().join("runs")).unwrap().count(), 0);
}
