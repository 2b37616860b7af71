//! Reads what is known of a flow's listeners.

use core::ops::Range;

use trunkline_metrics::quality::Codec;
use trunkline_metrics::{FlowMeta, Listening, Measured};

use super::Reader;
use super::table::Chosen;
use crate::problem::either;
use crate::schema::{Shape, codec};
use crate::tree::Table;

/// The codecs that speech in G.711 may have.
const G711: [&str; 3] = ["g711", "g711-plc", codec::OTHER];

impl Reader<'_> {
    /// What it takes to judge the quality of a flow with this source; nothing if nobody listens to it, `None` after remarks.
    pub(super) fn listening(
        &mut self,
        table: &Table,
        at: &Range<usize>,
        place: &str,
        source: &Chosen,
        flow: &FlowMeta,
    ) -> Option<Option<Listening>> {
        let key = self.schema.flow.iter().find(|key| key.name == "codec")?;
        let Shape::OneOf(one_of) = &key.shape else { return None };
        let chosen = self.one_of(table, at, place, key, one_of)?;
        let kind = trunkline_traffic::KINDS.get(source.index)?;
        let is_g711 = (kind.packetiser)(&source.values).is_some();
        let codec = match &chosen {
            Some(chosen) => codec::read(chosen.index, &chosen.values),
            None if is_g711 => Codec::G711,
            None => return Some(None),
        };
        let packet = (kind.interval)(&source.values);
        let problem = if flow.measured != Measured::OneWay {
            Some("`codec` is for speech in one direction, to a host; this flow has no listener".to_owned())
        } else if flow.playout.is_none() && flow.voice_path.is_none_or(|path| path.playback.is_none()) {
            Some(
                "`codec` needs a `playout` or a `playback`: a flow that is not played has no listener"
                    .to_owned(),
            )
        } else if packet.is_none() {
            Some(format!("`codec` needs a source with its own rate, which `{}` does not have", kind.name))
        } else if is_g711 && !G711.contains(&codec.name) {
            let known = either(G711.iter().copied());
            Some(format!("the source `{}` sends G.711; expected {known}, or the source `load`", kind.name))
        } else {
            None
        };
        match (problem, chosen) {
            (None, _) => Some(packet.map(|packet| Listening { codec, packet })),
            (Some(_), None) => Some(None),
            (Some(problem), Some(chosen)) => {
                self.remark(&chosen.span, problem);
                None
            }
        }
    }
}
