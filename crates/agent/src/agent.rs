//! The agent as its owner starts it: its folder, its ports, and its end.

use std::fs::{self, File, TryLockError};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use trunkline_control::{Fingerprint, Identity, Listener, PeerError, Peers};
use trunkline_io::admission;

use crate::config::Config;
use crate::daemon::lobby::Lobby;
use crate::daemon::{Daemon, LOOK};
use crate::error::AgentError;
use crate::notices::Notices;
use crate::settings::{ADDRESS_FILE, CONTROLLERS, SPOOL, Settings, Settled, Stop};

/// An agent that listens, and answers once it is [served](Agent::serve).
#[derive(Debug)]
pub struct Agent {
    settings: Settled,
    listener: Listener,
    metrics: Option<TcpListener>,
    _lock: File,
}

/// The sockets of an agent, bound before privileges are given up.
#[derive(Debug)]
pub struct Ports {
    control: TcpListener,
    metrics: Option<TcpListener>,
}

impl Ports {
    /// Binds the sockets that a configuration names.
    ///
    /// # Errors
    /// If an address is none of this host's, or somebody else has a port.
    pub fn bind(config: &Config) -> Result<Ports, AgentError> {
        let address = config.listen;
        let control = admission::listen(address)
            .map_err(|error| PeerError::Listen { address: address.to_string(), error })?;
        let metrics = config
            .metrics
            .map(|address| TcpListener::bind(address).map_err(|error| AgentError::Listen { address, error }));
        Ok(Ports { control, metrics: metrics.transpose()? })
    }
}

impl Agent {
    /// Opens the agent's ports and its folder, as [`Ports::bind`] and [`Agent::open`].
    ///
    /// # Errors
    /// As theirs.
    pub fn bind(settings: Settings) -> Result<Agent, AgentError> {
        let ports = Ports::bind(&settings.config)?;
        Agent::open(settings, ports)
    }

    /// Opens the agent's folder. The process must have given up by then what it does not need: another user may be able
    /// to change what is in the folder.
    ///
    /// # Errors
    /// If another agent has the folder, or if the folder or the key in it cannot be used.
    pub fn open(settings: Settings, ports: Ports) -> Result<Agent, AgentError> {
        let Settings { config, state, log } = settings;
        make_folder(&state)?;
        let lock = lock(&state)?;
        let identity = Identity::open(&state.join("identity"))?;
        Peers::open(&state.join(CONTROLLERS))?;
        make_folder(&state.join(SPOOL))?;
        let listener = Listener::on(ports.control, &identity)?;
        let settings = Settled { config, state, notices: Notices::new(log), identity };
        Ok(Agent { settings, listener, metrics: ports.metrics, _lock: lock })
    }

    /// Where it listens for controllers and other agents.
    pub fn address(&self) -> SocketAddr {
        self.listener.local_address()
    }

    /// Where it answers for its metrics, if it does.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().and_then(|metrics| metrics.local_addr().ok())
    }

    /// By what others know it.
    pub fn fingerprint(&self) -> Fingerprint {
        self.settings.identity.fingerprint()
    }

    /// Answers controllers and other agents until it is told to stop. Then running parts end in order, and what was
    /// recorded is kept.
    ///
    /// # Errors
    /// If what is kept cannot be taken up, or no thread can be started.
    pub fn serve(self, stop: &Stop) -> Result<(), AgentError> {
        let Agent { settings, listener, metrics, _lock } = self;
        let state = settings.state.clone();
        let daemon = Arc::new(Daemon::open(settings, listener.local_address(), stop.clone())?);
        daemon.recover();
        let address_file = state.join(ADDRESS_FILE);
        let address = listener.local_address().to_string();
        fs::write(&address_file, address).map_err(AgentError::folder(&address_file))?;
        if let Some(metrics) = metrics {
            let of_metrics = Arc::clone(&daemon);
            daemon.spawn("metrics", move || crate::http::serve(&metrics, &of_metrics))?;
        }
        let of_keeper = Arc::clone(&daemon);
        daemon.spawn("keeper", move || of_keeper.keep_house())?;
        let greeting = format!(
            "{} listens at {}, key {}",
            daemon.config.name,
            listener.local_address(),
            daemon.identity.fingerprint()
        );
        daemon.notices.log(&greeting);
        let mut lobby = Lobby::default();
        while !stop.is_told() {
            if let Err(error) = lobby.turn(&daemon, &listener, LOOK) {
                daemon.notices.tell(error.to_string());
                thread::sleep(LOOK.to_std());
            }
        }
        drop(lobby);
        drop(listener);
        daemon.leave();
        let _ = fs::remove_file(address_file);
        Ok(())
    }
}

fn make_folder(path: &Path) -> Result<(), AgentError> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(AgentError::folder(path))
}

/// One agent to a folder.
fn lock(state: &Path) -> Result<File, AgentError> {
    let path = state.join("lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(AgentError::folder(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(AgentError::Busy { path: state.to_owned() }),
        Err(TryLockError::Error(error)) => Err(AgentError::folder(&path)(error)),
    }
}
