//! The times of reports.

use trunkline_core::{Duration, Rate, Seed, Time};

use crate::rtp::config::Reporting;
use crate::rtp::interval::{Census, Schedule};

const BOTH_SEND: Census = Census { members: 2, senders: 2, we_send: true };

/// Runs a schedule for an hour: times between its reports.
fn intervals(reporting: Reporting, census: Census) -> Vec<f64> {
    let mut stream = Seed::new(3, 0).stream("test");
    let mut schedule = Schedule::new(reporting, 100);
    schedule.start(Time::ZERO, census, &mut stream);
    let mut last = Time::ZERO;
    let mut intervals = Vec::new();
    while let Some(now) = schedule.next().filter(|&next| next < Time::ZERO + Duration::from_secs(3600)) {
        if schedule.rings(now, census, &mut stream) {
            schedule.packet(100);
            intervals.push(now.since(last).as_secs_f64());
            last = now;
        }
        assert!(schedule.next().is_some_and(|next| next > now));
    }
    intervals
}

fn mean(intervals: &[f64]) -> f64 {
    intervals.iter().sum::<f64>() / intervals.len() as f64
}

#[test]
fn reports_come_at_the_minimum_on_average_and_never_regularly() {
    let intervals = intervals(Reporting::with_bandwidth(Rate::from_bits_per_second(64_000)), BOTH_SEND);
    // The first after half of it: between 2.5 / 2 / 1.22 s and 2.5 * 1.5 / 1.22 s.
    assert!((1.02..3.08).contains(&intervals[0]), "{}", intervals[0]);
    assert!(intervals[1..].iter().all(|interval| (2.05..6.16).contains(interval)));
    // Section 6.3.1: reconsideration and the compensation for it cancel out.
    let mean = mean(&intervals[1..]);
    assert!((4.7..5.3).contains(&mean), "{mean}");
    assert!(intervals.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn a_slow_session_reports_as_rarely_as_its_bandwidth_asks_for() {
    // Two members of 100 bytes share 5 % of 1 kbit/s, 6.25 bytes/s: 32 s.
    let intervals = intervals(Reporting::with_bandwidth(Rate::from_bits_per_second(1000)), BOTH_SEND);
    let mean = mean(&intervals);
    assert!((28.0..36.0).contains(&mean), "{mean}");
}

#[test]
fn the_reduced_minimum_is_360_s_over_the_bandwidth_in_kbit_per_s() {
    let reporting = Reporting::reduced(Rate::from_bits_per_second(720_000));
    assert_eq!(reporting.minimum, Duration::from_millis(500));
    let mean = mean(&intervals(reporting, BOTH_SEND));
    assert!((0.47..0.53).contains(&mean), "{mean}");
}

#[test]
fn a_report_comes_sooner_when_half_of_the_members_have_left() {
    let mut stream = Seed::new(3, 0).stream("test");
    let mut schedule = Schedule::new(Reporting::with_bandwidth(Rate::from_bits_per_second(1000)), 100);
    schedule.start(Time::ZERO, BOTH_SEND, &mut stream);
    let before = schedule.next().unwrap();
    let now = Time::ZERO + Duration::from_secs(1);
    let alone = Census { members: 1, senders: 1, we_send: true };
    schedule.left(now, alone);
    let left = before.since(now);
    assert_eq!(schedule.next(), Some(now + left / 2));
    schedule.left(now, alone);
    assert_eq!(schedule.next(), Some(now + left / 2), "nobody else has left");
}

#[test]
fn members_are_missed_after_five_intervals_of_five_seconds() {
    let schedule = Schedule::new(Reporting::reduced(Rate::from_bits_per_second(720_000)), 100);
    assert_eq!(schedule.patience(BOTH_SEND), Duration::from_secs(25));
}
