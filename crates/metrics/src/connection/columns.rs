//! Samples as stored: an array for each quantity, so that names stand once. An array is missing if no sample has its
//! quantity.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use trunkline_core::{Bytes, Duration, Rate, Time};

use super::{ConnectionOverTime, ConnectionSample, Retransmissions};

type Column<T> = Vec<Option<T>>;

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Columns {
    at: Vec<Time>,
    congestion_window: Vec<Bytes>,
    in_flight: Vec<Bytes>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    slow_start_threshold: Column<Bytes>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    smoothed_round_trip: Column<Duration>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pacing_rate: Column<Rate>,
    retransmissions: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fast: Column<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rack: Column<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tail_probe: Column<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    timeout: Column<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    spurious: Column<u64>,
}

pub(crate) fn serialize<S: Serializer>(samples: &[ConnectionSample], to: S) -> Result<S::Ok, S::Error> {
    Columns {
        at: samples.iter().map(|s| s.at).collect(),
        congestion_window: samples.iter().map(|s| s.congestion_window).collect(),
        in_flight: samples.iter().map(|s| s.in_flight).collect(),
        slow_start_threshold: column(samples, |s| s.slow_start_threshold),
        smoothed_round_trip: column(samples, |s| s.smoothed_round_trip),
        pacing_rate: column(samples, |s| s.pacing_rate),
        retransmissions: samples.iter().map(|s| s.retransmissions.all).collect(),
        fast: column(samples, |s| s.retransmissions.fast),
        rack: column(samples, |s| s.retransmissions.rack),
        tail_probe: column(samples, |s| s.retransmissions.tail_probe),
        timeout: column(samples, |s| s.retransmissions.timeout),
        spurious: column(samples, |s| s.retransmissions.spurious),
    }
    .serialize(to)
}

/// Reads at most as many samples as a driver keeps; a value that is missing is zero or `None`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<ConnectionSample>, D::Error> {
    fn value<T: Copy>(column: &[Option<T>], place: usize) -> Option<T> {
        column.get(place).copied().flatten()
    }
    let columns = Columns::deserialize(from)?;
    let sample = |(place, at): (usize, &Time)| ConnectionSample {
        at: *at,
        congestion_window: columns.congestion_window.get(place).copied().unwrap_or_default(),
        in_flight: columns.in_flight.get(place).copied().unwrap_or_default(),
        slow_start_threshold: value(&columns.slow_start_threshold, place),
        smoothed_round_trip: value(&columns.smoothed_round_trip, place),
        pacing_rate: value(&columns.pacing_rate, place),
        retransmissions: Retransmissions {
            all: columns.retransmissions.get(place).copied().unwrap_or_default(),
            fast: value(&columns.fast, place),
            rack: value(&columns.rack, place),
            tail_probe: value(&columns.tail_probe, place),
            timeout: value(&columns.timeout, place),
            spurious: value(&columns.spurious, place),
        },
    };
    Ok(columns.at.iter().take(ConnectionOverTime::SAMPLES).enumerate().map(sample).collect())
}

fn column<T>(samples: &[ConnectionSample], value: impl Fn(&ConnectionSample) -> Option<T>) -> Column<T> {
    let values: Column<T> = samples.iter().map(value).collect();
    if values.iter().all(Option::is_none) { Vec::new() } else { values }
}

#[cfg(test)]
mod tests {
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder(#[serde(with = "crate::connection::columns")] Vec<ConnectionSample>);

    fn samples() -> impl Strategy<Value = Vec<ConnectionSample>> {
        let retransmissions = (
            any::<u64>(),
            option::of(any::<u64>()),
            option::of(any::<u64>()),
            option::of(any::<u64>()),
            option::of(any::<u64>()),
            option::of(any::<u64>()),
        );
        let sample = (
            any::<u64>(),
            any::<u64>(),
            any::<u64>(),
            option::of(any::<u64>()),
            option::of(any::<u64>()),
            option::of(any::<u64>()),
            retransmissions,
        )
            .prop_map(|(at, window, in_flight, threshold, round_trip, rate, causes)| {
                let (all, fast, rack, tail_probe, timeout, spurious) = causes;
                ConnectionSample {
                    at: Time::from_nanos(at),
                    congestion_window: Bytes(window),
                    slow_start_threshold: threshold.map(Bytes),
                    in_flight: Bytes(in_flight),
                    smoothed_round_trip: round_trip.map(Duration::from_nanos),
                    pacing_rate: rate.map(Rate::from_bits_per_second),
                    retransmissions: Retransmissions { all, fast, rack, tail_probe, timeout, spurious },
                }
            });
        prop::collection::vec(sample, 0..20)
    }

    proptest! {
        #[test]
        fn samples_are_read_as_they_were_written(samples in samples()) {
            let json = serde_json::to_string(&Holder(samples.clone())).unwrap();
            prop_assert_eq!(serde_json::from_str::<Holder>(&json).unwrap(), Holder(samples));
        }
    }

    #[test]
    fn quantities_that_no_sample_has_take_no_room() {
        let json = serde_json::to_string(&Holder(vec![ConnectionSample::default(); 2])).unwrap();
        let expected = r#"{"at":[0,0],"congestion_window":[0,0],"in_flight":[0,0],"retransmissions":[0,0]}"#;
        assert_eq!(json, expected);
    }

    #[test]
    fn arrays_of_other_lengths_neither_fail_nor_grow() {
        let read: Holder =
            serde_json::from_str(r#"{"at":[5,6],"congestion_window":[7],"fast":[1,2,3]}"#).unwrap();
        assert_eq!(read.0.len(), 2);
        assert_eq!(read.0[1].congestion_window, Bytes::ZERO);
        assert_eq!(read.0[1].retransmissions.fast, Some(2));
        let many = format!(r#"{{"at":{:?}}}"#, vec![0; 1_000]);
        let read: Holder = serde_json::from_str(&many).unwrap();
        assert_eq!(read.0.len(), ConnectionOverTime::SAMPLES);
    }
}
