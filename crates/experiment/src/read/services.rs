//! What must fit together where a flow has several sinks or none.

use trunkline_core::Duration;
use trunkline_traffic::SourceKind;

use super::Reader;
use super::checks::Places;
use crate::model::{Answer, Flow, Framing};

impl Reader<'_> {
    /// Remarks on a transport, or a source, that several sinks or none do not suit.
    pub(super) fn check_sinks(&mut self, flow: &Flow, source: &SourceKind, places: &Places<'_>) {
        let at = &places.transport.span;
        let is_connectionless = flow.transport.is_connectionless();
        let is_multicast = flow.is_multicast();
        let to = places.flow.node("to").map_or(at, |node| &node.span);
        if flow.to.is_empty() {
            if !is_connectionless {
                let message = format!(
                    "{} waits for a peer, and the flow has no sink; use `udp`, or name a host in `to`",
                    flow.transport.called()
                );
                self.remark(at, message);
            }
            if flow.reflect || flow.answer() != Answer::None {
                self.remark(to, "no host would reply; name a host");
            }
            return;
        }
        if is_multicast && !is_connectionless && !flow.transport.features().multicast {
            let message = format!(
                "{} reaches one sink; for several use `udp`, or `xtp` with `service = \"multicast\"` or \
                 `\"reliable-multicast\"`",
                flow.transport.called()
            );
            return self.remark(at, message);
        }
        if is_multicast && matches!(flow.answer(), Answer::Bytes(_)) {
            let message = format!(
                "with `answer` the source `{}` waits for one sink's answer, but would get one from every sink; omit \
                 it, or name one sink",
                source.name
            );
            self.remark(to, message);
        }
        if is_multicast && flow.framing == Framing::None && flow.transport.features().reliable {
            let at = places.flow.node("framing").map_or(at, |node| &node.span);
            self.remark(
                at,
                "without a header, receivers cannot find where the messages of a multicast begin; omit `framing`",
            );
        }
        let comes_or_goes = |sink: &crate::model::Sink| sink.join > Duration::ZERO || sink.leave.is_some();
        if !is_multicast && !is_connectionless && flow.to.iter().any(comes_or_goes) {
            let message = format!(
                "{} is a conversation of two hosts, which no other host can join or leave; omit `join` and `leave`, \
                 or use `udp`",
                flow.transport.called()
            );
            self.remark(to, message);
        }
    }
}
