//! The engine's network device: one packet in, one packet out, in buffers that others own.

use smoltcp::phy::{Checksum, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

/// A device for one call of the engine.
pub(super) struct Port<'p> {
    mtu: usize,
    incoming: Option<&'p [u8]>,
    outgoing: Option<&'p mut Vec<u8>>,
}

impl<'p> Port<'p> {
    /// A device on which `packet` has arrived; what the engine answers at once goes into `reply`.
    pub(super) fn receiving(mtu: usize, packet: &'p [u8], reply: &'p mut Vec<u8>) -> Port<'p> {
        Port { mtu, incoming: Some(packet), outgoing: Some(reply) }
    }

    /// A device that takes one packet.
    pub(super) fn sending(mtu: usize, into: &'p mut Vec<u8>) -> Port<'p> {
        Port { mtu, incoming: None, outgoing: Some(into) }
    }

    /// A device that only tells what it is.
    pub(super) fn idle(mtu: usize) -> Port<'static> {
        Port { mtu, incoming: None, outgoing: None }
    }
}

impl Device for Port<'_> {
    type RxToken<'a>
        = Incoming<'a>
    where
        Self: 'a;
    type TxToken<'a>
        = Outgoing<'a>
    where
        Self: 'a;

    fn receive(&mut self, _: Instant) -> Option<(Incoming<'_>, Outgoing<'_>)> {
        let packet = self.incoming.take()?;
        let reply = self.outgoing.take()?;
        Some((Incoming(packet), Outgoing(reply)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Outgoing<'_>> {
        self.outgoing.take().map(Outgoing)
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        // Incoming checksums are verified before the engine sees a packet, so that errors can be counted.
        capabilities.checksum.ipv4 = Checksum::Tx;
        capabilities.checksum.tcp = Checksum::Tx;
        capabilities
    }
}

/// A packet to be read.
pub(super) struct Incoming<'a>(&'a [u8]);

impl RxToken for Incoming<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

/// Room for a packet.
pub(super) struct Outgoing<'a>(&'a mut Vec<u8>);

impl TxToken for Outgoing<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        self.0.clear();
        self.0.resize(length, 0);
        write(self.0)
    }
}
