//! Passive opening of streams, one for every FIRST packet.

use trunkline_core::{Address, Ecn, Seed, Stream, Time};

use super::config::{XtpConfig, XtpConfigError};
use super::stream::XtpEndpoint;
use super::wire::{AddressSegment, Body, Code, Header, Key, Options, Packet, Reason, Service};
use crate::endpoint::{Accept, Acceptor, Endpoint as _, Transmit};

/// Makes a stream of every FIRST packet that asks for one here, and tells others why not. Drivers hand it what belongs to
/// none of the streams they have.
#[derive(Clone, Debug)]
pub struct XtpAcceptor {
    local: Address,
    config: XtpConfig,
    seeds: Stream,
}

impl XtpAcceptor {
    /// An acceptor at `local`. All that its streams draw comes from `seed`.
    ///
    /// # Errors
    /// If `config` cannot be.
    pub fn new(local: Address, config: &XtpConfig, seed: u64) -> Result<XtpAcceptor, XtpConfigError> {
        config.check()?;
        Ok(XtpAcceptor { local, config: *config, seeds: Seed::new(seed, 0).stream("xtp/acceptor") })
    }

    /// What is wrong with a packet that is to open a stream.
    fn refusal(&self, header: &Header, body: &Body<'_>) -> Option<(Code, Reason)> {
        let Body::First { address, traffic, .. } = body else {
            return Some((Code::INVALID_CONTEXT, Reason::UNSPECIFIED));
        };
        let here = match address {
            AddressSegment::Null => true,
            AddressSegment::Ipv4 { destination_port, .. } => *destination_port == self.local.port,
        };
        if !here {
            Some((Code::CONTEXT_REFUSED, Reason::NO_LISTENER))
        } else if !matches!(traffic.service, Service::Unspecified | Service::Stream) {
            Some((Code::CONTEXT_REFUSED, Reason::NO_PROVIDER))
        } else if header.key.is_returned() || header.options.has(Options::MULTI) {
            Some((Code::CONTEXT_REFUSED, Reason::OPTIONS_REFUSED))
        } else {
            None
        }
    }
}

impl Acceptor for XtpAcceptor {
    fn accept(&mut self, now: Time, from: Address, packet: &[u8], reply: &mut Vec<u8>) -> Accept {
        let Ok(parsed) = Packet::parse(packet) else { return Accept::Ignore };
        let Packet { header, body } = &parsed;
        match self.refusal(header, body) {
            None => {
                let seed = self.seeds.bits();
                let Ok(mut stream) = XtpEndpoint::listen(self.local, &self.config, seed) else {
                    return Accept::Ignore;
                };
                stream.handle_packet(now, from, Ecn::NotCapable, packet);
                Accept::New(Box::new(stream))
            }
            // Farewells and diagnoses need no answer, and a return key is of nobody here; groups are not told either.
            Some(_)
                if matches!(body, Body::Diagnostic { .. })
                    || header.key.is_returned()
                    || header.options.has_any(Options::END.and(Options::MULTI)) =>
            {
                Accept::Ignore
            }
            Some((code, reason)) => {
                reply.clear();
                let header = Header { key: Key::returned(header.key), ..Header::default() };
                Packet { header, body: Body::Diagnostic { code, reason, text: b"" } }.emit(reply);
                let size = self.config.encapsulation.size(reply);
                Accept::Reply(Transmit { to: from, ecn: Ecn::NotCapable, size, earliest: Time::ZERO })
            }
        }
    }
}
