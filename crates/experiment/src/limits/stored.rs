//! Limits' figures as runs keep them: `"latency-p99"` of a flow, `"network-throughput"` of a bundle, `{"loss":"max"}` of its
//! connections over one transport. A name that the table does not have is an error.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trunkline_metrics::figures::FigureKind;

use super::Limited;

/// A figure's name.
#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
enum Stored {
    Plain(String),
    /// The figure, and how those of several connections make one.
    Over(BTreeMap<String, String>),
}

fn plain(known: &Limited) -> Stored {
    Stored::Plain(known.limit.stored())
}

fn over(known: &Limited) -> Stored {
    match known.limit.key.rsplit_once('.') {
        Some((figure, over)) => Stored::Over([(figure.replace('.', "-"), over.to_owned())].into()),
        None => plain(known),
    }
}

/// Reader and writer for the figures of one kind.
macro_rules! stored {
    ($(#[$doc:meta])* $kind:ident, $name:expr) => {
        $(#[$doc])*
        pub(crate) mod $kind {
            use serde::{Deserializer, Serializer, de, ser};

            use super::*;

            pub(crate) fn serialize<S: Serializer>(
                figure: &&'static FigureKind,
                to: S,
            ) -> Result<S::Ok, S::Error> {
                let known = super::super::$kind().find(|known| known.figure == *figure);
                let known = known.ok_or_else(|| {
                    ser::Error::custom(format!("no limit names the figure `{}`", figure.id))
                })?;
                $name(&known).serialize(to)
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
                from: D,
            ) -> Result<&'static FigureKind, D::Error> {
                let name = Stored::deserialize(from)?;
                let known = super::super::$kind().find(|known| $name(known) == name);
                let known = known.ok_or_else(|| de::Error::custom(format!("no limit names {name:?}")))?;
                Ok(known.figure)
            }
        }
    };
}

stored!(
    /// Of a flow.
    of_flows, plain
);
stored!(
    /// Of a bundle as a whole.
    of_bundles, plain
);
stored!(
    /// Of a bundle's connections over one transport.
    of_connections, over
);
