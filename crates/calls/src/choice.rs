//! A transport as a user writes it.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use trunkline_experiment::Transport;

/// A transport as an experiment file or a command line writes it: `udp`, or `{ kind = "dccp", congestion-control = "ccid-3" }`.
///
/// It travels as it was written, so that whoever reads it checks every option.
#[derive(Clone, Debug, PartialEq)]
pub struct TransportChoice {
    written: String,
    transport: Transport,
}

impl TransportChoice {
    /// UDP with its defaults.
    pub fn udp() -> TransportChoice {
        "udp".parse().expect("a transport of every experiment file")
    }

    /// The transport and its options.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }
}

impl FromStr for TransportChoice {
    type Err = String;

    /// # Errors
    /// What is wrong, in sentences.
    fn from_str(text: &str) -> Result<TransportChoice, String> {
        Ok(TransportChoice { transport: Transport::parse(text)?, written: text.trim().to_owned() })
    }
}

impl fmt::Display for TransportChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl Serialize for TransportChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.written)
    }
}

impl<'de> Deserialize<'de> for TransportChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TransportChoice, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
