//! A stream of audio from device to network and from network to device.
//!
//! ```text
//! frames of a device -> Blocks -> Packer -> packets ... packets -> Unpacker -> Player -> frames of a device
//! ```
//!
//! A [`Stream`] is what both ends have to agree on: channels, sample rate, length of a block, codec, protection against
//! loss, and how blocks become packets. A [`Block`] is so many frames of it, numbered. [`Blocks`] cuts them out of what a
//! device captures, a [`Packer`] makes packets of them, an [`Unpacker`] makes blocks of those, and a [`Player`] plays them
//! at the speed of another device. [`NativePacker`] and [`NativeUnpacker`] speak our own format ([`crate::packet`]).
//!
//! Everything is allocated when it is made: blocks and packets cost no allocation.
//!
//! ```
//! use trunkline_audio::pipeline::{
//!     Blocks, DeviceFormat, NativePacker, NativeUnpacker, Packer, Player, PlayerSettings, Stream, Unpacker,
//! };
//! use trunkline_core::Time;
//!
//! let stream = Stream { channels: 2, sample_rate: 48_000, block_frames: 64, ..Stream::default() };
//! let device = DeviceFormat { channels: 2, sample_rate: 48_000, block_frames: 64 };
//! let mut blocks = Blocks::new(&stream, device)?;
//! let mut packer = NativePacker::new(&stream)?;
//! let mut unpacker = NativeUnpacker::new(&stream)?;
//! let mut player = Player::new(&stream, device, PlayerSettings::default())?;
//!
//! let (now, captured) = (Time::ZERO, [0.5; 2 * 64]);
//! blocks.push(now, &captured, &mut |block| {
//!     packer.pack(&block, &mut |packet| {
//!         let unpacked = unpacker.unpack(now, packet, &mut |block| {
//!             player.insert(now, block);
//!         });
//!         assert_eq!(unpacked, Ok(()));
//!     });
//! });
//! let mut played = [0.0; 2 * 64];
//! player.pull(now, &mut played);
//! # Ok::<(), trunkline_audio::pipeline::StreamError>(())
//! ```

mod blocks;
mod guard;
mod native;
mod player;
mod stages;
mod stream;
#[cfg(test)]
mod tests;

pub use blocks::Blocks;
pub use native::{NativePacker, NativeUnpacker};
pub use player::{Player, PlayerSettings, PlayerStats};
pub use stages::Stages;
pub use stream::{Codec, DeviceFormat, Packing, Protection, Stream, StreamError};

use trunkline_core::Time;

use crate::playout::Origin;

/// Frames of a stream, or of some of its channels: all blocks have as many frames, and count up from the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block<'a> {
    /// Its number; the parts of one block share it. Wraps at 2^32.
    pub sequence: u32,
    /// When its first frame was captured, by the sender's clock.
    pub captured: Time,
    /// When it arrived, by the receiver's clock; at the sender, zero.
    pub arrived: Time,
    /// The first of the stream's channels that are here, counted from 0.
    pub first_channel: u16,
    /// How many channels are here.
    pub channels: u16,
    /// Interleaved: [`Stream::block_frames`] of each channel.
    pub samples: &'a [f32],
    /// Where they come from.
    pub origin: Origin,
}

/// Makes packets of blocks.
pub trait Packer: Send {
    /// Hands the packets of a block to `emit`, one after the other. None is longer than [`Packing::most_packet`].
    fn pack(&mut self, block: &Block<'_>, emit: &mut dyn FnMut(&[u8]));
}

/// Makes blocks of packets, whatever has become of them on the way.
pub trait Unpacker: Send {
    /// Hands the blocks, or parts of blocks, that a packet makes available to `deliver`: none or several.
    ///
    /// # Errors
    /// The packet is not one of this stream; nothing of it was delivered. It is counted, and the next may be given.
    fn unpack(
        &mut self,
        now: Time,
        packet: &[u8],
        deliver: &mut dyn FnMut(Block<'_>),
    ) -> Result<(), UnpackError>;

    /// The number of a missing block for which others wait: a codec decodes in order, and the missing one may still come or
    /// be recovered. Until its turn there is no reason to [`release`](Unpacker::release) them.
    fn missing(&self) -> Option<u32> {
        None
    }

    /// Waits no longer for blocks before this one, whose turn has come: hands what the codec makes in their place, and what
    /// follows, to `deliver`.
    fn release(&mut self, before: u32, deliver: &mut dyn FnMut(Block<'_>)) {
        let _ = (before, deliver);
    }

    /// What happened since the start.
    fn counters(&self) -> UnpackCounters;
}

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    /// It is no packet of this format, or was damaged on its way.
    #[error("the packet is damaged or in another format")]
    Damaged,
    /// It is a packet of this format, but of other settings than were agreed on.
    #[error("the packet does not fit the stream that was agreed on: {0}")]
    OtherStream(&'static str),
}

/// What happened to an [`Unpacker`] since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnpackCounters {
    /// Packets that were given.
    pub packets: u64,
    /// Packets, or pieces of them, that were refused as [`UnpackError::Damaged`].
    pub damaged: u64,
    /// Packets that were refused as [`UnpackError::OtherStream`].
    pub other: u64,
    /// Parts of blocks that were delivered, however they came.
    pub delivered: u64,
    /// Of these, those that had been lost and came back from redundancy.
    pub recovered: u64,
    /// Of these, those that the codec made up.
    pub concealed: u64,
    /// Parts of blocks that came after the codec had made them up: not delivered again. This and the next two are counted
    /// only where a codec decodes in order; otherwise the playout buffer counts them.
    pub late: u64,
    /// Parts of blocks that came before: not delivered again.
    pub duplicate: u64,
    /// Parts of blocks that came after one with a higher number, late or not.
    pub reordered: u64,
    /// Bytes that belong to no packet: passed over in search of the next one.
    pub skipped_bytes: u64,
}
