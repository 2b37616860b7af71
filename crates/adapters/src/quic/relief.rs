//! Congestion control in which a handshake cannot be caught.
//!
//! Packets of a handshake count as under way until its keys are discarded, however long they are lost. On a bad path they
//! fill the congestion window, which then holds back the client's Finished, the very packet that would end this; and the
//! engine's probes, which it lets out, are of 1-RTT packets (quinn-proto 0.11 sets their timer once the handshake is
//! complete; RFC 9002 section 6.2.1 wants it confirmed), which the server cannot read yet.

#![expect(clippy::disallowed_types, reason = "the engine's interface names the standard library's clock")]

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory};

/// While it is given, congestion control holds nothing back.
#[derive(Clone, Debug, Default)]
pub(super) struct Relief(Arc<AtomicBool>);

/// More than is ever under way.
const BOUNDLESS: u64 = 1 << 32;

impl Relief {
    pub(super) fn give(&self, given: bool) {
        self.0.store(given, Ordering::Relaxed);
    }

    pub(super) fn is_given(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Makes controllers of this kind, which know of the relief.
    pub(super) fn over(
        &self,
        factory: Arc<dyn ControllerFactory + Send + Sync>,
    ) -> Arc<dyn ControllerFactory + Send + Sync> {
        Arc::new(Factory { factory, relief: self.clone() })
    }
}

struct Factory {
    factory: Arc<dyn ControllerFactory + Send + Sync>,
    relief: Relief,
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let controller = self.factory.clone().build(now, mtu);
        Box::new(Relieved { controller, relief: self.relief.clone() })
    }
}

struct Relieved {
    controller: Box<dyn Controller>,
    relief: Relief,
}

impl Controller for Relieved {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.controller.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.controller.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.controller.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.controller.on_congestion_event(now, sent, is_persistent, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.controller.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        if self.relief.is_given() { BOUNDLESS } else { self.controller.window() }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Relieved { controller: self.controller.clone_box(), relief: self.relief.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.controller.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
