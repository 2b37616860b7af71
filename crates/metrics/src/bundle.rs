//! Flows counted together: what each of them brings, and the summary of all.

use trunkline_core::{Bytes, Duration, Rate, Ratio, Time};

use crate::record::BundleMeta;
use crate::summary::{BundleSummary, ClassSummary, Counts, Measured, Spread};
use crate::throughput::jain_fairness;

/// The contribution of a flow to its bundle.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) flow: String,
    pub(crate) transport: String,
    pub(crate) measured: Measured,
    /// From its first due message to the end of its active time; `None` if none was due.
    pub(crate) active: Option<(Time, Time)>,
    /// The end of its active time that its sinks do not see, because they are gone before messages could arrive.
    pub(crate) unheard: Duration,
    /// Payload delivered in its active time.
    pub(crate) delivered: Bytes,
    /// Bytes that it took of its first link, and the time until which they were counted.
    pub(crate) network: Option<(Bytes, Time)>,
    pub(crate) members: Vec<Member>,
}

/// One connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// Payload delivered in its own active time.
    pub(crate) user: Rate,
    pub(crate) counts: Counts,
    /// Delays of the messages that it received, if any.
    pub(crate) latency: Option<MemberDelay>,
}

/// The latencies of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberDelay {
    pub(crate) mean: Duration,
    pub(crate) p999: Duration,
}

/// The summary of a bundle of these flows.
pub(crate) fn summary(meta: &BundleMeta, parts: &[Part]) -> BundleSummary {
    let begin = parts.iter().filter_map(|part| Some(part.active?.0)).min().unwrap_or(Time::ZERO);
    let end = parts.iter().filter_map(|part| Some(part.active?.1)).max().unwrap_or(Time::ZERO);
    let active = end.since(begin);
    let seen = |part: &Part| Some(part.active?.1.since(begin).saturating_sub(part.unheard));
    let seen = parts.iter().filter_map(seen).max().unwrap_or_default();
    let delivered = parts.iter().fold(Bytes::ZERO, |sum, part| sum + part.delivered);
    let network = parts.iter().try_fold((Bytes::ZERO, end), |(sum, last), part| {
        let (bytes, until) = part.network?;
        Some((sum + bytes, last.max(until)))
    });

    let mut transports: Vec<&str> = Vec::new();
    for part in parts {
        if !transports.contains(&part.transport.as_str()) {
            transports.push(&part.transport);
        }
    }
    let of_transport =
        |transport: &str| -> Vec<&Part> { parts.iter().filter(|part| part.transport == transport).collect() };
    let members = parts.iter().flat_map(|part| &part.members);
    BundleSummary {
        bundle: meta.name.clone(),
        flows: parts.iter().map(|part| part.flow.clone()).collect(),
        members: count(members.clone()),
        fairness: fairness(members),
        active,
        user: Rate::of(delivered, seen),
        network: network.map(|(bytes, until)| Rate::of(bytes, until.since(begin))),
        classes: transports.into_iter().map(|transport| class(transport, &of_transport(transport))).collect(),
    }
}

/// The class of the flows of one transport.
fn class(transport: &str, parts: &[&Part]) -> ClassSummary {
    let members = || parts.iter().flat_map(|part| &part.members);
    let delays = |of: fn(MemberDelay) -> Duration| members().filter_map(move |member| member.latency.map(of));
    // Of connections with messages due.
    let shares = |part: fn(&Counts) -> u64| {
        let due = members().map(|member| member.counts).filter(|counts| counts.due() > 0);
        spread(due.map(|counts| counts.share(part(&counts))), |shares| {
            let sum: f64 = shares.iter().map(|share| share.value()).sum();
            Ratio::new(sum / shares.len() as f64).unwrap_or_default()
        })
    };
    ClassSummary {
        transport: transport.to_owned(),
        members: count(members()),
        measured: parts.first().map(|part| part.measured).unwrap_or_default(),
        throughput: spread(members().map(|member| member.user), |rates| {
            Rate::from_bits_per_second(mean(rates.iter().map(|rate| rate.bits_per_second())))
        }),
        loss: shares(|counts| counts.lost),
        unfinished: shares(|counts| counts.unfinished),
        refused: shares(|counts| counts.refused),
        latency_mean: spread(delays(|delay| delay.mean), mean_duration),
        latency_p999: spread(delays(|delay| delay.p999), mean_duration),
        fairness: fairness(members()),
    }
}

fn count<'m>(members: impl Iterator<Item = &'m Member>) -> u32 {
    u32::try_from(members.count()).unwrap_or(u32::MAX)
}

fn fairness<'m>(members: impl Iterator<Item = &'m Member>) -> Option<f64> {
    jain_fairness(members.map(|member| member.user.bits_per_second() as f64))
}

/// Mean and extremes; `None` of no values.
fn spread<T: Copy + PartialOrd>(
    values: impl Iterator<Item = T>,
    mean: impl FnOnce(&[T]) -> T,
) -> Option<Spread<T>> {
    let values: Vec<T> = values.collect();
    let min = values.iter().copied().reduce(|least, value| if value < least { value } else { least })?;
    let max = values.iter().copied().reduce(|most, value| if value > most { value } else { most })?;
    let members = u32::try_from(values.len()).unwrap_or(u32::MAX);
    Some(Spread { mean: mean(&values), min, max, members })
}

fn mean_duration(durations: &[Duration]) -> Duration {
    Duration::from_nanos(mean(durations.iter().map(|duration| duration.as_nanos())))
}

/// The mean, rounded to the nearest whole.
fn mean(values: impl ExactSizeIterator<Item = u64>) -> u64 {
    let n = values.len().max(1) as u128;
    let sum: u128 = values.map(u128::from).sum();
    u64::try_from((sum + n / 2) / n).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KBIT: fn(u64) -> Rate = |n| Rate::from_bits_per_second(n * 1000);
    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn part(transport: &str, begin: u64, end: u64, rates: &[u64]) -> Part {
        let delay = |rate: u64| MemberDelay { mean: MS(rate), p999: MS(2 * rate) };
        let member = |&rate: &u64| Member {
            user: KBIT(rate),
            counts: Counts { sent: 1000, lost: rate, ..Counts::default() },
            latency: (rate > 0).then(|| delay(rate)),
        };
        let total: u64 = rates.iter().sum();
        Part {
            flow: format!("of-{transport}"),
            transport: transport.to_owned(),
            measured: Measured::OneWay,
            active: Some((Time::ZERO + MS(begin), Time::ZERO + MS(end))),
            unheard: Duration::ZERO,
            delivered: Bytes(total * (end - begin) / 8),
            network: Some((Bytes(total * (end - begin) / 4), Time::ZERO + MS(end))),
            members: rates.iter().map(member).collect(),
        }
    }

    fn bundle(parts: &[Part]) -> BundleSummary {
        summary(&BundleMeta { name: "a".to_owned(), flows: Vec::new() }, parts)
    }

    fn over<T>(mean: T, min: T, max: T, members: u32) -> Option<Spread<T>> {
        Some(Spread { mean, min, max, members })
    }

    #[test]
    fn classes_are_of_transports_and_count_every_member_once() {
        let bundle = bundle(&[
            part("udp", 0, 1000, &[0, 10]),
            part("tcp", 0, 1000, &[7]),
            part("udp", 0, 1000, &[20]),
        ]);
        let names: Vec<&str> = bundle.classes.iter().map(|class| class.transport.as_str()).collect();
        assert_eq!((names, bundle.members), (vec!["udp", "tcp"], 4));
        let udp = &bundle.classes[0];
        assert_eq!(udp.throughput, over(KBIT(10), KBIT(0), KBIT(20), 3));
        let share = |n| Ratio::new(n).unwrap();
        assert_eq!(udp.loss, over(share(0.01), share(0.0), share(0.02), 3));
        // Of the two members that received something.
        assert_eq!(udp.latency_mean, over(MS(15), MS(10), MS(20), 2));
        assert_eq!(udp.latency_p999, over(MS(30), MS(20), MS(40), 2));
        // 30^2 / (3 * 500), 37^2 / (4 * 549)
        assert_eq!((udp.fairness, bundle.fairness), (Some(0.6), Some(1369.0 / 2196.0)));
        assert_eq!((bundle.classes[1].members, bundle.classes[1].fairness), (1, None));
    }

    #[test]
    fn the_total_is_of_the_time_in_which_any_flow_is_active() {
        let bundle = bundle(&[part("udp", 0, 1000, &[80]), part("tcp", 3000, 4000, &[80])]);
        assert_eq!((bundle.active, bundle.user, bundle.network), (MS(4000), KBIT(40), Some(KBIT(80))));
    }

    #[test]
    fn without_members_there_is_nothing_to_tell() {
        let mut none = part("udp", 0, 1, &[]);
        none.active = None;
        none.network = None;
        let bundle = bundle(&[none]);
        assert_eq!((bundle.members, bundle.user, bundle.network), (0, Rate::ZERO, None));
        let class = &bundle.classes[0];
        assert_eq!((class.members, class.throughput, class.loss, class.latency_mean), (0, None, None, None));
    }
}
