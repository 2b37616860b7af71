//! The store of a team, on a PostgreSQL server that the test starts and ends.

#![allow(clippy::unwrap_used, reason = "helpers of tests too")]
#![cfg(unix)]

mod scenarios;

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use scenarios::{new_run, record, summary};
use tempfile::TempDir;
use trunkline_metrics::TraceSink as _;
use trunkline_store::{Backend, Imported, Status, Store, StoreError};
use trunkline_testkit::programs;

/// A server with an empty database, reached over a socket in its own folder.
struct Server {
    programs: PathBuf,
    folder: TempDir,
}

impl Server {
    /// Starts one; `None` where none is installed.
    fn start() -> Option<Server> {
        let Some(programs) = server_programs() else {
            programs::skip("PostgreSQL is not installed; install the Debian package `postgresql`");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        // The server refuses to run as root; whoever it runs as must own its folder.
        if let Some(user) = server_user() {
            chown(folder.path(), Some(user), None).unwrap();
        }
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let server = Server { programs, folder };
        server.done("initdb", &["--pgdata", "data", "--auth", "trust", "--username", "tester", "--no-sync"]);
        let options = format!(
            "-c listen_addresses='' -c unix_socket_directories='{}' -c fsync=off",
            server.folder.path().display()
        );
        server
            .done("pg_ctl", &["--pgdata", "data", "--wait", "--log", "log", "--options", &options, "start"]);
        Some(server)
    }

    fn url(&self) -> String {
        format!("postgresql://tester@localhost/postgres?host={}", self.folder.path().display())
    }

    fn open(&self, files: &Path) -> Store {
        Store::connect(&self.url(), files).unwrap()
    }

    fn done(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(self.programs.join(program));
        if let Some(user) = server_user() {
            command = Command::new("setpriv");
            command.args([
                "--reuid",
                &user.to_string(),
                "--regid",
                &user.to_string(),
                "--clear-groups",
                "--",
            ]);
            command.arg(self.programs.join(program));
        }
        // The server inherits what it is not to hold.
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        assert!(command.status().unwrap().success(), "{program} {arguments:?}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.done("pg_ctl", &["--pgdata", "data", "--wait", "--mode", "immediate", "stop"]);
    }
}

/// Where Debian has them, or wherever the path leads.
fn server_programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.reverse();
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    folders.into_iter().find(|folder| folder.join("initdb").is_file() && folder.join("pg_ctl").is_file())
}

/// As whom the server is to run if the tests run as root.
fn server_user() -> Option<u32> {
    const NOBODY: u32 = 65_534;
    (std::fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own)).ok() == Some(0))
        .then_some(NOBODY)
}

#[test]
fn a_server_keeps_what_a_folder_keeps() {
    let Some(server) = Server::start() else { return };
    let files = tempfile::tempdir().unwrap();
    scenarios::written_in_parallel_interrupted_and_resumed(files.path(), &|| server.open(files.path()));
}

#[test]
fn runs_of_a_team_are_found_marked_and_taken_elsewhere() {
    let Some(server) = Server::start() else { return };
    let (here, there, own) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    scenarios::found_compared_and_removed(here.path(), &|| server.open(here.path()));

    // Two hosts with folders of their own: a run that one measures is left alone by the other.
    let (one, other) = (server.open(here.path()), server.open(there.path()));
    let run = one.begin(new_run(Backend::Sim, "shared = 1\n")).unwrap();
    let id = run.info().unwrap().id;
    assert_eq!(other.run(id).unwrap().info.status, Status::Running);
    assert!(matches!(other.resume(id), Err(StoreError::InUse { .. })));
    assert!(matches!(other.remove(id), Err(StoreError::InUse { .. })));
    assert_eq!(server.open(there.path()).run(id).unwrap().info.status, Status::Running);
    let mut writer = run.begin_repetition(0, 0, &["voice"]).unwrap();
    writer.write(0, &record(1));
    writer.close().unwrap().finish(&summary(false), &[]).unwrap();
    run.finish(Status::Partial).unwrap();
    other.tag(id, "seen elsewhere", true).unwrap();
    assert_eq!(one.run(id).unwrap().info.tags, ["seen elsewhere"]);
    assert_eq!(
        one.run(id).unwrap().points,
        with_folder(other.run(id).unwrap().points, there.path(), here.path())
    );

    // From the team's store into one's own and back: it is known by its key.
    let mut archive = Vec::new();
    one.export(id, &mut archive).unwrap();
    let own = Store::open(own.path()).unwrap();
    assert_eq!(own.import(archive.as_slice()).unwrap(), Imported::New(1));
    assert_eq!(other.import(archive.as_slice()).unwrap(), Imported::Known(id));
    assert_eq!(own.run(1).unwrap().info.tags, ["seen elsewhere"]);
}

fn with_folder(
    mut points: Vec<trunkline_store::StoredPoint>,
    from: &Path,
    to: &Path,
) -> Vec<trunkline_store::StoredPoint> {
    for repetition in points.iter_mut().flat_map(|point| &mut point.repetitions) {
        for (_, path) in &mut repetition.traces {
            *path = to.join(path.strip_prefix(from).unwrap());
        }
    }
    points
}

/// The lock goes with the connection: who opens next finds the run interrupted.
#[test]
fn a_run_whose_process_died_is_partial() {
    let Some(server) = Server::start() else { return };
    let files = tempfile::tempdir().unwrap();
    let store = server.open(files.path());
    let run = store.begin(new_run(Backend::Sim, "a = 1\n")).unwrap();
    // Never dropped, as in a process that is killed; the server then ends its sessions.
    std::mem::forget(run);
    let mut admin = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = 'tester'";
    admin.batch_execute(end).unwrap();
    let again = server.open(files.path());
    assert_eq!(again.runs().unwrap()[0].status, Status::Partial);
    assert!(again.resume(1).is_ok());
}

#[test]
fn addresses_that_lead_nowhere_are_told_without_their_password() {
    let files = tempfile::tempdir().unwrap();
    let error = Store::connect("postgresql://eve:secret@host:port/x", files.path()).unwrap_err();
    assert!(matches!(error, StoreError::Address { .. }) && !error.to_string().contains("secret"), "{error}");
    let nowhere = format!("postgresql://eve:secret@localhost/x?host={}", files.path().display());
    let error = Store::connect(&nowhere, files.path()).unwrap_err();
    assert!(matches!(error, StoreError::Database { .. }) && !error.to_string().contains("secret"), "{error}");
}
