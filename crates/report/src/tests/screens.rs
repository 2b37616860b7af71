//! The summary on terminals of any width, and in a pipe.

use trunkline_core::{Rate, Ratio};
use trunkline_experiment::Experiment;
use trunkline_metrics::figures::flow;
use trunkline_store::Backend;

use crate::units::Readable as _;
use crate::verdict::{Outcome, Verdict, headline};
use crate::view::View;
use crate::{Screen, Style, fixtures, html, json, one_line, terminal};

#[test]
fn terminal_lines_fit_every_width_and_plain_text_has_no_escapes() {
    for (name, run, _) in fixtures::all() {
        for width in [60, 80, 100, 140, 250] {
            let screen = Screen::of_width(width);
            let text = terminal(&run, screen);
            for line in text.lines() {
                assert!(textwrap::core::display_width(line) <= width, "{name} at {width}: {line}");
                assert_eq!(line, line.trim_end(), "{name}: spaces at the end");
            }
            assert!(!text.contains('\u{1b}'), "{name}");
            assert!(!text.contains('…'), "{name} at {width}: something is cut");
            let coloured = terminal(&run, Screen { style: Style::Colour, ..screen });
            assert_eq!(without_escapes(&coloured), text, "{name}: colour changes nothing else");
        }
    }
}

#[test]
fn a_pipe_gets_every_row_and_unbroken_lines() {
    for (name, run, _) in fixtures::all() {
        let text = terminal(&run, Screen::default());
        assert!(!text.contains("more rows"), "{name}");
        let view = View::new(&run, None);
        let headline = headline(&view, &view.sides[0]).text;
        // Spaces within a number may be narrow ones, which a pipe gets as plain ones.
        let headline = headline.replace('\u{202f}', " ");
        assert!(text.lines().next().unwrap().ends_with(&headline), "{name}: {text}");
        // A row for each flow at each point, on one line.
        for point in &run.points {
            let of_point = |flow: &&str| {
                view.sides[0].flow(point.index, flow).first().is_some_and(|summary| summary.members > 0)
            };
            for flow in view.flows.iter().filter(|flow| of_point(flow) && !flow.contains(' ')) {
                let values = (0..run.axes.len()).map(|axis| crate::view::shown_on(point, &run.axes, axis));
                let words: Vec<String> = values.chain([(*flow).to_owned()]).collect();
                let is_row = |line: &&str| words.iter().all(|word| line.contains(word.as_str()));
                assert!(text.lines().any(|line| is_row(&line)), "{name}: {words:?} in\n{text}");
            }
        }
    }
}

#[test]
fn no_two_rows_look_alike_however_narrow_the_terminal() {
    let mut run = fixtures::swept(Backend::Sim);
    run.axes[0].key = "flow.music.transport".to_owned();
    let sctp = |streams: u32| format!("{{ kind = \"sctp\", streams = {streams}, window = \"4 MiB\" }}");
    run.axes[0].values = [1, 2, 16, 64].map(sctp).into();
    run.axes[0].numbers = None;
    for width in [60, 80, 100] {
        let text = terminal(&run, Screen::of_width(width));
        for streams in [1, 2, 16, 64] {
            let words = text.split_whitespace().filter(|word| *word == format!("{streams},"));
            // In the table of limits, and in the row of each flow.
            assert!(words.count() >= 2, "{width}: {text}");
        }
    }
}

#[test]
fn values_that_differ_in_their_key_alone_are_told_apart() {
    let mut run = fixtures::swept(Backend::Sim);
    run.axes[0].key = "flow.music.transport".to_owned();
    let tcp = |key: &str| format!("{{ kind = \"tcp\", {key} = \"32 KiB\" }}");
    run.axes[0].values = ["window", "max-window", "send-buffer"].map(tcp).into();
    run.axes[0].values.push("{ kind = \"tcp\", window = \"64 KiB\" }".to_owned());
    run.axes[0].numbers = None;
    let shown: Vec<String> =
        run.points.iter().map(|point| crate::view::shown_on(point, &run.axes, 0)).collect();
    assert_eq!(shown, ["tcp window 32 KiB", "tcp max-window 32 KiB", "tcp send-buffer 32 KiB", "tcp 64 KiB"]);
}

#[test]
fn a_slow_flow_does_not_choose_the_unit_of_a_fast_one() {
    let mut run = fixtures::swept(Backend::Sim);
    let summaries = run.points.iter_mut().flat_map(|p| &mut p.repetitions).filter_map(|r| r.summary.as_mut());
    for latency in summaries.filter_map(|summary| summary.flows[1].latency.as_mut()) {
        latency.p999 = trunkline_core::Duration::from_secs(70);
    }
    let view = View::new(&run, None);
    let voice = view.sides[0].estimate(3, "voice", flow("latency_mean")).unwrap();
    let text = terminal(&run, Screen::default());
    let shown = flow("latency_mean").quantity.show(voice.mean);
    assert!(shown.ends_with("ms") && text.contains(&shown), "{shown} in\n{text}");
    assert!(text.contains("70 s"), "{text}");
    let page = html(&run, None);
    assert!(!page.contains(">0.00"), "a figure of the page begins with zeros");
}

#[test]
fn the_swept_key_stands_beside_its_values() {
    let mut run = fixtures::swept(Backend::Sim);
    run.limits.truncate(1);
    let view = View::new(&run, None);
    let verdict = Verdict::of(&run.limits[0], &view, &view.sides[0]);
    assert_eq!(verdict.where_(Outcome::Holds, &view), "bulk.count = 0, 1");
    let text = terminal(&run, Screen::default());
    assert!(text.contains("count = 0, 1"), "{text}");
    assert!(text.contains("worst at") && text.contains("count = 4"), "{text}");
}

#[test]
fn what_was_cut_short_has_no_verdict() {
    let mut run = fixtures::single(Backend::Sim);
    run.info.status = trunkline_store::Status::Partial;
    run.limits = fixtures::swept(Backend::Live).limits;
    run.limits.iter_mut().for_each(|limit| limit.bound = 1.0);
    for repetitions in [0, 1] {
        run.info.repetitions_done = repetitions;
        for stored in run.points.iter_mut().flat_map(|point| &mut point.repetitions) {
            stored.partial = repetitions == 0;
        }
        let view = View::new(&run, None);
        let headline = headline(&view, &view.sides[0]);
        assert_eq!(headline.outcome, Some(Outcome::NotMeasured), "{}", headline.text);
        let wanted = format!("{repetitions} of {}", run.info.repetitions);
        assert!(headline.text.contains(&wanted), "{}", headline.text);
        let text = terminal(&run, Screen::default());
        assert!(!text.contains('✓'), "{text}");
        assert!(!html(&run, None).contains("headline holds"));
        assert_eq!(json(&run, None)["runs"][0]["outcome"], "not-measured");
    }
}

#[test]
fn what_was_cut_short_without_limits_has_no_point_measured() {
    let mut run = fixtures::single(Backend::Sim);
    run.info.status = trunkline_store::Status::Partial;
    run.info.repetitions_done = 0;
    run.limits.clear();
    let view = View::new(&run, None);
    let expected = format!("0 of {} repetitions measured; the file sets no limits.", run.info.repetitions);
    assert_eq!(headline(&view, &view.sides[0]).text, expected);
}

#[test]
fn a_name_cannot_move_the_cursor() {
    let mut run = fixtures::swept(Backend::Sim);
    run.info.name = "\u{1b}[2Jgone\r".to_owned();
    run.axes[0].values[0] = "\u{7}\u{9b}31m".to_owned();
    let text = terminal(&run, Screen::default());
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
}

fn without_escapes(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |out, part| out + part.split_once('m').unwrap().1)
}

#[test]
fn a_repetition_in_a_line_has_its_values_and_the_flows_that_have_members() {
    let text = "name = \"x\"\nduration = \"1 s\"\n[hosts]\na = {}\nb = {}\n[link.l]\nbetween = [\"a\", \"b\"]\n\
                rate = \"1 Mbit/s\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
                source = { kind = \"voice\" }\n[sweep]\n\"flow.voice.channels\" = [1, 2]";
    let experiment = Experiment::parse(text, "x.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
    let mut summary = fixtures::repetition(2, false, &mut fixtures::Draw::new(1));
    let [voice, bulk, ..] = summary.flows.as_mut_slice() else { panic!("two flows") };
    (voice.throughput.user, voice.loss) = (Rate::from_bits_per_second(256_000), Ratio::ZERO);
    (bulk.latency, bulk.loss) = (None, Ratio::new(0.125).expect("it is a share"));
    bulk.throughput.user = Rate::from_bits_per_second(1_900_000);
    let p99 = flow("latency_p99");
    let latency = p99.quantity.show(p99.value(&summary.flows[0]).expect("it has latencies"));
    assert_eq!(
        one_line(&experiment, &experiment.points.at(1), &summary),
        format!("channels = 2: voice 256 kbit/s p99 {latency}, bulk 1900 kbit/s loss 12.5 %")
    );
    summary.flows[0].members = 0;
    let line = one_line(&experiment, experiment.points.first(), &summary);
    assert_eq!(line, "channels = 1: bulk 1900 kbit/s loss 12.5 %");
}
