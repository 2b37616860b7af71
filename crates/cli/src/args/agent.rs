//! Arguments of `trunkline agent`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::parsers::address;

/// Arguments of `agent`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Agent {
    /// Something other than running the agent.
    #[command(subcommand)]
    pub action: Option<AgentAction>,

    /// The address and port on which the agent listens [default: from the configuration, otherwise port 4781 of every address]
    #[arg(long, value_name = "ADDRESS", value_parser = address(trunkline_agent::config::DEFAULT_PORT))]
    pub listen: Option<SocketAddr>,

    /// The agent's configuration, with the owner's limits [default: /etc/trunkline/agent.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// The folder of the agent's state.
    #[command(flatten)]
    pub state: State,

    /// Switch to this user after opening the ports, if root starts the agent
    ///
    /// The agent keeps two capabilities: raw sockets (CAP_NET_RAW), for protocols that the kernel lacks, and real-time
    /// scheduling (CAP_SYS_NICE), to send on time.
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
}

/// The folder of an agent's state.
#[derive(Debug, Args)]
pub struct State {
    /// The agent's folder, with its key, its controllers and the results it keeps for them [default: /var/lib/trunkline for
    /// root, otherwise $XDG_STATE_HOME/trunkline/agent]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

/// Subcommands that manage agents.
#[derive(Debug, Subcommand)]
pub enum AgentAction {
    /// On the agent's host: print a pairing code for one controller, valid for ten minutes
    Pair {
        /// Make a code that only the controller of this name can use
        #[arg(long, value_name = "NAME")]
        name: Option<String>,

        /// The folder of the agent's state.
        #[command(flatten)]
        state: State,
    },

    /// On the controller: enrol at an agent, with the code that `trunkline agent pair` prints on its host
    Enrol {
        /// The agent's host [default port: 4781]
        #[arg(value_name = "HOST")]
        address: String,

        /// The code; case, hyphens and spaces are ignored
        #[arg(value_name = "CODE", required = true)]
        code: Vec<String>,

        /// The name of this controller at the agent [default: this host's name]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },

    /// Show an agent's activity, stored data and limits
    Status {
        /// An enrolled agent, by name or address [default: this host's agent]
        #[arg(value_name = "AGENT")]
        agent: Option<String>,

        /// The folder of the state of this host's agent.
        #[command(flatten)]
        state: State,
    },

    /// List the agents enrolled here, and the controllers that this host's agent knows
    List {
        /// The folder of the state of this host's agent.
        #[command(flatten)]
        state: State,
    },

    /// On the agent's host: stop serving a controller, end its parts and delete the data kept for it
    Revoke {
        /// The controller
        #[arg(value_name = "CONTROLLER")]
        name: String,

        /// The folder of the agent's state.
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

    /// On the controller: forget an agent
    Forget {
        /// The agent
        #[arg(value_name = "AGENT")]
        name: String,
    },
}
