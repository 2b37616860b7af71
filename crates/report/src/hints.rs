//! Hints: settings that held a flow back where the network would have carried more, limits that drop packets on an idle line,
//! packets larger than an MTU, and messages that waited at their sender.

use std::collections::BTreeMap;

use trunkline_core::{Bytes, count};
use trunkline_metrics::{Counts, CutBy, FlowSummary, LimitedBy};
use trunkline_store::StoredPoint;

use crate::view::{Side, View, counted, point_name};

/// The cause by which links count packets that are larger than their MTU.
const TOO_LARGE: &str = "too-large";

/// Below this share of late messages nobody asks why.
const LATE: f64 = 0.01;

/// A sentence for every flow and limit, which names the first point at which it was found and counts the others.
pub(crate) fn of(view: &View, side: &Side) -> Vec<String> {
    let mut found: Vec<Found> = Vec::new();
    for point in view.points() {
        for flow in &view.flows {
            let summaries = side.flow(point.index, flow);
            let Some(limit) = summaries.iter().find_map(|summary| summary.limited_by.as_ref()) else {
                continue;
            };
            let known = found.iter_mut().find(|known| {
                known.flow == *flow && known.limit.option == limit.option && known.limit.bytes == limit.bytes
            });
            match known {
                Some(known) => known.others += 1,
                None => found.push(Found { flow, limit, first: point, others: 0 }),
            }
        }
    }
    let limited = found.iter().map(|found| found.sentence(view));
    let of_flow = |flow: &&str| {
        [cut, waiting, unconnected, unfinished, outside_model].map(|hint| hint(view, side, flow))
    };
    limited.chain(view.flows.iter().flat_map(of_flow).flatten()).chain(too_large(view, side)).collect()
}

/// A sentence for each link that dropped packets for their size.
fn too_large(view: &View, side: &Side) -> Vec<String> {
    let mut found: BTreeMap<&str, (&StoredPoint, Vec<u64>, usize)> = BTreeMap::new();
    for point in view.points() {
        for link in side.links(point.index) {
            let links = side.link(point.index, link);
            let dropped: Vec<u64> =
                links.iter().map(|link| link.dropped.get(TOO_LARGE).copied().unwrap_or(0)).collect();
            if dropped.iter().any(|count| *count > 0) {
                found.entry(link).and_modify(|(.., others)| *others += 1).or_insert((point, dropped, 0));
            }
        }
    }
    let sentence = |(link, (point, dropped, others)): (&str, (&StoredPoint, Vec<u64>, usize))| {
        let repetitions = dropped.len() as u64;
        // The mean of the repetitions, as in the tables; not 0, for some were dropped.
        let mean = ((dropped.iter().sum::<u64>() + repetitions / 2) / repetitions).max(1);
        let each = if repetitions > 1 { " per repetition" } else { "" };
        let ring = if is_ring(side, point, link) {
            " or take longer than the `synchronous` time of their station"
        } else {
            ""
        };
        format!(
            "Link `{link}` dropped {}{each}{} that {} larger than its `mtu`{ring}. Neither congestion nor random loss \
             was the cause.",
            count(mean, "packet"),
            place(view, point, others),
            if mean == 1 { "is" } else { "are" }
        )
    };
    found.into_iter().map(sentence).collect()
}

/// True if a link is a direction of a token ring.
fn is_ring(side: &Side, point: &StoredPoint, link: &str) -> bool {
    let mut media = side.point(point.index).into_iter().flat_map(counted).flat_map(|summary| &summary.media);
    media.any(|medium| {
        let is_its = link.strip_prefix(&medium.medium).is_some_and(|direction| direction.starts_with(' '));
        is_its && medium.figures.iter().any(|(name, _)| name == "ttrt")
    })
}

/// The first point at which something was found of a flow.
fn first<T>(
    view: &View,
    side: &Side,
    flow: &str,
    found: impl Fn(&FlowSummary) -> Option<T>,
) -> Option<(String, T)> {
    let of_point =
        |point: &StoredPoint| side.flow(point.index, flow).iter().find_map(|summary| found(summary));
    let (point, found) = view.points().iter().find_map(|point| Some((point, of_point(point)?)))?;
    Some((place_of(view, point), found))
}

/// ` at bulk.count = 4`; empty where nothing is swept.
fn place_of(view: &View, point: &StoredPoint) -> String {
    if view.is_swept() { format!(" at {}", point_name(point, view.axes())) } else { String::new() }
}

/// The sentence about a limit that drops packets of a flow even on an idle line.
fn cut(view: &View, side: &Side, flow: &str) -> Option<String> {
    let (place, cut) = first(view, side, flow, |summary| summary.cut_by.clone())?;
    let CutBy { option, limit, chunk, packet, largest } = cut;
    let why = match chunk {
        Some(chunk) => format!(
            ", because this link handles packets in chunks of {chunk} and drops a packet if one of its chunks does \
             not fit"
        ),
        None => String::new(),
    };
    Some(format!(
        "`{flow}` has packets of {packet} and more{place}, but `{option}` of {limit} drops those of more than {largest} even on an \
         idle line{why}."
    ))
}

/// The sentence about a flow with connections that were not established while its sources sent.
fn unconnected(view: &View, side: &Side, flow: &str) -> Option<String> {
    let (place, missing) = first(view, side, flow, |summary| {
        summary.transport_counters.get(FlowSummary::NOT_CONNECTED).copied().filter(|missing| *missing > 0)
    })?;
    let (connections, them) = match missing {
        1 => (format!("A connection of `{flow}` was"), "it"),
        _ => (format!("{missing} connections of `{flow}` were"), "them"),
    };
    Some(format!(
        "{connections} not established before the end of the source{place}, so nothing was sent over {them}: messages that were due \
         count as refused, not as lost."
    ))
}

/// The sentence about a flow of which most, or nothing at all, had not arrived when the run ended: over the repetitions of the first
/// such point.
fn unfinished(view: &View, side: &Side, flow: &str) -> Option<String> {
    let of_point = |point: &StoredPoint| {
        let summaries = side.flow(point.index, flow);
        let sum = |of: fn(&Counts) -> u64| summaries.iter().map(|summary| of(&summary.counts)).sum();
        let all = Counts {
            sent: sum(|counts| counts.sent),
            refused: sum(|counts| counts.refused),
            received: sum(|counts| counts.received),
            late: sum(|counts| counts.late),
            lost: sum(|counts| counts.lost),
            unfinished: sum(|counts| counts.unfinished),
            ..Counts::default()
        };
        let nothing = all.received + all.late + all.lost == 0;
        (all.unfinished > 0 && (nothing || all.unfinished * 2 > all.due())).then_some(all)
    };
    let (point, counts) = view.points().iter().find_map(|point| Some((point, of_point(point)?)))?;
    let place = place_of(view, point);
    let what = match counts.received + counts.late {
        0 => format!("Nothing of `{flow}` had arrived{place}"),
        _ => format!("Most messages of `{flow}` had not arrived{place}"),
    };
    let refused = match counts.refused {
        0 => String::new(),
        refused => format!(" and {refused} had been refused"),
    };
    let longer = if ends_with_a_flow(&side.run.text) { "`drain`" } else { "`drain` or `duration`" };
    Some(format!(
        "{what} when the run ended: {} of {} were in flight or waited{refused}. Loss, latency and limits on them leave these \
         out; a longer {longer} may let them arrive.",
        counts.unfinished,
        counts.due()
    ))
}

/// True if a run ends with a flow: `duration` is then no more than its longest.
fn ends_with_a_flow(text: &str) -> bool {
    text.parse::<toml::Table>().is_ok_and(|file| file.contains_key("until"))
}

/// The sentence about an R-factor and a MOS that are outside the range in which the E-model holds: at the first such point, what
/// the first repetition has in which they are.
fn outside_model(view: &View, side: &Side, flow: &str) -> Option<String> {
    let mut points = view.points().iter().filter_map(|point| {
        // The share of repetitions is that of the first point alone.
        let summaries = side.flow(point.index, flow);
        let outside = summaries.iter().filter_map(|summary| Some(summary.quality.as_ref()?.outside_model()));
        let outside: Vec<Vec<String>> = outside.filter(|all| !all.is_empty()).collect();
        let times = match summaries.len() {
            1 => String::new(),
            all => format!(" in {} of {all} repetitions", outside.len()),
        };
        Some((point, times, outside.into_iter().next()?))
    });
    let (point, times, inputs) = points.next()?;
    let inputs = inputs.join(" and ");
    let others = points.count();
    let first = place(view, point, 0);
    let more = match others {
        0 => String::new(),
        _ => format!(", and at {}", count(others as u64, "other point")),
    };
    let by = if times.is_empty() { ":" } else { ", first by" };
    Some(format!(
        "R-factor and MOS of `{flow}` are extrapolated{first}{times}{by} {inputs}, outside the range of the E-model (ITU-T \
         G.107){more}."
    ))
}

/// ` at PLACE and 2 other points`; empty without a sweep.
fn place(view: &View, first: &StoredPoint, others: usize) -> String {
    let name = || point_name(first, view.axes());
    match (view.is_swept(), others) {
        (false, _) => String::new(),
        (true, 0) => format!(" at {}", name()),
        (true, 1) => format!(" at {} and one other point", name()),
        (true, n) => format!(" at {} and {n} other points", name()),
    }
}

/// The sentence about a late share that needs an explanation: latency is counted from when messages were sent, which was well
/// after they were due.
fn waiting(view: &View, side: &Side, flow: &str) -> Option<String> {
    let waited = |summary: &FlowSummary| {
        let [due, sent] = [summary.latency_from_due.as_ref()?.mean, summary.latency.as_ref()?.mean];
        let waited = due.saturating_sub(sent);
        (summary.late.value() > LATE && waited > sent).then_some(waited)
    };
    let (place, waited) = first(view, side, flow, waited)?;
    Some(format!(
        "`{flow}` waits at its sender{place}: on average, its messages leave {waited} after they are due. Late \
         counts from the due time, latency from the sending time."
    ))
}

struct Found<'v> {
    flow: &'v str,
    limit: &'v LimitedBy,
    first: &'v StoredPoint,
    others: u32,
}

impl Found<'_> {
    fn sentence(&self, view: &View) -> String {
        let LimitedBy { option, bytes, blocks, round_trip, twice, at_most, enough, largest } = self.limit;
        let size = blocks.map_or_else(|| bytes.to_string(), |blocks| format!("{blocks} blocks ({bytes})"));
        let place = place(view, self.first, self.others as usize);
        if option == "window-scaling" {
            return format!(
                "`{}` is limited by a transport without `window-scaling`{place}: with a round trip of {round_trip}, windows of \
                 at most {bytes} allow about {at_most}.",
                self.flow
            );
        }
        if option == "burst" {
            let better = enough.map_or_else(String::new, |enough| {
                format!(
                    "; a `burst` of {} B, or a multiple of it, would use all of the `rate`",
                    enough.count()
                )
            });
            return format!(
                "`{}` is limited by its transport's `burst` of {bytes}{place}: the whole packets that fit into it every \
                 {round_trip} are about {at_most}{better}.",
                self.flow
            );
        }
        let twice = match twice {
            true => ", two of which pass until it is acknowledged on request,",
            false => "",
        };
        let more = match enough {
            Some(enough) => {
                let kib = Bytes(enough.count().next_multiple_of(1024));
                let needs = match largest {
                    Some(largest) if kib > *largest => ", which needs `window-scaling`",
                    _ => "",
                };
                let room = if view.flows.len() > 1 { "if other flows leave room, " } else { "" };
                format!("; {room}the path would carry more with a `{option}` of {kib} or more{needs}")
            }
            None => String::new(),
        };
        format!(
            "`{}` is limited by its transport's `{option}` of {size}{place}: with a round trip of {round_trip}{twice} it \
             allows about {at_most}{more}.",
            self.flow
        )
    }
}

#[cfg(test)]
mod tests {
    use trunkline_core::{Bytes, Duration, Ratio};
    use trunkline_metrics::{CutBy, FlowSummary, LimitedBy};
    use trunkline_store::Backend;

    use crate::{Screen, fixtures, terminal};

    #[test]
    fn a_limit_that_drops_packets_on_an_idle_line_is_named() {
        let mut run = fixtures::single(Backend::Sim);
        for flow in
            run.points[0].repetitions.iter_mut().filter_map(|r| r.summary.as_mut()).flat_map(|s| &mut s.flows)
        {
            flow.cut_by = (flow.flow == "voice").then(|| CutBy {
                option: "link.trunk.queue.limit".to_owned(),
                limit: "4 packets".to_owned(),
                chunk: Some(Bytes(64)),
                packet: Bytes(1400),
                largest: Bytes(340),
            });
        }
        let page = terminal(&run, Screen::default()).replace("\n", " ");
        let hint = "`voice` has packets of 1400 B and more, but `link.trunk.queue.limit` of 4 packets drops those of more than 340 B";
        assert!(page.contains(hint) && page.contains("chunks of 64 B"), "{page}");
    }

    #[test]
    fn a_connection_that_was_never_established_is_named() {
        let mut run = fixtures::single(Backend::Sim);
        for flow in
            run.points[0].repetitions.iter_mut().filter_map(|r| r.summary.as_mut()).flat_map(|s| &mut s.flows)
        {
            let missing = u64::from(flow.flow == "voice");
            flow.transport_counters.insert(FlowSummary::NOT_CONNECTED.to_owned(), missing);
        }
        let page = terminal(&run, Screen::default()).replace("\n", " ");
        let hint = "A connection of `voice` was not established before the end of the source, so nothing was sent over it";
        assert_eq!(page.matches("not established").count(), 1, "{page}");
        assert!(page.contains(hint), "{page}");
    }

    #[test]
    fn a_run_that_ends_with_a_flow_needs_a_longer_drain_and_no_longer_duration() {
        for (until, longer) in [("", "`drain` or `duration`"), ("until = \"voice\"\n", "`drain`")] {
            let mut run = fixtures::single(Backend::Sim);
            run.text.insert_str(0, until);
            for flow in run.points[0]
                .repetitions
                .iter_mut()
                .filter_map(|r| r.summary.as_mut())
                .flat_map(|s| &mut s.flows)
            {
                let counts = &mut flow.counts;
                (counts.unfinished, counts.received, counts.late, counts.lost) = (counts.received, 0, 0, 0);
            }
            let page = terminal(&run, Screen::default()).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(page.contains(&format!("; a longer {longer} may let them arrive")), "{page}");
        }
    }

    #[test]
    fn a_window_that_cannot_be_announced_needs_scaling() {
        let limited = |enough: u64| LimitedBy {
            option: "window".to_owned(),
            bytes: Bytes(8760),
            blocks: None,
            round_trip: Duration::from_millis(86),
            twice: false,
            at_most: trunkline_core::Rate::from_bits_per_second(800_000),
            enough: Some(Bytes(enough)),
            largest: Some(Bytes(65_535)),
        };
        for (enough, needs) in [(60_000, false), (231_424, true)] {
            let mut run = fixtures::single(Backend::Sim);
            let summary = run.points[0].repetitions[0].summary.as_mut().unwrap();
            summary.flows[0].limited_by = Some(limited(enough));
            let page = terminal(&run, Screen::default()).split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(page.contains("or more, which needs `window-scaling`"), needs, "{page}");
            // The path has other flows too, which may have all that it carries.
            let room = "if other flows leave room, the path would carry more with a `window` of";
            assert!(page.contains(room), "{page}");
        }
    }

    #[test]
    fn packets_that_no_mtu_lets_through_are_told_from_loss() {
        let mut run = fixtures::single(Backend::Sim);
        let links = run.points[0]
            .repetitions
            .iter_mut()
            .filter_map(|r| r.summary.as_mut())
            .flat_map(|s| &mut s.links);
        for link in links.take(1) {
            link.dropped.insert("too-large".to_owned(), 49);
        }
        let page = terminal(&run, Screen::default()).replace("\n", " ");
        assert!(page.contains("dropped 49 packets that are larger than its `mtu`"), "{page}");

        // The mean of a point's repetitions, like the tables, and all points.
        let mut run = fixtures::swept(Backend::Sim);
        for point in &mut run.points {
            for (index, repetition) in point.repetitions.iter_mut().enumerate() {
                if let Some(summary) = &mut repetition.summary {
                    summary.links[0].dropped.insert("too-large".to_owned(), 40 + 2 * index as u64);
                }
            }
        }
        let (points, repetitions) = (run.points.len(), run.points[0].repetitions.len());
        let page = terminal(&run, Screen::default()).replace("\n", " ");
        let mean = 39 + repetitions;
        assert!(
            repetitions > 1 && page.contains(&format!("dropped {mean} packets per repetition at")),
            "{page}"
        );
        assert!(page.contains(&format!("and {} other points that are larger", points - 1)), "{page}");
    }

    #[test]
    fn messages_that_are_late_because_they_waited_at_their_sender_are_explained() {
        let mut run = fixtures::single(Backend::Sim);
        let hint = "waits at its sender";
        assert!(!terminal(&run, Screen::default()).contains(hint));
        for flow in
            run.points[0].repetitions.iter_mut().filter_map(|r| r.summary.as_mut()).flat_map(|s| &mut s.flows)
        {
            if flow.flow != "voice" {
                continue;
            }
            flow.late = Ratio::new(0.99).unwrap();
            flow.latency_from_due = flow.latency;
            let [due, sent] =
                [&mut flow.latency_from_due, &mut flow.latency].map(|delay| delay.as_mut().unwrap());
            (due.mean, sent.mean) = (Duration::from_millis(1016), Duration::from_millis(16));
        }
        let page = terminal(&run, Screen::default()).replace("\n", " ");
        assert!(page.contains(hint) && page.contains("leave 1 s after they are due"), "{page}");
    }
}
