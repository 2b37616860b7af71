//! UDP in batches: many datagrams per system call, with segmentation offload and kernel time stamps where there are
//! any, and the portable calls elsewhere.

mod ecn;
mod receive;
mod send;
mod socket;
#[cfg(target_os = "linux")]
mod system;
#[cfg(test)]
mod tests;

pub use ecn::{EcnField, tell_ecn};
pub use receive::{ReceiveBatch, Wait};
pub use send::SendBatch;
pub(crate) use socket::bind;
pub use socket::{Buffers, MAX_SEGMENTS, SocketOptions, open, open_lite};
pub use socket::{set_receive_timeout, set_segment_size, stamp_received};
