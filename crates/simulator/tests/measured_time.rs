//! Throughput and utilisation are of the time that is measured, whatever drains afterwards.

mod support;

use proptest::prelude::*;
use support::{flow, parse, simulate};
use trunkline_core::{Duration, Rate};
use trunkline_metrics::{FlowSummary, Meter, RepetitionSummary};

const HEAD: &str = "name = \"test\"\nduration = \"1 s\"\ndrain = \"10 s\"\n[hosts]\na = {}\nb = {}\n\
                    [link.l]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n\
                    queue = { kind = \"fifo\", limit = \"10 MB\" }\n";

/// 2 Mbit/s, from that moment on.
fn overload(start: &str) -> RepetitionSummary {
    simulate(&parse(&format!(
        "{HEAD}[flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nstart = \"{start}\"\n\
         source = {{ kind = \"load\", message = \"1000 B\", interval = \"4 ms\" }}\n"
    )))
}

#[test]
fn an_overloaded_line_carries_its_rate_and_no_more() {
    let summary = overload("0 s");
    let throughput = flow(&summary, "f").throughput;
    let line = Rate::from_bits_per_second(1_000_000);
    assert!(
        throughput.user < line && throughput.network.is_some_and(|network| network <= line),
        "{throughput:?}"
    );
    assert!(throughput.user.bits_per_second() > 925_000, "{throughput:?}");
    assert!(throughput.offered.bits_per_second().abs_diff(2_000_000) < 10_000, "{throughput:?}");
    assert_eq!(flow(&summary, "f").counts.received, 250, "all of it arrives in the end");
    // Busy from the first message on, which has a phase within its interval of 4 ms.
    let utilisation = summary.links[0].utilisation.value();
    assert!((utilisation - throughput.active.as_secs_f64()).abs() < 1e-6, "{:?}", summary.links[0]);
}

/// A queue that holds longer than the run lasts: the largest latency says nothing of what was dropped.
#[test]
fn what_a_queue_dropped_is_lost_and_what_it_holds_is_unfinished() {
    let counts = |transport: &str, more: &str| {
        let experiment = parse(&format!(
            "name = \"test\"\nduration = \"2 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\n\
             between = [\"a\", \"b\"]\nrate = \"2 Mbit/s\"\ndelay = \"10 ms\"\n\
             queue = {{ kind = \"fifo\", limit = \"1 MB\" }}\n[flow.v]\nfrom = \"a\"\nto = \"b\"\ncount = 1000\n\
             transport = \"{transport}\"\nsource = {{ kind = \"voice\", samples = 80 }}\n{more}"
        ));
        let scenario = &experiment.points.first().scenario;
        let metas: Vec<_> = scenario.flows.iter().map(|flow| flow.meta.clone()).collect();
        let mut trace = ();
        let mut meter = Meter::new(&metas, &mut trace).with_drain(scenario.drain);
        let outcome = support::run(scenario, experiment.seed, &mut meter, &mut support::GoOn);
        let summary = meter.finish(outcome);
        let dropped: u64 = summary.links.iter().flat_map(|link| link.dropped.values()).sum();
        (flow(&summary, "v").counts, dropped)
    };
    for (transport, more) in [("udp", ""), ("rtp", ""), ("udp", "reflect = true\n")] {
        let (counts, dropped) = counts(transport, more);
        assert!(dropped > 180_000, "{transport}: {dropped}");
        // Some packets are no messages of the flow: RTCP's.
        assert!(counts.lost.abs_diff(dropped) <= dropped / 200, "{transport}: {dropped} and {counts:?}");
        assert!(counts.unfinished > 1000, "{transport}: {counts:?}");
        assert_eq!(counts.sent, counts.received + counts.late + counts.lost + counts.unfinished);
    }
}

/// Every message that waits has waited longer than any that has arrived: its age says nothing.
#[test]
fn what_waits_in_a_queue_that_only_grows_is_not_lost() {
    for transport in ["udp", "rtp"] {
        let experiment = parse(&format!(
            "name = \"test\"\nduration = \"5 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\n\
             between = [\"a\", \"b\"]\nrate = \"64 kbit/s\"\nqueue = {{ kind = \"fifo\", limit = \"1 GB\" }}\n\
             [flow.v]\nfrom = \"a\"\nto = \"b\"\ncount = 10\ntransport = \"{transport}\"\n\
             source = {{ kind = \"voice\", samples = 160 }}\n"
        ));
        let scenario = &experiment.points.first().scenario;
        let metas: Vec<_> = scenario.flows.iter().map(|flow| flow.meta.clone()).collect();
        let mut trace = ();
        let mut meter = Meter::new(&metas, &mut trace).with_drain(scenario.drain);
        let outcome = support::run(scenario, experiment.seed, &mut meter, &mut support::GoOn);
        let summary = meter.finish(outcome);
        assert_eq!(summary.links[0].dropped.values().sum::<u64>(), 0);
        let counts = flow(&summary, "v").counts;
        assert_eq!(counts.lost, 0, "{transport}: {counts:?}");
        assert!(counts.unfinished > 2000, "{transport}: {counts:?}");
    }
}

#[test]
fn a_line_that_is_idle_half_of_the_time_is_used_to_half() {
    let summary = overload("500 ms");
    // Busy from the first message on, which has a phase within its interval of 4 ms.
    let throughput = flow(&summary, "f").throughput;
    let utilisation = summary.links[0].utilisation.value();
    assert!((utilisation - throughput.active.as_secs_f64()).abs() < 1e-6, "{utilisation} and {throughput:?}");
    assert!((Duration::from_millis(496)..=Duration::from_millis(500)).contains(&throughput.active));
    assert!(
        throughput.network.is_some_and(|network| network.bits_per_second() <= 1_000_000),
        "{throughput:?}"
    );
}

/// The sinks stop to listen before the window at the end of a long path is over.
#[test]
fn without_a_drain_time_throughput_is_over_what_the_sink_has_heard() {
    let summary = simulate(&parse(
        "name = \"test\"\nduration = \"2 s\"\ndrain = \"0 s\"\n[hosts]\na = {}\nb = {}\n[link.l]\n\
         between = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"300 ms\"\n[flow.f]\nfrom = \"a\"\n\
         to = \"b\"\ntransport = \"udp\"\nsource = { kind = \"voice\", samples = 80 }\n",
    ));
    let flow = flow(&summary, "f");
    assert!(flow.throughput.user.bits_per_second().abs_diff(64_000) < 800, "{:?}", flow.throughput);
    assert_eq!(flow.counts.lost, 0);
}

/// Each of five calls gets all that it wants from its own start on.
#[test]
fn calls_that_begin_one_after_the_other_are_treated_alike() {
    let summary = simulate(&parse(
        "name = \"test\"\nduration = \"10 s\"\n[hosts]\na = {}\nb = {}\n[link.l]\nbetween = [\"a\", \"b\"]\n\
         rate = \"10 Mbit/s\"\n[flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\ncount = 5\n\
         stagger = \"1900 ms\"\nsource = { kind = \"voice\", samples = 80 }\n[bundle.all]\nflows = [\"f\"]\n",
    ));
    let (flow, bundle) = (flow(&summary, "f").fairness.unwrap(), summary.bundles[0].fairness.unwrap());
    assert!(flow > 0.999 && (flow - bundle).abs() < 1e-9, "{flow} and {bundle}");
}

#[test]
fn shares_of_time_of_media_end_with_the_measurement() {
    // Twice what the medium carries, in the second half only: its last frames leave long after the end.
    for (medium, share) in [
        ("medium = \"fddi\"", "ring-utilisation"),
        ("medium = \"wifi\"", "channel-use"),
        ("medium = \"ethernet\"\nrate = \"10 Mbit/s\"", "switch-utilisation"),
    ] {
        let summary = simulate(&parse(&format!(
            "name = \"test\"\nduration = \"1 s\"\ndrain = \"10 s\"\n[hosts]\na = {{}}\nb = {{}}\nc = {{}}\n\
             [link.l]\n{medium}\nbetween = [\"a\", \"b\", \"c\"]\nqueue = {{ kind = \"fifo\", limit = \"1 GB\" }}\n\
             [flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nstart = \"500 ms\"\n\
             source = {{ kind = \"load\", message = \"1000 B\", interval = \"40 us\" }}\n"
        )));
        let found = summary.media.iter().flat_map(|medium| &medium.figures).filter(|(name, _)| name == share);
        let most = found.filter_map(|(_, amount)| match amount {
            Some(trunkline_core::Amount::Share(share)) => Some(share.value()),
            _ => None,
        });
        let most = most.fold(0.0, f64::max);
        // Between its frames a cell is silent.
        assert!((0.3..0.5001).contains(&most), "{share} is {most}");
        let used = summary.links.iter().map(|link| link.utilisation.value()).fold(0.0, f64::max);
        assert!(used < 0.5001, "{medium} is used to {used}");
    }
}

/// A link, flows over it with any pace, and how long they are measured.
fn any_scenario() -> impl Strategy<Value = String> {
    let queue = prop_oneof![
        Just("{ kind = \"fifo\", limit = \"1 MB\" }"),
        Just("{ kind = \"fifo\", limit = \"8 KiB\" }"),
        Just("\"priority\""),
        Just("\"drr\""),
        Just("\"fq-codel\""),
        Just("\"pie\""),
    ];
    let transport = prop_oneof![
        4 => Just("\"udp\""),
        1 => Just("\"rtp\""),
        1 => Just("\"tcp\""),
        1 => Just("\"sctp\""),
    ];
    let flow = (transport, 1u32..1400, 200u32..20_000, 0u32..900, 0u16..4, 1u32..4);
    let link = (queue, 200u32..5000, 0u32..100, 0u32..60, prop::bool::ANY);
    (link, prop::collection::vec(flow, 1..6), 200u32..2000).prop_map(|(link, flows, duration)| {
        let (queue, rate, delay, loss, two_links) = link;
        let lossy = f64::from(loss) / 10.0;
        let mut text = format!(
            "name = \"any\"\nduration = \"{duration} ms\"\ndrain = \"2 s\"\n[hosts]\na = {{}}\nm = {{}}\nb = {{}}\n\
             [link.l]\nbetween = [\"a\", \"m\"]\nrate = \"{rate} kbit/s\"\ndelay = \"{delay} ms\"\nqueue = {queue}\n\
             loss = \"{lossy} %\"\nduplicate = \"{lossy} %\"\n[link.k]\nbetween = [\"m\", \"b\"]\n\
             rate = \"100 Mbit/s\"\ndelay = \"{delay} ms\"\n"
        );
        for (n, (transport, message, interval, start, priority, count)) in flows.into_iter().enumerate() {
            // Half of the scenarios have flows that begin at once; of those the throughputs can be added up.
            let start = if two_links { 0 } else { start.min(duration.saturating_sub(50)) };
            let to = if n % 2 == 0 { "m" } else { "b" };
            text += &format!(
                "[flow.f{n}]\nfrom = \"a\"\nto = \"{to}\"\ntransport = {transport}\nstart = \"{start} ms\"\n\
                 priority = {priority}\ncount = {count}\n\
                 source = {{ kind = \"load\", message = \"{message} B\", interval = \"{interval} us\" }}\n"
            );
        }
        let names: Vec<String> = (0..6).map(|n| format!("\"f{n}\"")).filter(|name| text.contains(&name[1..3])).collect();
        let even: Vec<String> = names.iter().step_by(2).cloned().collect();
        text + &format!("[bundle.near]\nflows = [{}]\n", even.join(", "))
    })
}

/// A medium, with the rate that its stations share in bits per second, and flows from two stations to a third; media that
/// join two hosts have all flows from the first.
fn any_medium() -> impl Strategy<Value = (String, u64)> {
    let medium = prop_oneof![
        Just(("fddi", "", 3, 100_000_000)),
        Just(("wifi", "", 3, 54_000_000)),
        Just(("ethernet", "rate = \"10 Mbit/s\"\n", 3, 10_000_000)),
        Just(("atm", "line = \"4 Mbit/s\"\nrate = \"2 Mbit/s\"\n", 2, 2_000_000)),
        Just(("t1", "", 2, 1_544_000)),
    ];
    let flow =
        (prop::bool::ANY, 1u32..1400, 40u32..4000, prop::sample::select(vec!["udp", "rtp", "tcp", "sctp"]));
    (medium, prop::collection::vec(flow, 1..5), 100u32..600).prop_map(|(medium, flows, duration)| {
        let (medium, keys, stations, rate) = medium;
        let names = &["\"a\"", "\"c\"", "\"b\""][..stations];
        let mut text = format!(
            "name = \"any\"\nduration = \"{duration} ms\"\ndrain = \"3 s\"\n[hosts]\na = {{}}\nb = {{}}\nc = {{}}\n\
             [link.l]\nmedium = \"{medium}\"\nbetween = [{}]\nqueue = {{ kind = \"fifo\", limit = \"10 MB\" }}\n{keys}",
            names.join(", ")
        );
        for (n, (second, message, interval, transport)) in flows.into_iter().enumerate() {
            let from = if second && stations == 3 { "b" } else { "a" };
            text += &format!(
                "[flow.f{n}]\nfrom = \"{from}\"\nto = \"c\"\ntransport = \"{transport}\"\n\
                 source = {{ kind = \"load\", message = \"{message} B\", interval = \"{interval} us\" }}\n"
            );
        }
        (text, rate)
    })
}

/// Messages go nowhere but to one of their fates, and no byte is delivered that was not offered.
fn conserves(flow: &FlowSummary) -> Result<(), TestCaseError> {
    let counts = flow.counts;
    prop_assert_eq!(
        counts.sent,
        counts.received + counts.late + counts.lost + counts.unfinished,
        "{} conserves its messages",
        flow.flow
    );
    let shares = flow.undelivered() + flow.late.value() + counts.received as f64 / counts.due().max(1) as f64;
    prop_assert!((shares - 1.0).abs() < 1e-9 || counts.due() == 0, "{shares}");
    let (user, offered) = (flow.throughput.user, flow.throughput.offered);
    prop_assert!(user <= offered, "{} had {user} of {offered}", flow.flow);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// No flow, no sum of flows and no bundle has more than its link carries, and no byte comes from nowhere.
    #[test]
    fn nothing_exceeds_its_link_and_bytes_are_conserved(text in any_scenario()) {
        let experiment = parse(&text);
        let rate = experiment.points.first().scenario.links[0].directions[0].rate.bits_per_second();
        let summary = simulate(&experiment);
        let bits = |rate: Rate| rate.bits_per_second();
        for flow in &summary.flows {
            let throughput = flow.throughput;
            let network = throughput.network.map_or(0, bits);
            prop_assert!(network <= rate + 1, "{} took {network} of {rate} bit/s", flow.flow);
            prop_assert!(bits(throughput.user) <= rate, "{} had {} of {rate} bit/s", flow.flow, throughput.user);
        }
        for bundle in &summary.bundles {
            prop_assert!(bits(bundle.user) <= rate, "{bundle:?}");
            prop_assert!(bundle.network.map_or(0, bits) <= rate + 1, "{bundle:?}");
        }
        // Of flows that are active over the same time.
        let longest = summary.flows.iter().map(|flow| flow.throughput.active).max().unwrap_or_default();
        let alike = || summary.flows.iter().filter(|flow| flow.throughput.active == longest);
        let user: u64 = alike().map(|flow| bits(flow.throughput.user)).sum();
        let network: u64 = alike().filter_map(|flow| flow.throughput.network).map(bits).sum();
        prop_assert!(user <= rate, "together {user} of {rate} bit/s");
        prop_assert!(network <= rate + summary.flows.len() as u64, "together {network} of {rate} bit/s");

        for flow in &summary.flows {
            conserves(flow)?;
        }
        for link in &summary.links {
            let dropped: u64 = link.dropped.values().sum();
            prop_assert!(link.delivered + dropped <= link.offered, "{link:?}");
            prop_assert!(link.utilisation.value() <= 1.0, "{link:?}");
        }
    }

    /// The flows into one station of any medium have together no more than it carries.
    #[test]
    fn no_sum_of_flows_exceeds_its_medium((text, rate) in any_medium()) {
        let summary = simulate(&parse(&text));
        let user: u64 = summary.flows.iter().map(|flow| flow.throughput.user.bits_per_second()).sum();
        prop_assert!(user <= rate, "together {user} of {rate} bit/s");
        for flow in &summary.flows {
            conserves(flow)?;
        }
        for link in &summary.links {
            prop_assert!(link.utilisation.value() <= 1.0, "{link:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// Messages of 20 bytes have short headers, whose times are modulo a minute or so in answers.
    #[test]
    fn round_trips_are_right_however_long(delay in 1_u64..1700, interval in 1_u64..100) {
        let text = format!(
            "name = \"test\"\nduration = \"300 s\"\ndrain = \"60 min\"\n[hosts]\na = {{}}\nb = {{}}\n\
             [link.l]\nbetween = [\"a\", \"b\"]\nrate = \"1 Gbit/s\"\ndelay = \"{delay} s\"\n\
             [flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nreflect = true\n\
             source = {{ kind = \"load\", message = \"20 B\", interval = \"{interval} s\" }}\n"
        );
        let summary = simulate(&parse(&text));
        let latency = flow(&summary, "f").latency.expect("all come back");
        let expected = Duration::from_secs(2 * delay);
        for found in [latency.min, latency.max] {
            prop_assert!(found.saturating_sub(expected) < Duration::from_millis(1) && found >= expected, "{found} {expected}");
        }
    }
}

/// A sweep may begin without any member of a flow.
#[test]
fn a_flow_without_members_is_simulated() {
    for transport in ["udp", "tcp", "sctp", "dccp", "quic", "xtp", "urp"] {
        let text = format!(
            "{HEAD}[flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"{transport}\"\ncount = 0\n\
             source = {{ kind = \"load\", message = \"100 B\", interval = \"10 ms\" }}\n"
        );
        assert_eq!(flow(&simulate(&parse(&text)), "f").counts.sent, 0, "{transport}");
    }
}
