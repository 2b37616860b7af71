//! The drift of the second clock against the first.
//!
//! In either direction the smallest delays lie on a line below all others, whatever the queue does (Moon, Skelly and Towsley
//! 1999). The line is an edge of the lower convex hull. A drift raises it in one direction as fast as it lowers it in the other.

use crate::{Observations, Way};

/// The shortest capture, in nanoseconds, in which a drift is more than noise.
const MIN_LENGTH: f64 = 10e9;

/// Removes the drift from all delays, and returns it if there is one: nanoseconds per nanosecond.
pub(super) fn remove(observations: &mut Observations) -> Option<f64> {
    let [there, back] = Way::ALL.map(|way| slope(observations, way));
    let (there, back) = (there?, back?);
    let drift = (there - back) / 2.0;
    // A queue that fills during the whole capture does so in one direction only.
    if (there + back).abs() > 0.3 * drift.abs() || !(1e-6..5e-4).contains(&drift.abs()) {
        return None;
    }
    for flow in &mut observations.flows {
        let sign = if flow.way == Way::Forward { 1.0 } else { -1.0 };
        for packet in &mut flow.packets {
            let by = (sign * drift * packet.sent.as_nanos() as f64) as i64;
            packet.delay = packet.delay.map(|delay| delay - by);
        }
    }
    Some(drift)
}

/// The slope of the line below the delays of a direction at the middle of the capture.
fn slope(observations: &Observations, way: Way) -> Option<f64> {
    let packets = observations.packets(way);
    let points =
        packets.iter().filter_map(|packet| Some((packet.sent.as_nanos() as f64, packet.delay? as f64)));
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for (x, y) in points {
        // Of one time the smaller delay counts.
        if hull.last().is_some_and(|last| last.0 == x) {
            if hull.last().is_some_and(|last| last.1 <= y) {
                continue;
            }
            hull.pop();
        }
        while let [.., a, b] = hull[..]
            && (b.1 - a.1) * (x - a.0) >= (y - a.1) * (b.0 - a.0)
        {
            hull.pop();
        }
        hull.push((x, y));
    }
    let (first, last) = (hull.first()?.0, hull.last()?.0);
    if last - first < MIN_LENGTH {
        return None;
    }
    let middle = (first + last) / 2.0;
    let edge = hull.windows(2).find(|edge| edge[1].0 >= middle)?;
    Some((edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0))
}
