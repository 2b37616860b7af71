//! The processes under observation, in a folder of their own.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::faults::Proxy;

const PATIENCE: Duration = Duration::from_secs(30);
pub(super) const WIRE: &str = "endure";

/// An agent of this host.
pub(super) struct Agent {
    pub(super) name: &'static str,
    /// Its address and port.
    pub(super) address: String,
    child: Running,
}

/// A process, which is killed when this is dropped.
pub(super) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Most have ended in order.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder, which is removed when this is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            anstream::eprintln!("{}: {error}", self.0.display());
        }
    }
}

/// All processes, their addresses and their folder.
pub(super) struct Place {
    program: PathBuf,
    pub(super) berlin: Agent,
    pub(super) ottawa: Agent,
    /// Killed again and again, and hence not observed.
    pub(super) halifax: Agent,
    pub(super) reflect: (Running, String),
    pub(super) serve: (Running, String),
    wire: Running,
    /// A reflector on the wire.
    inside: Running,
    /// Between the controller and berlin.
    pub(super) proxy: Proxy,
    /// Removed last.
    folder: Folder,
}

/// A process to sample.
#[derive(Clone)]
pub(super) struct Monitored {
    pub(super) name: &'static str,
    id: u32,
}

impl Place {
    /// Starts everything and enrols at the agents.
    pub(super) fn start(program: &Path) -> Result<Place, String> {
        let program = program.canonicalize().map_err(|e| {
            format!("{}: {e}; `cargo build --package trunkline` builds it", program.display())
        })?;
        let folder = std::env::temp_dir().join(format!("trunkline-endure-{}", std::process::id()));
        fs::create_dir_all(folder.join("run")).map_err(|e| format!("{}: {e}", folder.display()))?;
        let folder = Folder(folder);
        let start = Start { program: &program, folder: &folder.0 };
        let berlin = start.agent("berlin", &start.free_port("127.0.0.2")?)?;
        let ottawa = start.agent("ottawa", &start.free_port("127.0.0.3")?)?;
        let halifax = start.agent("halifax", &start.free_port("127.0.0.4")?)?;
        let reflect = start.process("reflect", &["reflect", "--listen", "127.0.0.1:0"], "reflecting at ")?;
        let serve =
            ["serve", "--listen", "127.0.0.1:0", "--no-login", "--browser", "never", "--store", "served"];
        let serve = start.process("serve", &serve, "serving on http://")?;
        let link = ["--link", "10 Mbit/s, 5 ms"];
        let up = [&["wire", "up", "--foreground", "--name", WIRE][..], &link].concat();
        let (wire, _) = start.process("wire", &up, "wire `endure` is up")?;
        let exec = ["wire", "exec", "--wire", WIRE, "server", "--"];
        let own = program.to_string_lossy();
        let server = [&exec[..], &[&own, "reflect"]].concat();
        let (inside, _) = start.process("inside", &server, "reflecting at ")?;
        let proxy = Proxy::start(&berlin.address).map_err(|e| format!("a proxy does not start: {e}"))?;
        let place = Place {
            berlin,
            ottawa,
            halifax,
            reflect,
            serve,
            wire,
            inside,
            proxy,
            program: program.clone(),
            folder,
        };
        for (name, address) in [
            (place.berlin.name, &place.proxy.address),
            (place.ottawa.name, &place.ottawa.address),
            (place.halifax.name, &place.halifax.address),
        ] {
            place.enrol(name, address)?;
        }
        Ok(place)
    }

    fn enrol(&self, name: &str, address: &str) -> Result<(), String> {
        let pair = self.command(&["agent", "pair", "--state", &format!("{name}.state")]).output();
        let pair = pair.map_err(|e| format!("agent pair: {e}"))?;
        let printed = String::from_utf8_lossy(&pair.stdout);
        let code = printed.lines().find_map(|line| line.trim().strip_prefix("trunkline agent enrol "));
        let code = code.and_then(|line| line.split_whitespace().nth(1));
        let code =
            code.ok_or_else(|| format!("no code: {printed}{}", String::from_utf8_lossy(&pair.stderr)))?;
        let enrolled = self.command(&["agent", "enrol", address, code, "--name", "studio"]).output();
        let enrolled = enrolled.map_err(|e| format!("agent enrol: {e}"))?;
        if enrolled.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&enrolled.stderr).into_owned())
        }
    }

    pub(super) fn folder(&self) -> std::path::Display<'_> {
        self.folder.0.display()
    }

    /// The program with these arguments, in the folder.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        Start { program: &self.program, folder: &self.folder.0 }.command(arguments)
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    pub(super) fn monitored(&self) -> impl Iterator<Item = Monitored> {
        let all = [
            ("agent berlin", &self.berlin.child.0),
            ("agent ottawa", &self.ottawa.child.0),
            ("reflect", &self.reflect.0.0),
            ("serve", &self.serve.0.0),
            ("wire", &self.wire.0),
        ];
        all.map(|(name, child)| Monitored { name, id: child.id() }).into_iter()
    }

    /// Kills halifax and starts it again at the same address.
    pub(super) fn kill_halifax(&mut self, pause: Duration) -> Result<(), String> {
        let child = &mut self.halifax.child.0;
        child.kill().and_then(|()| child.wait()).map_err(|e| format!("halifax cannot be killed: {e}"))?;
        thread::sleep(pause);
        let start = Start { program: &self.program, folder: &self.folder.0 };
        self.halifax = start.agent(self.halifax.name, &self.halifax.address)?;
        Ok(())
    }

    /// Ends every process in order, and returns what was wrong with one.
    pub(super) fn end(&mut self) -> Vec<String> {
        let mut problems = Vec::new();
        let all = [
            ("inside", &mut self.inside),
            ("berlin", &mut self.berlin.child),
            ("ottawa", &mut self.ottawa.child),
            ("halifax", &mut self.halifax.child),
            ("reflect", &mut self.reflect.0),
            ("serve", &mut self.serve.0),
            ("wire", &mut self.wire),
        ];
        for (name, child) in all {
            let child = &mut child.0;
            match child.try_wait() {
                Ok(Some(status)) if name != "inside" => {
                    problems.push(format!("{name} ended early ({status})"))
                }
                Ok(Some(_)) => {}
                _ => {
                    signal(child, "TERM");
                    if !has_ended(child, PATIENCE) {
                        problems
                            .push(format!("{name} did not end within {} s of SIGTERM", PATIENCE.as_secs()));
                    }
                }
            }
            let log = fs::read_to_string(self.folder.0.join(format!("{name}.log"))).unwrap_or_default();
            if let Some(line) = log.lines().find(|line| line.contains("panicked at")) {
                problems.push(format!("{name}: {line}"));
            }
        }
        problems
    }
}

/// Starts processes.
struct Start<'p> {
    program: &'p Path,
    folder: &'p Path,
}

impl Start<'_> {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command.args(arguments).current_dir(self.folder).stdin(Stdio::null()).env("RUST_BACKTRACE", "0");
        for (variable, folder) in [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_RUNTIME_DIR", "run"),
            ("TRUNKLINE_STORE", "store"),
        ] {
            command.env(variable, self.folder.join(folder));
        }
        command
    }

    /// Starts a process, waits for a line that begins so, and returns the word after it.
    fn process(&self, name: &str, arguments: &[&str], ready: &str) -> Result<(Running, String), String> {
        let path = self.folder.join(format!("{name}.log"));
        let log = fs::File::options().create(true).append(true).open(&path);
        let log = log.map_err(|e| format!("{}: {e}", path.display()))?;
        let old = log.metadata().map_or(0, |metadata| metadata.len()) as usize;
        let both = log.try_clone().map_err(|e| format!("{}: {e}", path.display()))?;
        let child = self.command(arguments).stdout(both).stderr(log).spawn();
        let mut child = Running(child.map_err(|e| format!("{name}: {e}"))?);
        let began = Instant::now();
        loop {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let line = text.get(old..).and_then(|new| new.lines().find_map(|line| line.split_once(ready)));
            if let Some((_, rest)) = line {
                let word = rest.split([' ', ',', ';']).next().unwrap_or_default().to_owned();
                return Ok((child, word));
            }
            if began.elapsed() > PATIENCE || child.0.try_wait().is_ok_and(|status| status.is_some()) {
                return Err(format!("{name} does not start: {text}"));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn agent(&self, name: &'static str, address: &str) -> Result<Agent, String> {
        // Runs fit, except the one that is to reach the limit.
        let text = format!(
            "name = \"{name}\"\nlisten = \"{address}\"\n[limits]\nmemory = \"512 MiB\"\ndisk = \"1 MiB\"\nrate = \
             \"20 Mbit/s\"\n[controller-default]\nrate = \"20 Mbit/s\"\nto = [\"127.0.0.0/8\"]\n"
        );
        let config = format!("{name}.toml");
        fs::write(self.folder.join(&config), text).map_err(|e| format!("{config}: {e}"))?;
        let arguments = ["agent", "--config", &config, "--state", &format!("{name}.state")];
        let (child, address) = self.process(name, &arguments, &format!("{name} listens at "))?;
        Ok(Agent { name, address, child })
    }

    /// A port that is free now.
    fn free_port(&self, ip: &str) -> Result<String, String> {
        let listener = TcpListener::bind((ip, 0)).and_then(|listener| listener.local_addr());
        listener.map(|address| address.to_string()).map_err(|e| format!("{ip}: {e}"))
    }
}

/// Sends a signal.
pub(super) fn signal(child: &Child, name: &str) {
    // It may have ended.
    let _ = Command::new("kill").args(["-s", name, &child.id().to_string()]).stderr(Stdio::null()).status();
}

/// Waits until it ends.
pub(super) fn has_ended(child: &mut Child, within: Duration) -> bool {
    let began = Instant::now();
    while began.elapsed() < within {
        if child.try_wait().is_ok_and(|status| status.is_some()) {
            return true;
        }
        thread::sleep(Duration::from_millis(50));
    }
    false
}

impl Monitored {
    /// Resident memory in KiB without the pages of files, descriptors and threads of the process and the processes that it
    /// has started itself (those of a wire's hosts); `None` if it has ended.
    pub(super) fn read(&self) -> Option<[f64; 3]> {
        let mut sum = of_process(self.id)?;
        for child in children(self.id) {
            let is_init =
                fs::read(format!("/proc/{child}/cmdline")).is_ok_and(|line| line.ends_with(b"wire\0init\0"));
            if let Some(counts) = of_process(child).filter(|_| is_init) {
                sum = [0, 1, 2].map(|index| sum[index] + counts[index]);
            }
        }
        Some(sum)
    }

    /// Processor time in hundredths of a second, with that of all its descendants.
    pub(super) fn ticks(&self) -> u64 {
        let own = ticks(&self.id.to_string());
        own + children(self.id).map(|id| Monitored { name: self.name, id }.ticks()).sum::<u64>()
    }
}

fn of_process(id: u32) -> Option<[f64; 3]> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let number = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok())
    };
    let descriptors = fs::read_dir(format!("/proc/{id}/fd")).ok()?.count() as f64;
    Some([number("RssAnon:")? + number("RssShmem:")?, descriptors, number("Threads:")?])
}

/// Not every kernel lists the children of a process.
fn children(id: u32) -> impl Iterator<Item = u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(move |child| {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parent == Some(id)
    })
}

/// Processor time of a process and of the children for which it has waited.
pub(super) fn ticks(id: &str) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum()
}
