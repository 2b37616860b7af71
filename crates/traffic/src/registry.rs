//! Every kind of source that an experiment file can name.

use crate::source::SourceKind;
use crate::{audio, bulk, cross_traffic, custom, interactive, load, voice};

/// The kinds, in the order of the reference.
pub static KINDS: &[SourceKind] =
    &[voice::KIND, audio::KIND, bulk::KIND, interactive::KIND, load::KIND, cross_traffic::KIND, custom::KIND];

/// The kind with this name or alias, with its index in [`KINDS`].
pub fn find(name: &str) -> Option<(usize, &'static SourceKind)> {
    KINDS.iter().enumerate().find(|(_, kind)| kind.name == name || kind.aliases.contains(&name))
}
