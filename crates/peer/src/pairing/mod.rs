//! How an agent and a controller become known to each other, once.

mod code;
mod enrol;
mod pending;
mod proof;

pub use code::PairingCode;
pub use enrol::enrol;
pub use pending::Pairing;

#[cfg(test)]
mod tests;
