//! Sources of messages: voice, multichannel audio, bulk, interactive, background load and cross traffic, with any distribution of size and interval.
//! Pure: they are asked when they are due and told what became of their messages.

mod agenda;
mod audio;
mod bulk;
mod cross_traffic;
mod custom;
mod draws;
mod fifo;
mod interactive;
mod load;
mod open_loop;
mod paced;
mod per_channel;
pub mod registry;
pub mod source;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod voice;

pub use custom::CUSTOM;
pub use registry::{KINDS, find};
pub use source::{
    Answer, AudioFormat, Built, Coding, CustomSource, Feedback, MessageBuffer, Overflow, Packetiser,
    Produced, Source, SourceContext, SourceKind, Transfer,
};
