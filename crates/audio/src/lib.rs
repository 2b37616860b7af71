//! Samples in, samples out: G.711 and WAV. Pure: bytes come from the caller and go back to it; no file is opened here.

pub mod conceal;
pub mod drift;
pub mod g711;
pub mod playout;
mod seen;
pub mod wav;

pub use wav::{Pcm, ReceivedWav, WavError};
