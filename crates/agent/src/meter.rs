//! What a part sends, against what it may: a token bucket over the bytes that were recorded as sent. Greedy flows are held
//! back before they send; this is what ends a part that does not keep to it nevertheless.

use trunkline_core::{Bytes, Duration, Rate, Time};

/// How long a part may exceed its rate: stalls are made up for, and connections begin with a burst.
const DEPTH: Duration = Duration::from_secs(2);

/// And so much more, whatever the rate.
const SLACK: Bytes = Bytes(256 << 10);

/// Counts what is sent.
#[derive(Clone, Debug)]
pub struct Meter {
    rate: Rate,
    /// So much more at once is no offence.
    burst: Bytes,
    /// What has been sent and not yet been paid for by the passing of time, in bits times nanoseconds per second.
    level: u128,
    at: Time,
}

/// More was sent than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// What is allowed.
    pub allowed: Rate,
}

const NANOS: u128 = 1_000_000_000;

impl Meter {
    /// A meter for this rate, of messages that come to so much at once.
    pub fn new(rate: Rate, burst: Bytes) -> Meter {
        Meter { rate, burst: SLACK + burst, level: 0, at: Time::ZERO }
    }

    /// So many bytes were sent then. Times that go back count as the latest.
    ///
    /// # Errors
    /// If that is more than the rate allows.
    pub fn sent(&mut self, at: Time, bytes: Bytes) -> Result<(), Exceeded> {
        let rate = u128::from(self.rate.bits_per_second());
        let passed = u128::from(at.since(self.at).as_nanos());
        self.at = self.at.max(at);
        self.level = self.level.saturating_sub(passed * rate) + u128::from(bytes.count()) * 8 * NANOS;
        let depth = rate * u128::from(DEPTH.as_nanos()) + u128::from(self.burst.count()) * 8 * NANOS;
        if self.level > depth { Err(Exceeded { allowed: self.rate }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trunkline_experiment::Flow;
    use trunkline_live::on_network;

    use super::*;

    proptest! {
        /// Nothing that keeps to the rate is stopped, and nothing gets beyond rate × time and the allowance.
        #[test]
        fn the_allowance_is_what_it_says(
            mbit in 1..1000u64,
            sends in proptest::collection::vec((0..50_000_000u64, 0..200_000u64), 1..300),
        ) {
            let rate = Rate::from_bits_per_second(mbit * 1_000_000);
            let mut meter = Meter::new(rate, Bytes::ZERO);
            let (mut now, mut sum, mut due) = (Time::ZERO, Bytes::ZERO, Time::ZERO);
            for (wait, bytes) in sends {
                now += Duration::from_nanos(wait);
                let bytes = Bytes(bytes);
                // A sender that has caught up with its schedule, or is behind it.
                let keeps_to_it = due <= now + DEPTH;
                due = due.max(now) + rate.time_for(bytes);
                if meter.sent(now, bytes).is_err() {
                    prop_assert!(!keeps_to_it || due > now + DEPTH);
                    break;
                }
                sum += bytes;
                let most = mbit as f64 * 1e6 / 8.0 * (now.as_secs_f64() + DEPTH.as_secs_f64()) + SLACK.count() as f64;
                prop_assert!(sum.count() as f64 <= most + 1.0);
            }
        }
    }

    #[test]
    fn a_greedy_sender_is_caught_within_seconds() {
        let mut meter = Meter::new(Rate::from_bits_per_second(1_000_000), Bytes::ZERO);
        let sent = |ms: u64| (Time::from_nanos(ms * 1_000_000), Bytes(125_000));
        // 10 Mbit/s where 1 is allowed.
        let caught = (0..).map(|n| sent(n * 100)).position(|(at, bytes)| meter.sent(at, bytes).is_err());
        assert!(caught.is_some_and(|n| n < 10), "{caught:?}");
    }

    #[test]
    fn headers_count() {
        let text = "name = \"x\"\nduration = \"1 s\"\n[hosts]\na = {}\nb = {}\n[link.l]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n\
                    [flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = { kind = \"voice\", samples = 80 }\n";
        let experiment = trunkline_experiment::Experiment::parse(text, "x.toml", &()).unwrap();
        let mut flow = experiment.points.first().scenario.flows[0].clone();
        let sizes = |flow: &Flow| [20, 80, 2000].map(|length| on_network(flow, Bytes(length)).count());
        assert_eq!(sizes(&flow), [20 + 40, 80 + 40, 2000 + 80]);
        // Where the content is kept the header stands in front of it.
        flow.meta.keeps_payload = true;
        assert_eq!(sizes(&flow), [20 + 16 + 40, 80 + 16 + 40, 2000 + 16 + 80]);
    }
}
