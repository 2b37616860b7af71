//! Samples in, samples out. Pure: bytes and times come from the caller and go back to it; nothing is opened, nothing waits.
//!
//! On its way from a network to a sound card, audio passes [`fec`] (packets come back that were lost), [`format`](mod@format)
//! or [`g711`] (bytes become samples), [`playout`] (packets wait for their turn), [`conceal`] (what is missing is made up)
//! and [`drift`] (the sender's clock becomes ours). [`pipeline`] joins them, from device to packets and back, [`foreign`]
//! in the packets of other programs, which [`sdp`] describes. [`wav`] is for files.

mod codec;
pub mod conceal;
pub mod drift;
pub mod fec;
pub mod foreign;
pub mod format;
pub mod g711;
pub mod measure;
pub mod opus;
pub mod packet;
pub mod pipeline;
pub mod playout;
pub mod sdp;
mod seen;
pub mod wav;

pub use wav::{Pcm, ReceivedWav, WavError};
