//! How a live run is made.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use trunkline_core::Duration;
use trunkline_transport::framing::Key;

use crate::ceiling::Limited;
use crate::channel::Channel;

/// How a live run is made, beside what the experiment says.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// Where the other end comes from.
    pub far_end: FarEnd,
    /// The address of the far end's sockets.
    pub address: IpAddr,
    /// That of ours, if it is another one.
    pub near_address: Option<IpAddr>,
    /// UDP and TCP port of the far end; conversations over protocol engines of ours have UDP ports from the next on. 0
    /// lets the system choose.
    pub port: u16,
    /// Whether the sender spins before each departure.
    pub spin: Spin,
    /// Whether receivers sleep until something comes.
    pub receive: Receive,
    /// Take the kernel's time stamps for arrivals of UDP, where the kernel stamps.
    pub kernel_stamps: bool,
    /// How long connecting and every other step of the set-up may take.
    pub patience: Duration,
    /// What the owner of the host lets flows without a pace of their own send.
    pub limited: Limited,
    /// Marks the messages of this run; drawn at random if none.
    pub key: Option<Key>,
    /// Every so-manieth packet of a protocol engine is lost before it reaches its socket, at both ends; 0 for none. For
    /// tests.
    #[doc(hidden)]
    pub lose_every: u32,
}

/// Where the other end comes from.
#[derive(Clone, Debug)]
pub enum FarEnd {
    /// A program of this host that calls [`far_end::serve`](crate::far_end::serve) on its standard input and output.
    Process {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<OsString>,
    },
    /// A thread of this process: for tests, and where no process can be started. It shares our scheduler and memory,
    /// so its latencies are flattering.
    Thread,
    /// A host of its own, over a connection to it.
    Channel(Channel),
}

/// When the sender spins over the last [`Pacer::SPIN`](trunkline_io::Pacer::SPIN) before a departure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spin {
    /// With fewer than 64 channels in total.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never: it only sleeps.
    Never,
}

/// How receivers of UDP wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Receive {
    /// They sleep until something comes.
    #[default]
    Blocking,
    /// They look again and again, at both ends: the shortest latency, and a core each.
    Polling,
}

impl LiveOptions {
    /// On the loopback address, any port, everything else as by default.
    pub fn new(far_end: FarEnd) -> LiveOptions {
        LiveOptions {
            far_end,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            near_address: None,
            port: 0,
            spin: Spin::Auto,
            receive: Receive::Blocking,
            kernel_stamps: false,
            patience: Duration::from_secs(10),
            limited: Limited::default(),
            key: None,
            lose_every: 0,
        }
    }

    /// The addresses of our sockets and of the far end's.
    pub(crate) fn ends(&self) -> [IpAddr; 2] {
        [self.near_address.unwrap_or(self.address), self.address]
    }
}

impl Spin {
    /// How long to spin when so many channels send.
    pub(crate) fn stretch(self, channels: u64) -> Duration {
        let spins = match self {
            Spin::Auto => channels < 64,
            Spin::Always => true,
            Spin::Never => false,
        };
        if spins { trunkline_io::Pacer::SPIN } else { Duration::ZERO }
    }
}
