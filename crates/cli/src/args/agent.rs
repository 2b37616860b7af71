//! Arguments of `trunkline agent`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `agent`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Agent {
    /// What to do instead of being the agent.
    #[command(subcommand)]
    pub action: Option<AgentAction>,

    /// Where the agent listens: an address of this host, with a port if it is another than 4781 [default: as the configuration
    /// says, else every address]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub listen: Option<SocketAddr>,

    /// What the owner of this host allows [default: /etc/trunkline/agent.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Where the agent's state is.
    #[command(flatten)]
    pub state: State,

    /// Become this user once the ports are open; for an agent that root starts
    ///
    /// Of root's rights only two are kept: raw sockets (CAP_NET_RAW), for protocols that the kernel does not know, and
    /// scheduling (CAP_SYS_NICE), to send on time.
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
}

/// Where an agent's state is.
#[derive(Debug, Args)]
pub struct State {
    /// The agent's folder: its key, the controllers that it knows, and what it keeps for them [default: /var/lib/trunkline for
    /// root, else $XDG_STATE_HOME/trunkline/agent]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

/// What is done with agents.
#[derive(Debug, Subcommand)]
pub enum AgentAction {
    /// On the agent's host: make a code with which one controller enrols, valid for ten minutes
    Pair {
        /// Only a controller that calls itself so can use the code
        #[arg(long, value_name = "NAME")]
        name: Option<String>,

        /// Where the agent's state is.
        #[command(flatten)]
        state: State,
    },

    /// At the desk: enrol at an agent, with the code that `trunkline agent pair` prints on its host
    Enrol {
        /// The agent's host, with its port if it is another than 4781
        #[arg(value_name = "HOST")]
        address: String,

        /// The code; capitals, hyphens and spaces do not matter
        #[arg(value_name = "CODE", required = true)]
        code: Vec<String>,

        /// What this controller is called at the agent [default: this host's name]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },

    /// Show what an agent is doing, what it keeps, and what its owner allows
    Status {
        /// An agent that is enrolled here, by its name or address [default: the one of this host]
        #[arg(value_name = "AGENT")]
        agent: Option<String>,

        /// Where the state of this host's agent is.
        #[command(flatten)]
        state: State,
    },

    /// List the agents that are enrolled here, and the controllers that this host's agent knows
    List {
        /// Where the state of this host's agent is.
        #[command(flatten)]
        state: State,
    },

    /// On the agent's host: no longer serve a controller; its parts end, and what is kept for it is deleted
    Revoke {
        /// The controller
        #[arg(value_name = "CONTROLLER")]
        name: String,

        /// Where the agent's state is.
        #[command(flatten)]
        state: State,
    },

    /// On the agent's host: list the measurements that the agent keeps for controllers, and delete them on request
    ///
    /// Parts that are running are left alone: `trunkline agent revoke` ends them.
    Clean {
        /// Only those of this controller
        #[arg(long, value_name = "CONTROLLER")]
        controller: Option<String>,

        /// Delete them; what their controllers have not collected is lost
        #[arg(long)]
        delete: bool,

        /// The agent's folder.
        #[command(flatten)]
        state: State,
    },

    /// At the desk: forget an agent
    Forget {
        /// The agent
        #[arg(value_name = "AGENT")]
        name: String,
    },
}

/// An address, with or without a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    let alone = || text.parse().ok().map(|ip| SocketAddr::new(ip, trunkline_agent::config::DEFAULT_PORT));
    text.parse().ok().or_else(alone).ok_or_else(|| {
        "expected an address of this host, with or without a port: `192.0.2.1`, `0.0.0.0:4781`, `[::]:4781`".to_owned()
    })
}
