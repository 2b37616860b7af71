//! What must fit together where a flow has several sinks or none, and where XTP does something else than a stream.

use trunkline_core::Duration;
use trunkline_traffic::SourceKind;
use trunkline_transport::Features;

use super::Reader;
use super::checks::Places;
use crate::model::{Answer, Flow, Framing, Transport, XtpService};
use crate::schema::transport::TransportKind;

/// Options of XTP that only some services have. All others belong to every service.
const XTP_OPTIONS: &[(&str, &[XtpService])] = {
    use XtpService::{AcknowledgedDatagram, Multicast, ReliableMulticast, Stream, Transaction};
    &[
        ("error-control", &[Stream]),
        ("fast-nak", &[Stream, Transaction, ReliableMulticast]),
        ("flow-control", &[Stream, Transaction]),
        ("acknowledge", &[Stream, Transaction]),
        ("every", &[Stream, Transaction, ReliableMulticast]),
        ("withhold", &[Stream]),
        ("acknowledged-when", &[Stream, Transaction]),
        ("rate", &[Stream, Transaction, Multicast, ReliableMulticast]),
        ("burst", &[Stream, Transaction, Multicast, ReliableMulticast]),
        ("checksum", &[Stream, Transaction, Multicast, ReliableMulticast]),
        ("open", &[Stream]),
        ("wait", &[Stream, AcknowledgedDatagram, Transaction, ReliableMulticast]),
        ("patience", &[Stream, AcknowledgedDatagram, Transaction, ReliableMulticast]),
        ("quorum", &[ReliableMulticast]),
        ("slot", &[ReliableMulticast]),
        ("slots", &[ReliableMulticast]),
        ("repair-wait", &[ReliableMulticast]),
    ]
};

impl Reader<'_> {
    /// Remarks on a transport, or a source, that several sinks or none do not suit.
    pub(super) fn check_sinks(
        &mut self,
        flow: &Flow,
        transport: &TransportKind,
        source: &SourceKind,
        places: &Places<'_>,
    ) {
        let at = &places.transport.span;
        let is_udp = matches!(flow.transport, Transport::Udp(_));
        let is_multicast = flow.is_multicast();
        let to = places.flow.node("to").map_or(at, |node| &node.span);
        if flow.to.is_empty() {
            if !is_udp {
                let message = format!(
                    "{} waits for a peer, and the flow has no sink; use `udp`, or name a host in `to`",
                    named(flow, transport)
                );
                self.remark(at, message);
            }
            if flow.reflect || flow.answer() != Answer::None {
                self.remark(to, "no host would reply; name a host");
            }
            return;
        }
        if is_multicast && !is_udp && !promised(flow, transport).multicast {
            let message = format!(
                "{} reaches one sink; for several use `udp`, or `xtp` with `service = \"multicast\"` or \
                 `\"reliable-multicast\"`",
                named(flow, transport)
            );
            return self.remark(at, message);
        }
        if is_multicast && matches!(flow.answer(), Answer::Bytes(_)) {
            let message = format!(
                "with `answer` the source `{}` waits for one sink's answer, and would get one from every sink; leave it \
                 out, or name one sink",
                source.name
            );
            self.remark(to, message);
        }
        if is_multicast && flow.framing == Framing::None && promised(flow, transport).reliable {
            let at = places.flow.node("framing").map_or(at, |node| &node.span);
            self.remark(
                at,
                "without a header nobody knows where the messages of a multicast begin; leave `framing` out",
            );
        }
        let comes_or_goes = |sink: &crate::model::Sink| sink.join > Duration::ZERO || sink.leave.is_some();
        if !is_multicast && !is_udp && flow.to.iter().any(comes_or_goes) {
            let message = format!(
                "{} is a conversation of two, which nobody joins or leaves; leave `join` and `leave` out, or use `udp`",
                named(flow, transport)
            );
            self.remark(to, message);
        }
    }

    /// Remarks on options of XTP that do not belong to the service, and on what the service needs.
    pub(super) fn check_xtp_service(&mut self, flow: &Flow, places: &Places<'_>) {
        let Transport::Xtp(options) = &flow.transport else { return };
        let service = options.service;
        let table = places.transport.table.as_ref();
        for (key, services) in XTP_OPTIONS {
            if !services.contains(&service)
                && let Some(node) = table.and_then(|table| table.node(key))
            {
                let message = format!("the service `{}` has no `{key}`; leave it out", service.name());
                self.remark(&node.span, message);
            }
        }
        if service == XtpService::Transaction && !flow.reflect {
            let message = "a transaction is a request and its reply; set `reflect = true`";
            self.remark(places.transport.span_of("service"), message);
        }
        let sinks = flow.to.len();
        if let Some(quorum) = options.quorum.filter(|quorum| *quorum as usize > sinks) {
            let message = format!("a `quorum` of {quorum} is more than the {sinks} sinks that there are");
            self.remark(places.transport.span_of("quorum"), message);
        }
    }
}

/// The transport as it is called in remarks.
pub(super) fn named(flow: &Flow, transport: &TransportKind) -> String {
    match &flow.transport {
        Transport::Xtp(options) if options.service != XtpService::Stream => {
            format!("the service `{}` of `xtp`", options.service.name())
        }
        _ => format!("`{}`", transport.name),
    }
}

/// What the flow's transport promises.
pub(super) fn promised(flow: &Flow, transport: &TransportKind) -> &'static Features {
    match &flow.transport {
        Transport::Xtp(options) => options.service.features(),
        _ => transport.features,
    }
}

/// Whether the transport takes no more than it gets rid of.
pub(super) fn holds_back(flow: &Flow, transport: &TransportKind) -> bool {
    match &flow.transport {
        Transport::Xtp(options) => match options.service {
            XtpService::Datagram => false,
            XtpService::Multicast => options.rate.is_some(),
            // Acknowledged datagrams by what is not acknowledged.
            _ => true,
        },
        _ => transport.features.flow_control || transport.features.congestion_control,
    }
}
