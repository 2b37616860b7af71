//! Passive open: a new endpoint for every client.

use trunkline_core::{Address, Ecn, Time};

use super::config::{DccpConfig, DccpConfigError, Encapsulation};
use super::reset::{Reset, ResetCode};
use super::timers::may;
use super::transmit::{Refusal, pseudo_header, unwrap_udp};
use super::wire::{self, Body};
use super::{DccpEndpoint, Duration};
use crate::endpoint::{Accept, Acceptor, Endpoint as _};

/// RFC 4340 section 8.1.3: at most 1024 resets a second.
const BETWEEN_RESETS: Duration = Duration::from_micros(1_000);

/// Makes an endpoint for every client that connects to an address, and tells others why not.
#[derive(Clone, Debug)]
pub struct DccpAcceptor {
    local: Address,
    config: DccpConfig,
    seed: u64,
    accepted: u64,
    busy: bool,
    next_reset: Time,
}

impl DccpAcceptor {
    /// Accepts connections to `local`. All that its endpoints draw comes from `seed`.
    ///
    /// # Errors
    /// If the port is 0 or a value of `config` out of its range.
    pub fn new(local: Address, config: &DccpConfig, seed: u64) -> Result<DccpAcceptor, DccpConfigError> {
        config.check(&[local.port])?;
        let config = config.clone();
        Ok(DccpAcceptor { local, config, seed, accepted: 0, busy: false, next_reset: Time::ZERO })
    }

    /// While busy, it refuses every client with [`ResetCode::TooBusy`].
    pub fn set_busy(&mut self, busy: bool) {
        self.busy = busy;
    }
}

impl Acceptor for DccpAcceptor {
    fn accept(&mut self, now: Time, from: Address, packet: &[u8], reply: &mut Vec<u8>) -> Accept {
        let inner = match self.config.encapsulation {
            Encapsulation::Udp => unwrap_udp(from, self.local, packet),
            Encapsulation::Ip | Encapsulation::UdpPayload => Ok(packet),
        };
        let opened =
            inner.and_then(|bytes| wire::decode(bytes, pseudo_header(&self.config, from, self.local)));
        let Ok(opened) = opened else { return Accept::Ignore };
        let header = &opened.header;
        let code = match header.body {
            Body::Reset { .. } => return Accept::Ignore,
            Body::Request { .. } if header.destination != self.local.port => ResetCode::ConnectionRefused,
            Body::Request { service } if service != self.config.service_code => ResetCode::BadServiceCode,
            Body::Request { .. } if self.busy => ResetCode::TooBusy,
            Body::Request { .. } => {
                let seed = self.seed.wrapping_add(self.accepted);
                if let Ok(mut endpoint) = DccpEndpoint::listen(self.local, &self.config, seed) {
                    self.accepted += 1;
                    endpoint.handle_packet(now, from, Ecn::NotCapable, packet);
                    return Accept::New(Box::new(endpoint));
                }
                ResetCode::ConnectionRefused
            }
            _ => ResetCode::NoConnection,
        };
        if !may(now, &mut self.next_reset, BETWEEN_RESETS) {
            return Accept::Ignore;
        }
        let refusal = Refusal::of(from, header, Reset::plain(code));
        Accept::Reply(refusal.write(Address { port: header.destination, ..self.local }, &self.config, reply))
    }
}
