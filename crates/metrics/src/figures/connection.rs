//! The state of a flow's first TCP connection, and retransmissions.

use trunkline_core::{Duration, Rate as BitRate};

use super::Quantity::{Bytes, Count, Rate, Time};
use super::{Definition, FigureKind, define, figure};
use crate::connection::ConnectionSample;
use crate::summary::FlowSummary;

pub(super) const TCP_OVER_TIME: Definition = define(
    "tcp-over-time",
    "TCP over time",
    "State of the sending end of a flow's first TCP connection, sampled at regular intervals: congestion window, \
     slow-start threshold, bytes in flight, smoothed round trip and pacing rate. On wire and live it is the \
     kernel's. The figures are the mean and the largest of these samples (at most 400). A sample that lacks a \
     quantity, such as the smoothed round trip before the first measurement, does not count.",
)
.source("RFC 9293, RFC 6298 (smoothed round trip), TCP_INFO of Linux");

pub(super) const RETRANSMISSIONS: Definition = define(
    "retransmissions",
    "retransmissions",
    "Segments or packets that the transport retransmitted, over all members of the flow, including the drain time. \
     The simulator's TCP also counts them by cause: fast (duplicate acknowledgements), RACK, tail loss probe, \
     timeout; and those that the peer had already received (spurious). The kernel's TCP reports only their number.",
)
.source("RFC 8985 (RACK, tail loss probe), RFC 2883 (spurious)");

pub(super) const DEFINITIONS: &[&Definition] = &[&TCP_OVER_TIME, &RETRANSMISSIONS];

pub(super) const FIGURES: &[FigureKind] = &[
    figure("congestion_window_mean", "congestion window, mean", Bytes, &TCP_OVER_TIME)
        .of_flow(|f| mean(f, congestion_window)),
    figure("congestion_window_max", "congestion window, largest", Bytes, &TCP_OVER_TIME)
        .of_flow(|f| largest(f, congestion_window)),
    figure("in_flight_mean", "bytes in flight, mean", Bytes, &TCP_OVER_TIME)
        .of_flow(|f| mean(f, |s| Some(s.in_flight.count() as f64))),
    figure("in_flight_max", "bytes in flight, largest", Bytes, &TCP_OVER_TIME)
        .of_flow(|f| largest(f, |s| Some(s.in_flight.count() as f64))),
    figure("smoothed_round_trip_mean", "smoothed round trip, mean", Time, &TCP_OVER_TIME)
        .of_flow(|f| mean(f, |s| s.smoothed_round_trip.map(Duration::as_secs_f64))),
    figure("smoothed_round_trip_max", "smoothed round trip, largest", Time, &TCP_OVER_TIME)
        .of_flow(|f| largest(f, |s| s.smoothed_round_trip.map(Duration::as_secs_f64))),
    figure("pacing_rate_mean", "pacing rate, mean", Rate, &TCP_OVER_TIME)
        .of_flow(|f| mean(f, |s| s.pacing_rate.map(bits_per_second))),
    figure("retransmissions", "retransmissions", Count, &RETRANSMISSIONS)
        .of_flow(|f| counted(f, "retransmissions")),
    figure("retransmissions_fast", "retransmissions, fast", Count, &RETRANSMISSIONS)
        .of_flow(|f| counted(f, "retransmissions-fast")),
    figure("retransmissions_rack", "retransmissions, RACK", Count, &RETRANSMISSIONS)
        .of_flow(|f| counted(f, "retransmissions-rack")),
    figure("retransmissions_tail_probe", "retransmissions, tail loss probe", Count, &RETRANSMISSIONS)
        .of_flow(|f| counted(f, "retransmissions-tail-probe")),
    figure("retransmissions_timeout", "retransmissions, timeout", Count, &RETRANSMISSIONS)
        .of_flow(|f| counted(f, "retransmissions-timeout")),
    figure("retransmissions_spurious", "retransmissions, spurious", Count, &RETRANSMISSIONS)
        .of_flow(|f| counted(f, "retransmissions-spurious")),
];

/// Without congestion control there is none.
fn congestion_window(sample: &ConnectionSample) -> Option<f64> {
    (sample.congestion_window > trunkline_core::Bytes::ZERO).then(|| sample.congestion_window.count() as f64)
}

type Reading = fn(&ConnectionSample) -> Option<f64>;

fn mean(flow: &FlowSummary, reading: Reading) -> Option<f64> {
    let values = flow.connection.iter().filter_map(reading);
    let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

fn largest(flow: &FlowSummary, reading: Reading) -> Option<f64> {
    flow.connection.iter().filter_map(reading).reduce(f64::max)
}

fn counted(flow: &FlowSummary, counter: &str) -> Option<f64> {
    flow.transport_counters.get(counter).map(|count| *count as f64)
}

fn bits_per_second(rate: BitRate) -> f64 {
    rate.bits_per_second() as f64
}

#[cfg(test)]
mod tests {
    use trunkline_core::Time;

    use super::*;
    use crate::figures::of_flows;

    #[test]
    fn means_and_largest_values_are_of_the_samples_that_have_the_quantity() {
        let sample = |at: u64, window: u64, round_trip: Option<u64>| ConnectionSample {
            at: Time::from_nanos(at),
            congestion_window: trunkline_core::Bytes(window),
            smoothed_round_trip: round_trip.map(Duration::from_millis),
            ..ConnectionSample::default()
        };
        let connection = vec![sample(0, 10, None), sample(1, 40, Some(30)), sample(2, 70, Some(50))];
        let transport_counters = [("retransmissions".to_owned(), 5)].into();
        let summary = FlowSummary { connection, transport_counters, ..FlowSummary::default() };
        let value = |id| of_flows().find(|figure| figure.id == id).expect("a figure").value(&summary);
        assert_eq!(value("congestion_window_mean"), Some(40.0));
        assert_eq!(value("congestion_window_max"), Some(70.0));
        assert_eq!(value("smoothed_round_trip_mean"), Some(0.04));
        assert_eq!(value("smoothed_round_trip_max"), Some(0.05));
        assert_eq!(value("pacing_rate_mean"), None);
        assert_eq!(value("retransmissions"), Some(5.0));
        assert_eq!(value("retransmissions_fast"), None, "the kernel does not report it");
    }
}
