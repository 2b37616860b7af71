//! Traffic of others, by its rate over time.

use trunkline_core::schema::{Choice, Default, Kind, Parameter, Values};
use trunkline_core::series::Cursor;
use trunkline_core::{Bytes, Duration, Rate, Stream, Time};

use crate::draws::{MAX_MESSAGE, Sizes};
use crate::open_loop::{Channel, OpenLoop};
use crate::source::{Answer, Built, SourceContext, SourceKind};

const EVEN: &str = "even";

pub(crate) const KIND: SourceKind = SourceKind {
    name: "cross-traffic",
    aliases: &[],
    doc: "Traffic of others whose rate follows a series over time, such as a measured one, regardless of the fate of its \
          messages (an open loop). Messages follow each other so that they have the rate of that time together.",
    parameters: &[
        Parameter {
            name: "rate",
            kind: Kind::OverTime(&Kind::Rate {
                min: Rate::ZERO,
                max: Rate::from_bits_per_second(100_000_000_000),
            }),
            default: Default::Required,
            doc: "Rate of each channel's messages, without headers. At 0 bit/s, none is sent. The times of a series are those \
                  of the run, not those since the flow's `start`.",
        },
        Parameter {
            name: "message",
            kind: Kind::Sizes { min: Bytes(1), max: Bytes(MAX_MESSAGE) },
            default: Default::Text("1000 B"),
            doc: "Size of a message, without headers.",
        },
        Parameter {
            name: "arrivals",
            kind: Kind::Choice(&[
                Choice { name: "poisson", doc: "At random, a Poisson process." },
                Choice { name: EVEN, doc: "Evenly, from a random phase on." },
            ]),
            default: Default::Text("poisson"),
            doc: "Spacing of the messages.",
        },
    ],
    build,
    answer: |_| Answer::None,
    needs_reliability: |_| false,
    needs_flow_control: |_| false,
    endless: |_| true,
    max_message: |values| Sizes::max(&values.distribution("message")),
    interval: |values| Some(shortest(values)),
    samples_per_packet: |_| None,
    packetiser: |_| None,
    audio: |_| None,
};

/// The rate of a bit in a second, in the unit of [`Cursor::reach`].
const BIT: u128 = 1_000_000_000;

/// The mean interval at the largest rate.
fn shortest(values: &Values) -> Duration {
    let bits = values.distribution("message").mean() * 8.0;
    Duration::from_secs_f64(bits / (values.over_time("rate").max() as f64).max(1e-9))
}

#[derive(Debug)]
struct Others {
    rate: Cursor,
    sizes: Sizes,
    /// Draws random arrivals.
    arrivals: Option<Stream>,
    /// The amount that the rate has allowed by the time of the last message, beyond the messages so far.
    more: u64,
}

fn build(values: &Values, context: &SourceContext) -> Built {
    let shortest = shortest(values);
    if shortest < Duration::from_micros(1) {
        return Err(format!(
            "messages come every {shortest} at the largest `rate`; expected at least 1 us, a million messages per second"
        ));
    }
    let (rate, sizes) = (values.over_time("rate"), values.distribution("message"));
    let is_even = values.text("arrivals") == EVEN;
    Ok(Box::new(OpenLoop::new(context, |number| {
        let stream = |what: &str| context.seed.stream(&format!("{}/{number}/{what}", context.place));
        let mut channel = Others {
            rate: rate.cursor(),
            sizes: Sizes::new(&sizes, context, number),
            arrivals: (!is_even).then(|| stream("interval")),
            more: 0,
        };
        let bits = sizes.mean() * 8.0;
        let phase = stream("phase").unit();
        let first = match is_even {
            true => channel.rate.reach(context.start, (bits * phase * BIT as f64) as u128).0,
            false => channel.after(context.start, bits),
        };
        (channel, first)
    })))
}

impl Others {
    /// Returns the time of the next message after one of `bits` that was due at `due`.
    fn after(&mut self, due: Time, bits: f64) -> Time {
        let bits = self.arrivals.as_mut().map_or(bits, |stream| stream.exponential(bits));
        let amount = (bits * BIT as f64) as u128;
        let Some(left) = amount.checked_sub(u128::from(self.more)) else {
            self.more -= amount as u64;
            return due;
        };
        let (next, more) = self.rate.reach(due, left);
        self.more = more;
        next
    }
}

impl Channel for Others {
    fn next(&mut self, due: Time, _: Time) -> (u64, Time) {
        let size = self.sizes.draw();
        (size, self.after(due, size as f64 * 8.0))
    }
}

#[cfg(test)]
mod tests {
    use trunkline_core::schema::Value;
    use trunkline_core::series::Step;
    use trunkline_core::{Distribution, Seed, Series};

    use super::*;
    use crate::testing::{build, context, run};

    fn steps(rates: &[(u64, u64)], every: u64) -> Value {
        let step = |&(ms, kbits): &(u64, u64)| Step { from: Duration::from_millis(ms), value: kbits * 1_000 };
        let steps: Vec<Step> = rates.iter().map(step).collect();
        Value::Series(Series::new(steps, Some(Duration::from_millis(every))).unwrap())
    }

    /// Kilobits in the first and in the second half of all seconds.
    fn halves(arrivals: &str, message: Distribution) -> [f64; 2] {
        let context = SourceContext { stop: Time::from_nanos(201_000_000_000), ..context() };
        let given = [
            ("rate", steps(&[(0, 400), (500, 1_600)], 1_000)),
            ("message", Value::Distribution(message)),
            ("arrivals", Value::Text(arrivals.to_owned())),
        ];
        let sent = run(&mut *build("cross-traffic", &given, &context));
        let in_half = |half: u64| {
            let in_it = sent.iter().filter(|sent| sent.due.as_nanos() / 500_000_000 % 2 == half);
            in_it.map(|sent| sent.length as f64 * 8.0 / 1_000.0).sum()
        };
        [0, 1].map(in_half)
    }

    #[test]
    fn each_step_has_its_rate() {
        // 200 periods of half a second each at 400 and at 1,600 kbit/s.
        let even = halves(EVEN, Distribution::Constant(500));
        assert!(
            (even[0] - 40_000.0).abs() < 4.0 * 200.0 && (even[0] + even[1] - 200_000.0).abs() < 8.0,
            "{even:?}"
        );
        let poisson =
            halves("poisson", Distribution::Bivalue { first: 1_500, second: 40, probability: 0.25 });
        assert!((poisson[0] / 40_000.0 - 1.0).abs() < 0.05, "{poisson:?}");
        assert!((poisson[1] / 160_000.0 - 1.0).abs() < 0.03, "{poisson:?}");
    }

    #[test]
    fn nothing_is_sent_at_a_rate_of_zero() {
        let silent = [("rate", Value::Rate(Rate::ZERO))];
        assert_eq!(build("cross-traffic", &silent, &context()).next_due(), None);
        let given =
            [("rate", steps(&[(0, 800), (300, 0)], 1_000)), ("arrivals", Value::Text(EVEN.to_owned()))];
        let sent = run(&mut *build("cross-traffic", &given, &context()));
        assert!(sent.len().abs_diff(300) <= 1, "{}", sent.len());
        assert!(sent.iter().all(|sent| sent.due.as_nanos() % 1_000_000_000 <= 300_000_000));
    }

    #[test]
    fn too_many_messages_are_refused() {
        let given = [("rate", Value::Rate(Rate::from_bits_per_second(10_000_000_000)))];
        let sizes = Value::Distribution(Distribution::Constant(100));
        let values = crate::testing::values("cross-traffic", &[given[0].clone(), ("message", sizes)]);
        let seeded = SourceContext { seed: Seed::new(7, 0), ..context() };
        let refused = (KIND.build)(&values, &seeded).err().unwrap_or_default();
        assert!(refused.starts_with("messages come every 80 ns"), "{refused}");
    }
}
