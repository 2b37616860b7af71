//! The configuration of an agent: what the owner of its host allows, whom, and where it listens.

mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use serde::{Deserialize, Serialize};
use trunkline_core::{Bytes, Duration, Rate};
use trunkline_experiment::Problems;
pub use trunkline_io::networks::Network;

use crate::AgentError;

/// The TCP port of an agent, unless its owner or an experiment says otherwise.
pub const DEFAULT_PORT: u16 = 4781;

/// Where the configuration is looked for if no file is named.
pub const DEFAULT_FILE: &str = "/etc/trunkline/agent.toml";

/// What the owner of a host has written, with the defaults for what is not written.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How the agent is called in messages and lists; the host's own name if that is not said.
    pub name: String,
    /// Where controllers and other agents reach it.
    pub listen: SocketAddr,
    /// Where its metrics are answered, if anywhere.
    pub metrics: Option<SocketAddr>,
    /// The collector that its traces go to (OTLP over HTTP), if any.
    pub traces: Option<String>,
    /// What holds for the host as a whole.
    pub limits: Limits,
    /// What controllers that have a table of their own may do, by their names.
    pub controllers: BTreeMap<String, Permission>,
    /// What every other controller may do.
    pub others: Permission,
}

/// What the agent never exceeds, whoever asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Sent by this host, over all parts together; `None` for whatever the host can.
    pub rate: Option<Rate>,
    /// Conversations at once, over all parts together.
    pub flows: u32,
    /// The daemon's memory (`RLIMIT_DATA`); `None` for whatever the system gives.
    pub memory: Option<Bytes>,
    /// Disk space used by results stored for controllers.
    pub disk: Bytes,
    /// The longest part: sending and waiting for stragglers.
    pub duration: Duration,
    /// How long what nobody has acknowledged is kept whatever happens; after that it goes when disk is short.
    pub keep: Duration,
}

/// What one controller may have this host do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Permission {
    /// Sent by this host over all parts of the controller; `None` for whatever the host's limit leaves.
    pub rate: Option<Rate>,
    /// Conversations at once over all parts of the controller; `None` for whatever the host's limit leaves.
    pub flows: Option<u32>,
    /// The addresses that this host connects and sends to, and for which it is a far end.
    pub to: Vec<Network>,
}

impl Config {
    /// The configuration of a host whose owner has written nothing.
    pub fn with_name(name: &str) -> Config {
        Config {
            name: name.to_owned(),
            listen: SocketAddr::new(IpAddr::from([0, 0, 0, 0]), DEFAULT_PORT),
            metrics: None,
            traces: None,
            limits: Limits::default(),
            controllers: BTreeMap::new(),
            others: Permission::default(),
        }
    }

    /// Reads a configuration; `file` is how messages call it, `host` the name of this host.
    ///
    /// # Errors
    /// Everything that is wrong with the text, each with its place.
    pub fn parse(file: &str, text: &str, host: &str) -> Result<Config, Problems> {
        read::config(file, text, host)
    }

    /// Reads the configuration from a file: `named` by the user, or else [`DEFAULT_FILE`] if there is one.
    ///
    /// # Errors
    /// If the named file cannot be read, or something is wrong with its text.
    pub fn load(named: Option<&Path>) -> Result<Config, AgentError> {
        let host = host_name();
        let path = named.unwrap_or(Path::new(DEFAULT_FILE));
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Config::parse(&path.display().to_string(), &text, &host)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
                Ok(Config::with_name(&host))
            }
            Err(error) => Err(AgentError::Config { path: path.to_owned(), error }),
        }
    }

    /// What the controller with this name may do.
    pub fn permission(&self, controller: &str) -> &Permission {
        self.controllers.get(controller).unwrap_or(&self.others)
    }
}

/// What this host calls itself.
pub fn host_name() -> String {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "agent".to_owned())
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            rate: None,
            flows: 4096,
            memory: None,
            disk: Bytes(10 << 30),
            duration: Duration::from_secs(24 * 3600),
            keep: Duration::from_secs(14 * 24 * 3600),
        }
    }
}

/// Everything that the host's limits leave, in private networks: neither the host itself, nor its neighbours by link-local
/// addresses, nor the Internet.
impl Default for Permission {
    fn default() -> Permission {
        Permission { rate: None, flows: None, to: Network::PRIVATE.to_vec() }
    }
}
