//! A wrapper that holds an endpoint and its driver to the contract of `trunkline-transport`.

use trunkline_core::{Address, Ecn, Time};
use trunkline_transport::{
    Close, Conversation, Endpoint, Event, Features, Message, Received, SendError, Transmit,
};

/// Any endpoint, with the contract asserted around every call:
/// 1. time never decreases (the driver's duty);
/// 2. packets and events are drained after every input and before the next (the driver's duty);
/// 3. after draining, `next_timeout` is later than the last input or `None` (the endpoint's duty);
/// 4. nothing is transmitted without an address or a size, and no packet, less what it says to stand for the network's
///    services, is larger than its size on the network.
#[derive(Debug)]
pub struct Checked<E> {
    endpoint: E,
    now: Time,
    last_input: &'static str,
    undrained: Undrained,
}

#[derive(Clone, Copy, Debug, Default)]
struct Undrained {
    packets: bool,
    events: bool,
}

impl<E: Endpoint> Checked<E> {
    /// Wraps an endpoint that was just made: what it wants to send first is an output to be drained.
    pub fn new(endpoint: E) -> Checked<E> {
        let undrained = Undrained { packets: true, events: true };
        Checked { endpoint, now: Time::ZERO, last_input: "being made", undrained }
    }

    /// The wrapped endpoint.
    pub fn inner(&self) -> &E {
        &self.endpoint
    }

    fn advance(&mut self, now: Time) {
        assert!(now >= self.now, "time went back from {} to {now}", self.now);
        self.now = now;
    }

    fn input(&mut self, now: Time, what: &'static str) {
        self.advance(now);
        let Undrained { packets, events } = self.undrained;
        assert!(!packets, "`{what}` before the packets of `{}` were drained", self.last_input);
        assert!(!events, "`{what}` before the events of `{}` were drained", self.last_input);
        self.begin(what);
    }

    fn begin(&mut self, what: &'static str) {
        self.last_input = what;
        self.undrained = Undrained { packets: true, events: true };
    }
}

impl<E: Endpoint> Conversation for Checked<E> {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        self.input(now, "send");
        self.endpoint.send(now, message)
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        let before = into.len();
        let received = self.endpoint.receive(into);
        match received {
            Some(Received { length, .. }) => {
                assert_eq!(into.len() - before, length, "`receive` says another length than it appended");
                self.begin("receive");
            }
            None => assert_eq!(into.len(), before, "`receive` appended and says there was nothing"),
        }
        received
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.endpoint.poll_event();
        self.undrained.events = event.is_some();
        event
    }

    fn close(&mut self, now: Time, how: Close) {
        self.input(now, "close");
        self.endpoint.close(now, how);
    }

    fn features(&self) -> &'static Features {
        self.endpoint.features()
    }
}

impl<E: Endpoint> Endpoint for Checked<E> {
    fn handle_packet(&mut self, now: Time, from: Address, ecn: Ecn, packet: &[u8]) {
        self.input(now, "handle_packet");
        self.endpoint.handle_packet(now, from, ecn, packet);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.input(now, "handle_timeout");
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        self.advance(now);
        let transmit = self.endpoint.poll_transmit(now, into);
        if let Some(Transmit { size, to, .. }) = transmit {
            let counted = into.len().saturating_sub(self.endpoint.carrier_header()) as u64;
            assert!(
                !into.is_empty() && size.count() >= counted.max(1),
                "a packet of {} bytes has size {size}",
                into.len()
            );
            assert_ne!(to.port, 0, "a packet goes to {to}");
        }
        self.undrained.packets = transmit.is_some();
        // Draining packets may make room, and so raise an event.
        self.undrained.events = true;
        transmit
    }

    fn next_timeout(&self) -> Option<Time> {
        let next = self.endpoint.next_timeout();
        if let Some(next) = next
            && !self.undrained.packets
        {
            assert!(next > self.now, "`next_timeout` is {next} after draining at {}: not later", self.now);
        }
        next
    }

    fn carrier_header(&self) -> usize {
        self.endpoint.carrier_header()
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        self.endpoint.counters(count);
    }

    fn tcp_figures(&self) -> Option<trunkline_transport::tcp::TcpFigures> {
        self.endpoint.tcp_figures()
    }
}

#[cfg(test)]
mod tests {
    use trunkline_transport::{UdpConfig, UdpEndpoint};

    use super::*;

    fn checked() -> Checked<UdpEndpoint> {
        let [near, far] = [0, 1].map(|host| Address { host, port: 1 });
        Checked::new(UdpEndpoint::new(near, far, UdpConfig::default()))
    }

    fn drain(endpoint: &mut Checked<UdpEndpoint>, now: Time) {
        while endpoint.poll_transmit(now, &mut Vec::new()).is_some() {}
        while endpoint.poll_event().is_some() {}
    }

    #[test]
    fn a_driver_that_drains_passes() {
        let mut endpoint = checked();
        drain(&mut endpoint, Time::ZERO);
        endpoint.send(Time::from_nanos(1), Message::new(b"x")).unwrap();
        drain(&mut endpoint, Time::from_nanos(1));
        assert_eq!(endpoint.next_timeout(), None);
    }

    #[test]
    #[should_panic(expected = "`handle_timeout` before the packets of `send` were drained")]
    fn an_input_before_draining_is_caught() {
        let mut endpoint = checked();
        drain(&mut endpoint, Time::ZERO);
        endpoint.send(Time::ZERO, Message::new(b"x")).unwrap();
        endpoint.handle_timeout(Time::ZERO);
    }

    #[test]
    #[should_panic(expected = "time went back")]
    fn time_that_goes_back_is_caught() {
        let mut endpoint = checked();
        drain(&mut endpoint, Time::from_nanos(5));
        endpoint.handle_timeout(Time::from_nanos(4));
    }
}
