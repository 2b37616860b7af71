//! Counters in the text format of Prometheus (version 0.0.4). Flows are left out: their names come and go, and each would be
//! a time series for ever.

use std::fmt::{self, Display, Write as _};

use super::snapshot::{DirectionSnapshot, LinkSnapshot, WireSnapshot};

/// What an HTTP answer says about this text.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const SECOND: f64 = 1e9;

/// One metric of directions: name, type, meaning and value.
type OfDirection = (&'static str, &'static str, &'static str, fn(&DirectionSnapshot) -> f64);

const OF_DIRECTIONS: &[OfDirection] = &[
    ("offered_packets_total", "counter", "Packets received from the host.", |d| d.offered.packets as f64),
    ("offered_bytes_total", "counter", "Their bytes at the network layer.", |d| d.offered.bytes as f64),
    ("delivered_packets_total", "counter", "Packets that left the link, including duplicates.", |d| {
        d.delivered.packets as f64
    }),
    ("delivered_bytes_total", "counter", "Their bytes at the network layer.", |d| d.delivered.bytes as f64),
    ("transmitted_bytes_total", "counter", "Bytes on the line, including the link's framing.", |d| {
        d.transmitted_bytes as f64
    }),
    ("busy_seconds_total", "counter", "Time for which the line was busy.", |d| d.busy_ns as f64 / SECOND),
    ("waiting_packets", "gauge", "Packets in the queue.", |d| d.waiting.packets as f64),
    ("waiting_bytes", "gauge", "Their bytes at the network layer.", |d| d.waiting.bytes as f64),
    (
        "overflowed_packets_total",
        "counter",
        "Packets lost before the link, because the relay was not scheduled in time.",
        |d| d.overflowed as f64,
    ),
    ("refused_packets_total", "counter", "Packets for the host that its kernel did not accept.", |d| {
        d.refused as f64
    }),
];

/// All of it.
pub(super) fn text(snapshot: &WireSnapshot) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(&mut text, snapshot);
    text
}

fn write_all(out: &mut String, snapshot: &WireSnapshot) -> fmt::Result {
    head(out, "up", "gauge", "1 if the link is up, 0 if it was taken down or its relay has ended.")?;
    for link in &snapshot.links {
        let up = u8::from(link.up && !link.ended);
        sample(out, "up", &[("wire", &snapshot.wire), ("link", &link.link)], up)?;
    }
    for (name, kind, help, value) in OF_DIRECTIONS {
        head(out, name, kind, help)?;
        for (link, direction) in directions(snapshot) {
            sample(out, name, &labels(snapshot, link, direction), value(direction))?;
        }
    }
    head(out, "dropped_packets_total", "counter", "Packets that the link dropped, by cause.")?;
    for (link, direction) in directions(snapshot) {
        for (cause, count) in &direction.dropped {
            let of_cause = [("cause", cause.as_str())];
            let labels = [&labels(snapshot, link, direction)[..], &of_cause].concat();
            sample(out, "dropped_packets_total", &labels, count)?;
        }
    }
    head(out, "marked_packets_total", "counter", "Packets that the link marked (ECN), by cause.")?;
    for (link, direction) in directions(snapshot) {
        for (cause, count) in &direction.marked {
            let of_cause = [("cause", cause.as_str())];
            let labels = [&labels(snapshot, link, direction)[..], &of_cause].concat();
            sample(out, "marked_packets_total", &labels, count)?;
        }
    }
    head(out, "sojourn_seconds", "summary", "Queueing delay of transmitted packets.")?;
    for (link, direction) in directions(snapshot) {
        let sojourn = &direction.sojourn;
        let labels = labels(snapshot, link, direction);
        for (quantile, value) in
            [("0.5", sojourn.p50_ns), ("0.99", sojourn.p99_ns), ("0.999", sojourn.p999_ns)]
        {
            let labels = [&labels[..], &[("quantile", quantile)]].concat();
            sample(out, "sojourn_seconds", &labels, value as f64 / SECOND)?;
        }
        sample(out, "sojourn_seconds_sum", &labels, sojourn.total_ns as f64 / SECOND)?;
        sample(out, "sojourn_seconds_count", &labels, sojourn.count)?;
    }
    Ok(())
}

fn directions(snapshot: &WireSnapshot) -> impl Iterator<Item = (&LinkSnapshot, &DirectionSnapshot)> {
    snapshot.links.iter().flat_map(|link| link.directions.iter().map(move |direction| (link, direction)))
}

fn labels<'s>(
    snapshot: &'s WireSnapshot,
    link: &'s LinkSnapshot,
    direction: &'s DirectionSnapshot,
) -> [(&'static str, &'s str); 3] {
    [("wire", &snapshot.wire), ("link", &link.link), ("from", &direction.from)]
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP trunkline_link_{name} {help}\n# TYPE trunkline_link_{name} {kind}")
}

fn sample(out: &mut String, name: &str, labels: &[(&str, &str)], value: impl Display) -> fmt::Result {
    write!(out, "trunkline_link_{name}{{")?;
    for (place, (label, text)) in labels.iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        let text = text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
        write!(out, "{comma}{label}=\"{text}\"")?;
    }
    writeln!(out, "}} {value}")
}
