//! The real clock, precise sleeping, batched sockets and what else a driver in real time needs of the operating
//! system. The only crate with unsafe code: thin wrappers over system calls, safe to the outside.
//!
//! Linux is served best (`sendmmsg`, `recvmmsg`, segmentation offload, kernel time stamps, absolute sleeping); other
//! Unix systems get the same interface over the portable calls.

pub mod admission;
#[doc(hidden)]
pub mod bare;
pub mod beneath;
pub mod clock;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod devices_tests;
#[cfg(target_os = "linux")]
pub mod interface;
pub mod jack;
pub mod machine;
mod marking;
pub mod multicast;
pub mod networks;
#[cfg(target_os = "linux")]
pub mod offload;
pub mod pace;
#[cfg(target_os = "linux")]
pub mod packet_ring;
pub mod poll;
pub mod process;
pub mod raw;
pub mod sockets;
pub mod stall;
pub mod tcp;
#[cfg(target_os = "linux")]
pub mod tun;
pub mod udp;

pub use clock::MonotonicClock;
pub use machine::Machine;
pub use marking::Marking;
pub use pace::Pacer;
pub use poll::{Interest, PollSet, Poller, Wakeup};
pub use stall::{StallProbe, Stalls};

/// What a kernel answers that lacks a protocol comes in several numbers.
pub(crate) fn unsupported_protocol(error: std::io::Error) -> std::io::Error {
    match error.raw_os_error() {
        Some(libc::EPROTONOSUPPORT | libc::ESOCKTNOSUPPORT | libc::EAFNOSUPPORT | libc::ENOPROTOOPT) => {
            std::io::Error::new(std::io::ErrorKind::Unsupported, error)
        }
        _ => error,
    }
}
