//! Reads what a flow's voice goes through.

use core::ops::Range;

use trunkline_metrics::{PlaybackFifo, VoicePath};

use super::Reader;
use super::table::Chosen;
use crate::schema::Shape;
use crate::tree::Table;

impl Reader<'_> {
    /// The voice path of a flow with this source; nothing if it has no FIFO at either end, `None` after remarks.
    pub(super) fn voice_path(
        &mut self,
        table: &Table,
        at: &Range<usize>,
        place: &str,
        source: &Chosen,
    ) -> Option<Option<VoicePath>> {
        let key = self.schema.flow.iter().find(|key| key.name == "playback")?;
        let Shape::OneOf(one_of) = &key.shape else { return None };
        let playback = self.one_of(table, at, place, key, one_of)?;
        let kind = trunkline_traffic::KINDS.get(source.index)?;
        let packetiser = (kind.packetiser)(&source.values);
        let playback = match (&playback, packetiser) {
            (None, _) => None,
            (Some(playback), Some(packetiser)) => Some(self.fifo(playback, packetiser.samples.into())?),
            (Some(playback), None) => {
                let message = format!("the source `{}` sends no audio that could be played", kind.name);
                self.remark(&playback.span, message);
                return None;
            }
        };
        if let Some(playout) = table.node("playout").filter(|_| playback.is_some()) {
            let message =
                "a flow is played either after a `playout` or through the FIFO of a `playback`; omit one";
            self.remark(&playout.span, message.to_owned());
            return None;
        }
        let has_fifo =
            |packetiser: &trunkline_traffic::Packetiser| packetiser.fifo.is_some() || playback.is_some();
        Some(packetiser.filter(has_fifo).map(|packetiser| VoicePath {
            samples: packetiser.samples,
            pauses: packetiser.pauses,
            captures: packetiser.fifo.is_some(),
            playback,
        }))
    }

    /// `playback = { kind = "fifo", depth = 4096 }` for packets of so many samples.
    fn fifo(&mut self, playback: &Chosen, samples: u32) -> Option<PlaybackFifo> {
        let samples_of = |key| playback.values.integer_if_given(key).map(|value| value as u32); // At most 64,000.
        let (depth, fill) = (samples_of("depth")?, samples_of("fill").unwrap_or(0));
        if depth < samples {
            let message = format!("`depth` is {depth}; expected at least the {samples} samples of a packet");
            self.remark(playback.span_of("depth"), message);
            return None;
        }
        if fill > depth {
            let message =
                format!("`fill` is {fill}, and the FIFO holds {depth} samples; lower it or raise `depth`");
            self.remark(playback.span_of("fill"), message);
            return None;
        }
        Some(PlaybackFifo { depth, fill })
    }
}
