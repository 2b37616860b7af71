//! Token buckets: which packets keep to a rate in bytes, and what becomes of the others. They are the generic cell rate
//! algorithm in its continuous-state form, for packets of any size.

mod policer;
mod shaper;
mod token;

#[cfg(test)]
mod tests;

pub use policer::{Color, Excess, LEAST_URGENT, Policer};
pub use shaper::Shaper;
pub use token::TokenBucket;
