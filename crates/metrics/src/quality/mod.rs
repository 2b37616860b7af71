//! How good a conversation is: the E-model of ITU-T G.107 (06/2015) with the codecs of ITU-T G.113, and what of a measured
//! flow goes into it.

mod codec;
mod emodel;
mod losses;
mod opinion;
mod summary;
#[cfg(test)]
mod tests;

pub use codec::{CODECS, Codec};
pub use emodel::{EModel, Factors};
pub use losses::{Losses, Unheard};
pub use opinion::{good_or_better, mos, poor_or_worse, r_of_mos};
pub use summary::{Listening, QualitySummary};
