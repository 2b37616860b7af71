//! `send`, `receive` and `reflect` as a library: devices, the pipeline and lines joined.
//!
//! ```text
//! capture callback -> ring -> network's thread: Blocks, Packer -> line -> reflector or receiver
//! line -> network's thread: Unpacker -> ring of blocks -> playback callback: Player
//! ```
//!
//! A callback of a device copies samples from and to rings without locks, wakes the network's thread, and pulls what is
//! played out of a [`Player`](trunkline_audio::pipeline::Player) that it alone has. It never waits, allocates or panics: what
//! finds no room is left out and counted. Each session has one thread for the network, in real time where that is allowed,
//! which waits for its sockets and for what was captured. Whoever called looks ten times a second at how it is doing and
//! tells an [`Observer`].

mod conduct;
mod desk;
mod error;
mod exact;
mod figures;
mod foreign;
mod halves;
mod incoming;
mod json;
mod link;
mod notation;
mod outgoing;
mod receive;
mod recordings;
mod reflect;
mod ring;
mod round_trips;
mod send;
mod tally;
mod words;
mod worker;

use std::net::SocketAddr;

use trunkline_audio::pipeline::Stream;

pub(crate) use conduct::PRIORITY;
pub use error::ProgramError;
pub use figures::{Counts, Figures, RoundTrip};
pub use foreign::{RtpOptions, receive_jacktrip, receive_rtp, send_jacktrip, send_rtp};
pub use json::{AddedDelays, DelayFigures, SessionFigures, SessionRoundTrip, SessionStages};
pub use notation::{Correction, Format, Playout};
pub use receive::{ReceiveOptions, receive};
pub use recordings::RecordingLimits;
pub use reflect::reflect;
pub use send::{SendOptions, Sent, send};

/// Is told what happens, from several threads where there are several sessions.
pub trait Observer: Sync {
    /// Something happens in a session. Sessions of one program are numbered from 1.
    fn event(&self, session: u64, event: Event<'_>);
}

/// What happens.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// A session has begun.
    Began {
        /// The other end.
        peer: SocketAddr,
        /// What carries it, as it was written.
        transport: String,
        /// What is carried; not known to a reflector.
        stream: Option<Stream>,
    },
    /// How it is doing, ten times a second.
    Going(&'e Figures),
    /// It has ended.
    Ended {
        /// How it went; not known to a reflector.
        figures: Option<&'e Figures>,
        /// Why, in a sentence without its full stop, if not as it was meant to.
        why: Option<&'e str>,
    },
    /// A host wanted to pair with this one, in session 0.
    Pairing {
        /// From where.
        from: SocketAddr,
        /// Its name from now on, or why it is not paired.
        outcome: Result<&'e str, &'e str>,
    },
    /// It does not come about, or ended; it is tried again.
    Retrying(&'e str),
    /// The device has gone, and why; it is waited for.
    DeviceLost(&'e str),
    /// The device is back.
    DeviceBack,
    /// What would make it more dependable.
    Advice(&'e str),
}
