//! Sources of messages: voice, bulk, interactive and background load, with any distribution of size and interval.
//! Pure: they are asked when they are due and told what became of their messages.

pub mod registry;
pub mod source;

pub use registry::{KINDS, find};
pub use source::{Feedback, MessageBuffer, Produced, Source, SourceContext, SourceKind};
