//! What must fit together: source, transport and the links on the way.

use trunkline_core::Distribution;
use trunkline_core::schema::{Kind, Value};
use trunkline_traffic::SourceKind;
use trunkline_transport::framing::HEADER_LENGTH;
use trunkline_transport::udp::{IPV4_HEADER_LENGTH, UDP_HEADER_LENGTH};

use super::Reader;
use super::table::Chosen;
use crate::model::{Flow, Link, PathStep, Transport};
use crate::schema::transport::{self, TransportKind};
use crate::tree::Table;

/// Length of the TCP header without options, in bytes (RFC 9293 section 3.1).
const TCP_HEADER_LENGTH: u64 = 20;

/// Where a flow's parts stand in the file.
pub(super) struct Places<'t> {
    pub(super) flow: &'t Table,
    pub(super) transport: &'t Chosen,
    pub(super) source: &'t Chosen,
}

impl Reader<'_> {
    /// Remarks on parts of a flow that do not fit together.
    pub(super) fn check_flow(
        &mut self,
        flow: &Flow,
        transport: &TransportKind,
        source: &SourceKind,
        places: &Places<'_>,
        links: Option<&[Link]>,
    ) {
        let values = &flow.source.values;
        let at = &places.source.span;
        if source.needs_answers && !flow.reflect {
            let at = places.flow.node("reflect").map_or(at, |node| &node.span);
            self.remark(at, format!("the source `{}` waits for answers; set `reflect = true`", source.name));
        }
        if let Some(audio) = places.flow.node("audio")
            && flow.meta.keeps_payload
            && (source.samples_per_packet)(values).is_none()
        {
            self.remark(
                &audio.span,
                format!("the source `{}` carries no audio that could be written", source.name),
            );
        }
        if (source.needs_flow_control)(values) && !transport.features.flow_control {
            let message = format!(
                "the source `{}` sends as fast as the transport takes it, and `{}` has no flow control; {}use {}",
                source.name,
                transport.name,
                if source.parameters.iter().any(|p| p.name == "interval") {
                    "give it an `interval` or "
                } else {
                    ""
                },
                crate::problem::enumerate(
                    transport::KINDS.iter().filter(|t| t.features.flow_control).map(|t| t.name)
                ),
            );
            self.remark(at, message);
        }
        let message = (source.max_message)(values);
        // The largest of an exponential distribution comes once in 10^27 messages.
        if message > transport.max_message
            && !draws_size(flow, source, |d| matches!(d, Distribution::Exponential { .. }))
        {
            let message = format!(
                "a message of {message} B is larger than the {} B that one over `{}` may have",
                transport.max_message, transport.name
            );
            self.remark(at, message);
        } else if let Some(links) = links {
            self.check_packets(flow, source, places, links, message);
        }
        if let Err(problem) = crate::build::try_source(flow) {
            self.remark(at, problem);
        }
    }

    /// Remarks on packets that no link on the way lets through.
    fn check_packets(
        &mut self,
        flow: &Flow,
        source: &SourceKind,
        places: &Places<'_>,
        links: &[Link],
        message: u64,
    ) {
        let (packet, at, what) = match &flow.transport {
            // Where sizes vary, some packets may pass; those that do not are counted as too large.
            Transport::Udp(_) if draws_size(flow, source, |d| !matches!(d, Distribution::Constant(_))) => {
                return;
            }
            Transport::Udp(_) => {
                let headers = (HEADER_LENGTH + UDP_HEADER_LENGTH + IPV4_HEADER_LENGTH) as u64;
                let what = format!(
                    "a message of {message} B makes a packet of {} B",
                    message.saturating_add(headers)
                );
                (message.saturating_add(headers), &places.source.span, what)
            }
            Transport::Tcp(options) => {
                let Some(mss) = options.mss else { return };
                let packet = mss.count() + TCP_HEADER_LENGTH + IPV4_HEADER_LENGTH as u64;
                let what = format!("segments of {} B make packets of {packet} B", mss.count());
                (packet, places.transport.span_of("mss"), what)
            }
        };
        let both = flow.forward.iter().chain(if flow.reflect { flow.backward.as_slice() } else { &[] });
        let mtu = |step: &PathStep| links[step.link].directions[usize::from(step.from_port)].mtu.count();
        let Some(narrow) = both.min_by_key(|step| mtu(step)).filter(|step| mtu(step) < packet) else {
            return;
        };
        let message = format!(
            "{what} with all headers, which link `{}` would drop: its MTU is {} B",
            links[narrow.link].name,
            mtu(narrow)
        );
        self.remark(at, message);
    }
}

/// Whether the source draws a size from such a distribution.
fn draws_size(flow: &Flow, source: &SourceKind, such: impl Fn(&Distribution) -> bool) -> bool {
    let sizes = source.parameters.iter().filter(|p| matches!(p.kind, Kind::Sizes { .. }));
    sizes.map(|p| flow.source.values.value(p.name)).any(|v| matches!(v, Value::Distribution(d) if such(d)))
}
