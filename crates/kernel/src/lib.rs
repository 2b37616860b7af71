//! Linux kernels as hosts of the simulator: User-Mode Linux in virtual time. The simulation owns their clocks, by the
//! protocol of time travel, and is the device of their interfaces, by that of vhost-user; what they send crosses its links.
//!
//! A kernel runs only while nothing else does, so that results do not depend on this machine.
#![cfg(target_os = "linux")]

pub mod build;
mod console;
pub mod device;
pub mod guest;
pub mod hosts;
pub mod init;
pub mod named;
mod queue;
pub mod time_travel;
pub mod vhost;

use std::io;

pub use hosts::Kernels;
pub use named::KernelMeans;

/// Why a kernel cannot be a host.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// Sockets, files, processes.
    #[error("host `{host}`: {what}: {error}")]
    System {
        /// The host.
        host: String,
        /// The step that failed.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
    /// Its network device.
    #[error("host `{host}`: {error}")]
    Device {
        /// The host.
        host: String,
        /// Why.
        error: device::DeviceError,
    },
    /// Its clock.
    #[error("host `{host}`: unknown time-travel operation {operation}")]
    Clock {
        /// The host.
        host: String,
        /// The operation.
        operation: u32,
    },
    /// It does not connect to the simulation's clock.
    #[error(
        "host `{host}`: the kernel does not connect to the simulation's clock; build it with \
         CONFIG_UML_TIME_TRAVEL_SUPPORT, as `trunkline kernel build` does"
    )]
    NoTimeTravel {
        /// The host.
        host: String,
    },
    /// It computes without end.
    #[error(
        "host `{host}`: a program computes without waiting for anything, so virtual time stands still; let it sleep, or \
         wait for the network"
    )]
    Busy {
        /// The host.
        host: String,
    },
    /// It ends at once.
    #[error(
        "host `{host}`: `{kernel}` has ended before it connected to the simulation's clock; it is not a User-Mode Linux with \
         CONFIG_UML_TIME_TRAVEL_SUPPORT, as `trunkline kernel build` builds it"
    )]
    NoKernel {
        /// The host.
        host: String,
        /// The program.
        kernel: String,
    },
    /// It is not set up in time.
    #[error("host `{host}`: it is not ready when the simulation begins; its console has:\n{console}")]
    NotReady {
        /// The host.
        host: String,
        /// Its console.
        console: String,
    },
    /// It has ended.
    #[error("host `{host}`: the kernel has ended; its console has:\n{console}")]
    Ended {
        /// The host.
        host: String,
        /// The last lines of its console.
        console: String,
    },
    /// The scenario has no addresses.
    #[error("the hosts cannot be connected: {0}")]
    Plan(String),
}

impl KernelError {
    /// True if another file or kernel would help, rather than another environment.
    pub fn is_bad_input(&self) -> bool {
        matches!(self, KernelError::NoTimeTravel { .. } | KernelError::NoKernel { .. } | KernelError::Plan(_))
    }
}
