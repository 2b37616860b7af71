//! The transports that an experiment file can name, and a flow's choice among them.

use core::fmt;
use core::ops::Deref;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use trunkline_adapters::quic;
use trunkline_core::schema::{Value, Values};
use trunkline_transport::kind::{TransportKind, TransportOptions};
use trunkline_transport::{dccp, rtp, sctp, tcp, udp, urp, xtp};

/// Every transport that an experiment file can name, in the order of the reference. The reader and its errors, the
/// references, the schema of the forms and the tests iterate over this list.
pub static TRANSPORTS: &[&TransportKind] = &[
    &udp::KIND,
    &udp::LITE,
    &tcp::KIND,
    &tcp::MULTIPATH,
    &urp::KIND,
    &dccp::KIND,
    &xtp::KIND,
    &rtp::KIND,
    &quic::KIND,
    &sctp::KIND,
];

/// A flow's transport with its options. What depends on them is asked of [`TransportOptions`].
#[derive(Clone)]
pub struct Transport {
    kind: &'static TransportKind,
    values: Values,
    options: Arc<dyn TransportOptions>,
}

impl Transport {
    /// Of this kind, with the values of its parameters.
    pub(crate) fn new(kind: &'static TransportKind, values: Values) -> Transport {
        let options = (kind.options)(&values);
        Transport { kind, values, options }
    }

    /// Its kind.
    pub fn kind(&self) -> &'static TransportKind {
        self.kind
    }

    /// The same with another value of a parameter.
    ///
    /// # Panics
    /// If the kind has no such parameter.
    #[must_use]
    pub fn with(mut self, parameter: &str, value: Value) -> Transport {
        self.values.set(parameter, value);
        Transport::new(self.kind, self.values)
    }
}

impl Deref for Transport {
    type Target = dyn TransportOptions;
    fn deref(&self) -> &Self::Target {
        &*self.options
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.kind.name).field(&self.options).finish()
    }
}

impl PartialEq for Transport {
    fn eq(&self, other: &Transport) -> bool {
        self.kind.name == other.kind.name && self.values == other.values
    }
}

/// Its name, and the values in the order of its parameters.
impl Serialize for Transport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values: Vec<&Value> = self.values.iter().map(|(_, value)| value).collect();
        (self.kind.name, values).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Transport {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Transport, D::Error> {
        let (name, values) = <(String, Vec<Value>)>::deserialize(deserializer)?;
        let kind = TRANSPORTS.iter().find(|kind| kind.name == name);
        let kind = kind.ok_or_else(|| D::Error::custom(format!("there is no transport `{name}`")))?;
        let fits = kind.parameters.len() == values.len()
            && kind.parameters.iter().zip(&values).all(|(parameter, value)| parameter.admits(value));
        if !fits {
            return Err(D::Error::custom(format!("values that the transport `{name}` does not have")));
        }
        let names = kind.parameters.iter().map(|parameter| parameter.name);
        Ok(Transport::new(kind, Values::new(names.zip(values).collect())))
    }
}
