//! What a URP conversation can be told.

use core::ops::RangeInclusive;

use trunkline_core::Duration;

use super::wire;

/// Sizes that a block may have, in bytes.
pub const BLOCK: RangeInclusive<usize> = 16..=wire::MAX_BLOCK;

/// How many blocks a window may have: one less than sequence numbers.
pub const WINDOW: RangeInclusive<u8> = 1..=7;

/// Options of a URP conversation; each end has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UrpConfig {
    /// The largest block that this end sends, in bytes: 16 to 1024.
    pub block: usize,
    /// How many blocks this end has under way at most: 1 to 7.
    pub window: u8,
    /// The most data in a packet, in bytes: a block leaves in packets of at most this. What is sent again leaves in
    /// whole blocks.
    pub packet: usize,
    /// With at most so many blocks under way a full window is filled again: the low-water mark of the writer's stream.
    /// `None`: one less than the window, which then slides with every block that the peer hands on.
    pub low_water: Option<u8>,
    /// How many bytes wait here for being sent and acknowledged before no further message is taken. Whatever its length,
    /// a message is taken when nothing waits to be sent.
    pub send_buffer: usize,
    /// How long nothing moves before the peer is asked for its state.
    pub timeout: Duration,
    /// After how long without any answer the peer counts as gone; `None` for never. Looked at with every timeout.
    pub patience: Option<Duration>,
}

impl Default for UrpConfig {
    /// Three blocks of 256 bytes and one second (Hawley 1989 sections 1.1 and 4.1.1); a send buffer of 64 KiB and a
    /// minute's patience, which are ours.
    fn default() -> UrpConfig {
        UrpConfig {
            block: 256,
            window: 3,
            packet: wire::MAX_BLOCK,
            low_water: None,
            send_buffer: 64 << 10,
            timeout: Duration::from_secs(1),
            patience: Some(Duration::from_secs(60)),
        }
    }
}

/// Why a URP conversation cannot be set up as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrpConfigError {
    /// A block size out of range.
    #[error("URP's block is {0} bytes; expected {min} to {max}", min = BLOCK.start(), max = BLOCK.end())]
    Block(usize),
    /// A window out of range.
    #[error("URP's window is {0} blocks; expected {min} to {max}", min = WINDOW.start(), max = WINDOW.end())]
    Window(u8),
    /// A timeout of zero.
    #[error("URP's timeout is zero; expected more")]
    Timeout,
}

impl UrpConfig {
    /// Finds what [`UrpEndpoint`](super::UrpEndpoint) would refuse.
    ///
    /// # Errors
    /// What is out of its range.
    pub fn check(&self) -> Result<(), UrpConfigError> {
        if !BLOCK.contains(&self.block) {
            Err(UrpConfigError::Block(self.block))
        } else if !WINDOW.contains(&self.window) {
            Err(UrpConfigError::Window(self.window))
        } else if self.timeout == Duration::ZERO {
            Err(UrpConfigError::Timeout)
        } else {
            Ok(())
        }
    }
}
