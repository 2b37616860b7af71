//! Where sound comes from and goes to: JACK, ALSA (and PipeWire behind it), WAV and FLAC files, tones and noise.
//!
//! A [`Device`] is opened with what is [`Wanted`] and calls [`Callbacks`] once per block, from a thread that must not be held
//! up. It stays open while its sound card or server goes away and comes back: it waits, reconnects, and says so in its
//! [`Status`].
//!
//! A device has one clock. JACK and ALSA have their own; what needs none (files, tones, noise) follows the clock of the
//! other direction, or else the monotonic clock of this machine.

#[cfg(feature = "alsa")]
mod alsa;
mod clocked;
mod cycle;
mod device;
mod error;
pub mod file;
mod hardware;
mod jack;
mod place;
mod shared;
mod signal;
mod soft;
mod wanted;

pub use cycle::Callbacks;
pub use device::{Device, Make, REAL_TIME_ADVICE, open};
pub use error::SoundError;
pub use place::{Place, PlaceError};
pub use shared::Status;
pub use wanted::{Format, Wanted};
