//! A PostgreSQL server of a test's own: started, killed, started again, ended with the test.

#![allow(clippy::unwrap_used, reason = "helpers of tests too")]

use std::os::unix::fs::{MetadataExt as _, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::skips;

/// A server with an empty database, reached over a socket in its own folder.
pub struct PostgresServer {
    programs: PathBuf,
    folder: TempDir,
    options: String,
    /// Where it listens on loopback, if it does.
    port: Option<u16>,
}

impl PostgresServer {
    /// Starts one; `None` where none is installed.
    ///
    /// # Panics
    /// If it is installed and cannot be started.
    pub fn start() -> Option<PostgresServer> {
        PostgresServer::start_with("-c listen_addresses=''", None, |_| {})
    }

    /// Starts one that also listens on loopback, where it speaks only to those who encrypt. It shows this certificate, whose
    /// key is this one, both PEM.
    ///
    /// # Panics
    /// As [`PostgresServer::start`].
    pub fn start_encrypted(certificate: &str, key: &str) -> Option<PostgresServer> {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let options = format!("-c listen_addresses=127.0.0.1 -c port={port} -c ssl=on");
        PostgresServer::start_with(&options, Some(port), |data| {
            for (name, text) in [("server.crt", certificate), ("server.key", key)] {
                let path = data.join(name);
                std::fs::write(&path, text).unwrap();
                std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
                if let Some(user) = server_user() {
                    chown(&path, Some(user), None).unwrap();
                }
            }
            std::fs::write(
                data.join("pg_hba.conf"),
                "local all all trust\nhostssl all all 127.0.0.1/32 trust\n",
            )
            .unwrap();
        })
    }

    fn start_with(options: &str, port: Option<u16>, prepare: impl FnOnce(&Path)) -> Option<PostgresServer> {
        let Some(programs) = server_programs() else {
            skips::skip("PostgreSQL is not installed; install the Debian package `postgresql`");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        // The server refuses to run as root; whoever it runs as must own its folder.
        if let Some(user) = server_user() {
            chown(folder.path(), Some(user), None).unwrap();
        }
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let sockets = folder.path().display();
        let options = format!("{options} -c unix_socket_directories='{sockets}' -c fsync=off");
        let server = PostgresServer { programs, options, port, folder };
        server.done("initdb", &["--pgdata", "data", "--auth", "trust", "--username", "tester", "--no-sync"]);
        prepare(&server.folder.path().join("data"));
        server.start_again();
        Some(server)
    }

    /// Its database over its socket.
    pub fn url(&self) -> String {
        let port = self.port.map_or(String::new(), |port| format!("&port={port}"));
        format!("postgresql://tester@localhost/postgres?host={}{port}", self.folder.path().display())
    }

    /// Its database over loopback, with these parameters.
    ///
    /// # Panics
    /// If it does not listen there.
    pub fn loopback_url(&self, parameters: &str) -> String {
        format!("postgresql://tester@127.0.0.1:{}/postgres?{parameters}", self.port.unwrap())
    }

    /// Kills it with all its processes, as a machine that loses its power does.
    ///
    /// # Panics
    /// If it does not run.
    pub fn kill(&self) {
        let lock = self.folder.path().join("data/postmaster.pid");
        let file = std::fs::read_to_string(&lock).unwrap();
        let main: u32 = file.lines().next().and_then(|line| line.parse().ok()).unwrap();
        let mut all = vec![main];
        all.extend(children(main));
        let numbers: Vec<String> = all.iter().map(u32::to_string).collect();
        // One that ends by itself meanwhile need not be told.
        let _ = Command::new("kill").arg("-9").args(&numbers).stderr(Stdio::null()).status().unwrap();
        while all.iter().any(|process| is_alive(*process)) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        // Where nobody collects the dead, the next server would take this one for alive.
        std::fs::remove_file(lock).unwrap();
        let port = self.port.unwrap_or(5432);
        std::fs::remove_file(self.folder.path().join(format!(".s.PGSQL.{port}.lock"))).unwrap();
    }

    /// Starts it again after it was killed or stopped.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start_again(&self) {
        let arguments =
            ["--pgdata", "data", "--wait", "--log", "log", "--options", self.options.as_str(), "start"];
        self.done("pg_ctl", &arguments);
    }

    fn done(&self, program: &str, arguments: &[&str]) {
        let status = self.command(program, arguments).status().unwrap();
        let log = || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        assert!(status.success(), "{program} {arguments:?}: {}", log());
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.programs.join(program));
        if let Some(user) = server_user() {
            let user = user.to_string();
            command = Command::new("setpriv");
            command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"]);
            command.arg(self.programs.join(program));
        }
        // The server inherits what it is not to hold.
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // One that was killed does not run.
        let arguments = ["--pgdata", "data", "--wait", "--mode", "immediate", "stop"];
        let _ = self.command("pg_ctl", &arguments).stderr(Stdio::null()).status();
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
    (std::fs::metadata("/proc/self").map(|own| own.uid()).ok() == Some(0)).then_some(NOBODY)
}

/// The processes that this one has started and that live.
fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|process| status(*process).is_some_and(|(_, of)| of == parent)).collect()
}

/// Whether it lives: a zombie does not.
fn is_alive(process: u32) -> bool {
    status(process).is_some_and(|(state, _)| state != "Z")
}

/// A process's state and parent.
fn status(process: u32) -> Option<(String, u32)> {
    let line = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before may hold anything.
    let mut fields = line.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}
