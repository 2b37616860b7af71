//! Properties of every report, however odd the run.

use std::collections::BTreeSet;
use std::fs;

use roxmltree::{Document, ParsingOptions};
use trunkline_experiment::{Axis, Operator, Subject};
use trunkline_metrics::figures::{flow, of_flows, of_links};
use trunkline_store::{Backend, Status, StoredRun};

use crate::chart::{Frame, Theme, render};
use crate::figures::figures;
use crate::fixtures;
use crate::verdict::{Outcome, Verdict, headline};
use crate::view::View;
use crate::{EmbeddedSounds, Screen, csv, html, json, png, terminal, whole_html};

mod names;
mod quality;
mod screens;

#[test]
fn names_from_the_file_never_become_markup() {
    let run = fixtures::odd();
    let page = html(&run, None);
    assert!(!page.contains("<script>alert"), "a name from the file became a script");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp; "));
    assert_eq!(page.matches("<script").count(), 1, "only our own script");
    assert_eq!(page.matches("</code></pre>").count(), 1, "the file's text may not end its box");
}

#[test]
fn the_page_loads_nothing_from_elsewhere() {
    for (name, run, counterpart) in fixtures::all() {
        let page = html(&run, counterpart.as_ref());
        let page = page.replace("http://www.w3.org/2000/svg", "");
        for forbidden in ["http://", "https://", "src=", "@import", "url(", "<link"] {
            assert!(!page.contains(forbidden), "{name}: {forbidden}");
        }
    }
}

#[test]
fn figures_are_well_formed_in_every_layout_and_hold_only_finite_numbers() {
    for (name, run, counterpart) in fixtures::all() {
        let view = View::new(&run, counterpart.as_ref());
        for figure in figures(&view) {
            for frame in [figure.screen_frame(), figure.phone_frame(), figure.file_frame()] {
                let svg = render(&figure.chart, frame, "x");
                let parsed = Document::parse(&svg).unwrap_or_else(|e| panic!("{name} {}: {e}", figure.id));
                for bad in ["NaN", "inf"] {
                    assert!(!svg.contains(bad), "{name} {}: {bad}", figure.id);
                }
                assert_stays_inside(&parsed, frame, name, &figure.id);
            }
        }
    }
}

/// Every number of every path and text lies on the canvas.
fn assert_stays_inside(svg: &Document, frame: Frame, name: &str, id: &str) {
    for text in svg.descendants().filter(|n| n.has_tag_name("text")) {
        let x: f64 = text.attribute("x").unwrap().parse().unwrap();
        assert!((-1.0..=frame.width + 1.0).contains(&x), "{name} {id}: {:?} at {x}", text.text());
    }
    for path in svg.descendants().filter(|n| n.has_tag_name("path")) {
        for start in path.attribute("d").unwrap().split('M').filter(|part| !part.is_empty()) {
            let x = start.split([' ', 'H', 'h', 'l', 'v', 'a']).next().unwrap();
            let x: f64 = x.parse().unwrap_or_else(|_| panic!("{name} {id}: {start}"));
            assert!((-6.0..=frame.width + 1.0).contains(&x), "{name} {id}: path at {x}");
        }
    }
}

#[test]
fn titles_are_broken_and_not_cut() {
    let mut run = fixtures::grid();
    run.info.name =
        "How many calls a trunk of two megabits carries beside bulk transfers of any size".to_owned();
    let kinds = ["limit = \"200 KB\", target = \"5 ms\"", "limit = \"2000 KB\", target = \"15 ms\""];
    run.axes[2].key = "link.trunk-between-ottawa-and-berlin.queue".to_owned();
    run.axes[2].values = kinds.map(|kind| format!("{{ kind = \"codel\", {kind} }}")).into();
    for point in &mut run.points {
        for flow in point.repetitions.iter_mut().filter_map(|r| r.summary.as_mut()).flat_map(|s| &mut s.flows)
        {
            flow.flow = format!("{}-of-the-department-for-nonproprietary-telephony", flow.flow);
        }
    }
    let view = View::new(&run, None);
    for figure in figures(&view) {
        for frame in [figure.screen_frame(), figure.phone_frame(), figure.file_frame()] {
            let svg = render(&figure.chart, frame, "x");
            let parsed = Document::parse(&svg).unwrap();
            let drawn: String = parsed
                .descendants()
                .filter(|node| node.has_tag_name("text"))
                .filter_map(|node| node.text())
                .flat_map(|text| text.split_whitespace())
                .collect();
            let mut wanted: Vec<&str> =
                figure.chart.panels.iter().map(|panel| panel.title.as_str()).collect();
            wanted.extend(figure.chart.legend.iter().map(|entry| entry.label.as_str()));
            wanted.extend([figure.chart.x.label.as_str(), figure.chart.y.label.as_str()]);
            if frame.theme == Theme::Print {
                wanted.push(&figure.chart.title);
            }
            for text in wanted {
                let text: String = text.split_whitespace().collect();
                assert!(drawn.contains(&text), "{} at {}: {text} in {drawn}", figure.id, frame.width);
            }
            assert_stays_inside(&parsed, frame, "long names", &figure.id);
        }
    }
}

#[test]
fn labels_on_an_axis_do_not_overlap() {
    let run = fixtures::grid();
    let view = View::new(&run, None);
    for figure in figures(&view) {
        let svg = render(&figure.chart, figure.phone_frame(), "x");
        let parsed = Document::parse(&svg).unwrap();
        let mut rows: Vec<(String, f64, f64)> = Vec::new();
        for text in parsed.descendants().filter(|n| n.attribute("text-anchor") == Some("middle")) {
            let x: f64 = text.attribute("x").unwrap().parse().unwrap();
            // Digits of any sans serif are narrower than this.
            let half = text.text().unwrap_or("").chars().count() as f64 * 11.0 * 0.3;
            let y = text.attribute("y").unwrap().to_owned();
            for (other, from, to) in &rows {
                assert!(
                    *other != y || x + half <= *from || x - half >= *to,
                    "{}: {:?}",
                    figure.id,
                    text.text()
                );
            }
            rows.push((y, x - half, x + half));
        }
    }
}

#[test]
fn sweep_figures_are_left_out_without_a_sweep() {
    let run = fixtures::single(Backend::Sim);
    let ids: Vec<String> = figures(&View::new(&run, None)).into_iter().map(|f| f.id).collect();
    let of_tcp = ["tcp-window", "tcp-retransmissions", "tcp-round-trip", "tcp-pacing-rate"];
    assert_eq!(ids, [&["latency-over-time", "latency-distribution"], &of_tcp[..]].concat());
    let run = fixtures::swept(Backend::Sim);
    let ids: BTreeSet<String> = figures(&View::new(&run, None)).into_iter().map(|f| f.id).collect();
    for id in ["throughput", "loss", "latency", "latency-over-time-3", "latency-distribution-0"] {
        assert!(ids.contains(id), "{id} is missing from {ids:?}");
    }
}

#[test]
fn tcp_of_the_simulator_stands_beside_the_kernels() {
    let (sim, live) = (fixtures::single(Backend::Sim), fixtures::single(Backend::Live));
    let view = View::new(&sim, Some(&live));
    let all = figures(&view);
    let chart = |id: &str| &all.iter().find(|f| f.id == id).unwrap_or_else(|| panic!("no figure {id}")).chart;
    for id in ["tcp-window", "tcp-retransmissions", "tcp-round-trip", "tcp-pacing-rate"] {
        let titles: Vec<&str> = chart(id).panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["sim", "live"], "{id}");
    }
    let repeated = chart("tcp-retransmissions");
    // No tail loss probe was sent, and the kernel reports no causes.
    assert_eq!(repeated.panels.iter().map(|panel| panel.series.len()).collect::<Vec<_>>(), [5, 2]);
    let causes: Vec<&str> = repeated.legend.iter().map(|entry| entry.label.as_str()).collect();
    assert_eq!(causes, ["all", "fast", "RACK", "timeout", "spurious"]);
    let window: Vec<&str> = chart("tcp-window").legend.iter().map(|entry| entry.label.as_str()).collect();
    assert_eq!(window, ["congestion window", "slow-start threshold", "bytes in flight"]);
}

#[test]
fn further_axes_become_small_multiples() {
    let run = fixtures::grid();
    let view = View::new(&run, None);
    let all = figures(&view);
    let throughput = all.iter().find(|f| f.id == "throughput").unwrap();
    assert_eq!(throughput.chart.panels.len(), 8, "four rates and two queues");
    assert_eq!(throughput.chart.panels[1].title, "trunk.rate = 1 Mbit/s, round-robin");
    assert_eq!(throughput.chart.panels[1].series[0].data.len(), 4, "one value per count");
}

#[test]
fn numbers_run_along_x_wherever_they_stand() {
    let mut run = fixtures::grid();
    run.axes.swap(0, 2);
    for point in &mut run.points {
        point.choice.swap(0, 2);
    }
    let all = figures(&View::new(&run, None));
    let throughput = all.iter().find(|f| f.id == "throughput").unwrap();
    assert_eq!(throughput.chart.x.label, "trunk.rate, Mbit/s");
    assert_eq!(throughput.chart.panels[1].title, "round-robin, bulk.count = 1");
}

#[test]
fn both_backends_stand_in_the_same_figure_and_differ_without_colour() {
    let (sim, live) = (fixtures::swept(Backend::Sim), fixtures::swept(Backend::Live));
    for (run, other) in [(&sim, &live), (&live, &sim)] {
        let view = View::new(run, Some(other));
        let all = figures(&view);
        let series = &all.iter().find(|f| f.id == "throughput").unwrap().chart.panels[0].series;
        assert_eq!(series.len(), 4, "two flows on two sides");
        assert_eq!(
            series.iter().filter(|s| s.look.dashed).count(),
            2,
            "live is dashed, whichever comes first"
        );
    }
}

#[test]
fn a_counterpart_from_another_file_is_refused_and_the_page_says_so() {
    let mut other = fixtures::swept(Backend::Live);
    other.info.experiment_hash = "another".to_owned();
    let page = html(&fixtures::swept(Backend::Sim), Some(&other));
    assert!(page.contains("its experiment file is a different one"));
    assert!(!page.contains("used as it is"), "nothing of the live run is shown");
}

#[test]
fn live_runs_say_that_links_were_not_applied_and_show_stalls() {
    let live = fixtures::swept(Backend::Live);
    let page = html(&live, None);
    assert!(page.contains("The links described in the file were not applied"));
    assert!(page.contains("id=\"stalls\""));
    assert!(terminal(&live, Screen::default()).contains("used as it is"));
    let cautions = json(&live, None)["runs"][0]["cautions"].to_string();
    assert!(cautions.contains("used as it is") && cautions.contains("stalled for up to"), "{cautions}");
    let stalls = json(&live, None)["runs"][0]["stalls"].as_array().unwrap().clone();
    assert_eq!(stalls.len(), page.matches("<td>sleeping</td>").count());
    assert!(stalls.iter().all(|one| one["longest"].as_f64() > Some(0.0) && one["gaps"].is_array()));
    let simulated = &json(&fixtures::swept(Backend::Sim), None)["runs"][0];
    assert_eq!(simulated["cautions"], serde_json::json!([]));
    assert!(simulated.get("stalls").is_none());
    let command = json(&live, None)["runs"][0]["command"].as_str().unwrap().to_owned();
    assert!(command.ends_with(" --on live") && page.contains(&command), "{command}");
    assert!(!html(&fixtures::swept(Backend::Sim), None).contains("were not applied"));
}

#[test]
fn one_way_figures_between_hosts_carry_the_bound_of_the_clocks() {
    let mut live = fixtures::swept(Backend::Live);
    assert!(!terminal(&live, Screen::default()).contains("clocks"));
    assert!(!html(&live, None).contains("clock error bound</a>"));
    for point in &mut live.points {
        for flow in point.repetitions.iter_mut().filter_map(|r| r.summary.as_mut()).flat_map(|s| &mut s.flows)
        {
            flow.clock_error = Some(trunkline_core::Duration::from_micros(87));
        }
    }
    let text = terminal(&live, Screen::default());
    assert!(text.contains("± 87 us of the truth") && text.contains("± clocks"), "{text}");
    let page = html(&live, None);
    assert!(page.contains("within ± 87 us of the truth") && page.contains("href=\"#def-clock-error\""));
    let figures = json(&live, None).to_string();
    assert!(figures.contains("\"clock_error\""), "{figures}");
    let folder = tempfile::tempdir().unwrap();
    let files = csv(&live, folder.path()).unwrap();
    let repetitions = std::fs::read_to_string(&files[0]).unwrap();
    let heading = repetitions.lines().next().unwrap();
    assert!(heading.contains("clock_error") && repetitions.contains("0.000087"), "{heading}");
}

#[test]
fn runs_on_the_wire_stand_beside_the_simulator_with_the_links_applied() {
    let (sim, mut wire) = (fixtures::swept(Backend::Sim), fixtures::swept(Backend::Live));
    wire.info.backend = Backend::Wire;
    let page = html(&wire, Some(&sim));
    for part in
        ["between hosts that are namespaces of one machine", "In figures wire is dashed", "id=\"stalls\""]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("used as it is"));
    assert!(terminal(&wire, Screen::default()).contains("Links as the file describes them, in real time."));
}

#[test]
fn partial_runs_are_marked() {
    let run = fixtures::partial();
    let page = html(&run, None);
    assert!(page.contains("partial: 6 of 12 measured"));
    assert!(page.contains("cut short"));
    assert!(page.contains("trunkline run --resume 13"));
    assert!(terminal(&run, Screen::default()).contains("--resume 13"));
}

#[test]
fn a_part_of_a_run_is_judged_by_its_own_points() {
    let mut run = fixtures::swept(Backend::Sim);
    // Points 0 and 2, with all repetitions.
    run.info.shard = Some("1/2".parse().unwrap());
    for point in &mut run.points {
        point.repetitions.retain(|_| point.index % 2 == 0);
    }
    run.info.repetitions_done = 6;
    let view = View::new(&run, None);
    assert_eq!(view.points().iter().map(|point| point.index).collect::<Vec<_>>(), [0, 2]);
    let told = headline(&view, &view.sides[0]).text;
    assert!(told.starts_with("Part 1 of 2: ") && told.contains(" of 2 points. Worst"), "{told}");
    let shown = terminal(&run, Screen::default());
    assert!(shown.contains("6 of 6 repetitions of 11 s measured over 2 points"), "{shown}");
    assert!(shown.contains("`trunkline runs merge`") && !shown.contains("--resume"), "{shown}");
    let page = html(&run, None);
    assert!(page.contains("Part 1 of 2, with 6 repetitions") && page.contains("trunkline runs merge"));
    run.info.status = Status::Partial;
    let shown = terminal(&run, Screen::default());
    assert!(
        shown.contains("`trunkline run --resume 12` finishes it, then `trunkline runs merge`"),
        "{shown}"
    );
}

#[test]
fn a_part_to_which_nothing_belongs_says_so() {
    let mut run = fixtures::swept(Backend::Sim);
    run.info.shard = Some("2/3".parse().unwrap());
    (run.info.repetitions_done, run.info.repetitions, run.info.points) = (0, 1, 1);
    for point in &mut run.points {
        point.repetitions.clear();
    }
    let view = View::new(&run, None);
    assert_eq!(headline(&view, &view.sides[0]).text, "Part 2 of 3: No repetition belongs to it.");
}

#[test]
fn an_axis_of_several_keys_is_headed_by_each_of_them() {
    let mut run = fixtures::swept(Backend::Sim);
    run.axes[0].key = "link.trunk.loss, link.trunk.delay".to_owned();
    let shown = terminal(&run, Screen::default());
    assert!(shown.contains("\nloss, delay  flow"), "{shown}");
    assert!(html(&run, None).contains("trunk.<wbr>loss, trunk.<wbr>delay</th>"));
    // Ends that are alike are written with the names that tell them apart.
    run.axes[0].key = "link.trunk.loss, link.edge.loss".to_owned();
    let shown = terminal(&run, Screen::default());
    assert!(shown.contains("\ntrunk.loss, edge.loss  flow"), "{shown}");
}

#[test]
fn an_unfinished_run_meets_its_limits_only_so_far() {
    let told = |run: &StoredRun| {
        let view = View::new(run, None);
        headline(&view, &view.sides[0]).text
    };
    let mut run = fixtures::swept(Backend::Sim);
    assert!(told(&run).contains("; both hold at 1 of 4 points. Worst"), "{}", told(&run));
    run.info.status = Status::Partial;
    assert!(told(&run).contains("; both hold at 1 of 4 points so far. Worst"), "{}", told(&run));
}

#[test]
fn interrupted_repetitions_do_not_count_beside_finished_ones() {
    let mut run = fixtures::swept(Backend::Sim);
    run.points[0].repetitions[2].partial = true;
    let view = View::new(&run, None);
    let estimate = view.sides[0].estimate(0, "voice", flow("loss")).unwrap();
    assert_eq!(estimate.repetitions, 2);
}

#[test]
fn verdicts_follow_the_mean_over_repetitions() {
    let run = fixtures::swept(Backend::Sim);
    let view = View::new(&run, None);
    let loss = Verdict::of(&run.limits[0], &view, &view.sides[0]);
    assert_eq!(loss.outcome(), Outcome::Broken);
    assert_eq!(loss.worst().unwrap().point, 3, "loss grows with the load");
    assert_eq!(loss.where_(Outcome::Holds, &view), "bulk.count = 0, 1");
    assert_eq!(headline(&view, &view.sides[0]).outcome, Some(Outcome::Broken));

    let live = fixtures::swept(Backend::Live);
    let view = View::new(&live, None);
    assert_eq!(headline(&view, &view.sides[0]).text, "Both limits hold at all 4 points.");

    // A sweep may begin without members.
    let mut live = live;
    for summary in live.points[0].repetitions.iter_mut().filter_map(|one| one.summary.as_mut()) {
        summary.flows.iter_mut().for_each(|flow| flow.members = 0);
    }
    let view = View::new(&live, None);
    let expected = "Both limits hold at 3 of 4 points. None applies at the other.";
    assert_eq!(headline(&view, &view.sides[0]).text, expected);
}

/// The points of the swept run as draws of a learned path.
fn drawn() -> StoredRun {
    let mut run = fixtures::swept(Backend::Sim);
    let values = (1..=4).map(|draw: u32| draw.to_string()).collect();
    run.axes = vec![Axis { key: "link.trunk.draws".to_owned(), values, numbers: None, unit: String::new() }];
    run
}

#[test]
fn limits_hold_in_some_of_the_draws() {
    let run = drawn();
    let view = View::new(&run, None);
    let told = headline(&view, &view.sides[0]);
    assert!(told.text.starts_with("Both limits hold in 1 of 4 draws. Worst: "), "{}", told.text);
    assert_eq!(told.outcome, Some(Outcome::Broken), "not in all");
    let loss = Verdict::of(&run.limits[0], &view, &view.sides[0]);
    assert_eq!(loss.where_(Outcome::Holds, &view), "2 of 4 draws");
    assert_eq!(loss.draws(&view), Some((2, 4)));
    assert!(terminal(&run, Screen::default()).contains("2 of 4 draws"));
    assert!(html(&run, None).contains("2 of 4 draws"));
    let value = json(&run, None);
    assert_eq!(value["limits"][0]["runs"][0]["draws"], serde_json::json!({ "holds": 2, "of": 4 }));
    assert!(json(&fixtures::swept(Backend::Sim), None)["limits"][0]["runs"][0]["draws"].is_null());
    let one = StoredRun { limits: run.limits[..1].to_vec(), ..run };
    assert!(
        json(&one, None)["runs"][0]["headline"]
            .as_str()
            .unwrap()
            .starts_with("The limit holds in 2 of 4 draws.")
    );
}

#[test]
fn beside_other_axes_limits_hold_in_draws_at_each_value() {
    let mut run = drawn();
    run.axes.insert(
        0,
        Axis {
            key: "flow.bulk.count".to_owned(),
            values: vec!["1".into(), "2".into()],
            numbers: None,
            unit: String::new(),
        },
    );
    for (point, choice) in run.points.iter_mut().zip([[0, 0], [0, 1], [1, 0], [1, 1]]) {
        point.choice = choice.to_vec();
    }
    run.axes[1].values.truncate(2);
    let view = View::new(&run, None);
    let loss = Verdict::of(&run.limits[0], &view, &view.sides[0]);
    let expected = "bulk.count = 1: 2 of 2 draws; bulk.count = 2: 0 of 2 draws";
    assert_eq!(loss.where_(Outcome::Holds, &view), expected);
    assert_eq!(loss.draws(&view), Some((0, 2)), "in no draw at all counts");
}

fn throughput(index: usize) -> Subject {
    Subject::Flow { flow: index, sink: None, metric: flow("throughput_user") }
}

#[test]
fn a_lower_bound_is_worst_where_the_value_is_smallest() {
    let mut run = fixtures::swept(Backend::Sim);
    run.limits.truncate(1);
    run.limits[0].subject = throughput(0);
    run.limits[0].operator = Operator::AtLeast;
    run.limits[0].bound = 0.0;
    let view = View::new(&run, None);
    let verdict = Verdict::of(&run.limits[0], &view, &view.sides[0]);
    assert_eq!(verdict.outcome(), Outcome::Holds);
    assert_eq!(verdict.worst().unwrap().point, 3, "voice loses most beside four transfers");
}

#[test]
fn a_bound_within_the_confidence_interval_is_not_certain() {
    let mut run = fixtures::swept(Backend::Sim);
    let mean = {
        let view = View::new(&run, None);
        view.sides[0].estimate(2, "voice", flow("loss")).unwrap().mean
    };
    run.limits[0].bound = mean * 1.0001;
    let view = View::new(&run, None);
    let verdict = Verdict::of(&run.limits[0], &view, &view.sides[0]);
    assert_eq!(verdict.points[2].outcome, Outcome::Holds);
    assert!(verdict.points[2].uncertain && !verdict.points[3].uncertain);
}

#[test]
fn a_figure_that_a_repetition_did_not_measure_makes_a_limit_uncertain() {
    let mut run = fixtures::swept(Backend::Sim);
    let limit = run.limits.iter().position(|limit| limit.key.contains("latency")).unwrap();
    let uncertain = |run: &trunkline_store::StoredRun| {
        let view = View::new(run, None);
        Verdict::of(&run.limits[limit], &view, &view.sides[0]).points[0].uncertain
    };
    assert!(!uncertain(&run));
    run.points[0].repetitions[0]
        .summary
        .as_mut()
        .unwrap()
        .flows
        .iter_mut()
        .for_each(|flow| flow.latency = None);
    assert!(uncertain(&run));
}

#[test]
fn a_limit_on_what_was_not_measured_is_neither_held_nor_broken() {
    let silent = fixtures::silent();
    let view = View::new(&silent, None);
    let latency = Verdict::of(&silent.limits[1], &view, &view.sides[0]);
    assert_eq!(latency.outcome(), Outcome::NotMeasured);
    let empty = fixtures::empty();
    let view = View::new(&empty, None);
    assert_eq!(headline(&view, &view.sides[0]).outcome, Some(Outcome::NotMeasured));
}

#[test]
fn a_limit_does_not_apply_where_the_flow_has_no_members() {
    let mut run = fixtures::swept(Backend::Sim);
    run.limits.truncate(1);
    run.limits[0].key = "flow.bulk.throughput".to_owned();
    run.limits[0].subject = throughput(1);
    run.limits[0].operator = Operator::Greater;
    run.limits[0].bound = 1_000.0;
    let view = View::new(&run, None);
    let verdict = Verdict::of(&run.limits[0], &view, &view.sides[0]);
    assert_eq!(verdict.points[0].outcome, Outcome::NotApplicable, "no bulk transfer at the first point");
    assert_eq!(verdict.outcome(), Outcome::Holds);

    for summary in
        run.points.iter_mut().flat_map(|point| &mut point.repetitions).filter_map(|one| one.summary.as_mut())
    {
        summary.flows.iter_mut().for_each(|flow| flow.members = 0);
    }
    let view = View::new(&run, None);
    let headline = headline(&view, &view.sides[0]);
    assert_eq!(headline.text, "No limit applies: the flows that they name have no members.");
    assert_eq!(headline.outcome, Some(Outcome::NotApplicable));
    assert_eq!(crate::limits_hold(&run), Some(true), "as at a point of a sweep");
}

#[test]
fn one_limit_may_apply_and_another_not() {
    let mut run = fixtures::single(Backend::Live);
    run.limits[0].subject = throughput(1);
    for summary in run.points[0].repetitions.iter_mut().filter_map(|one| one.summary.as_mut()) {
        summary.flows[1].members = 0;
    }
    let view = View::new(&run, None);
    let headline = headline(&view, &view.sides[0]);
    assert_eq!(headline.text, "1 of 2 limits holds, and no other applies.");
    assert_eq!(headline.outcome, Some(Outcome::Holds));
}

#[test]
fn a_report_without_room_for_any_sound_says_so() {
    let sounds = EmbeddedSounds { sounds: Vec::new(), left_out: 2 };
    let page = whole_html(&fixtures::single(Backend::Sim), None, &sounds, None);
    assert!(page.contains("0 of 2 channels") && page.contains("href=\"#sound\""), "{page}");
    assert!(!html(&fixtures::single(Backend::Sim), None).contains("id=\"sound\""));
}

#[test]
fn tables_show_all_their_rows_unless_there_are_very_many() {
    let run = fixtures::grid();
    let page = html(&run, None);
    assert_eq!(run.points.len() * View::new(&run, None).flows.len(), 64);
    assert!(!page.contains("scroll long"), "a table of 64 rows shows them all");
    let mut many = run;
    let points = many.points.clone();
    for (index, mut point) in (0..4).flat_map(|_| points.clone()).enumerate() {
        point.index = (points.len() + index) as u32;
        many.points.push(point);
    }
    let page = html(&many, None);
    assert!(page.contains("scroll long") && page.contains("320 rows: they scroll"), "{}", many.points.len());
}

#[test]
fn every_link_within_the_page_has_a_target() {
    for (name, run, counterpart) in fixtures::all() {
        let page = html(&run, counterpart.as_ref());
        let ids: BTreeSet<&str> = attributes(&page, " id=\"").collect();
        for target in attributes(&page, "href=\"#") {
            assert!(ids.contains(target), "{name}: #{target}");
        }
        assert_eq!(ids.len(), attributes(&page, " id=\"").count(), "{name}: an id twice");
    }
}

fn attributes<'p>(page: &'p str, before: &'p str) -> impl Iterator<Item = &'p str> {
    page.split(before).skip(1).filter_map(|rest| rest.split('"').next())
}

#[test]
fn the_page_is_balanced() {
    for (name, run, counterpart) in fixtures::all() {
        let page = html(&run, counterpart.as_ref());
        // Our HTML is XML but for its void elements and attributes without a value.
        let body = page.split_once("<body>").unwrap().1.split_once("<script>").unwrap().0;
        let body = body.replace("<br>", "<br/>").replace("<wbr>", "<wbr/>").replace(" open>", " open=\"\">");
        let options = ParsingOptions { allow_dtd: false, ..ParsingOptions::default() };
        Document::parse_with_options(&format!("<body>{body}</body>"), options)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn csv_files_read_back() {
    let directory = tempfile::tempdir().unwrap();
    for (name, run, _) in fixtures::all() {
        let files = csv(&run, &directory.path().join(name)).unwrap();
        assert_eq!(files.len(), 16);
        for file in files {
            let mut reader = ::csv::Reader::from_path(&file).unwrap();
            let columns: BTreeSet<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
            assert_eq!(columns.len(), reader.headers().unwrap().len(), "{name} {}", file.display());
            // The reader refuses rows of another length.
            for row in reader.records() {
                row.unwrap_or_else(|e| panic!("{name} {}: {e}", file.display()));
            }
        }
    }
}

#[test]
fn csv_holds_what_was_measured() {
    let directory = tempfile::tempdir().unwrap();
    let run = fixtures::odd();
    csv(&run, directory.path()).unwrap();
    let mut reader = ::csv::Reader::from_path(directory.path().join("repetitions.csv")).unwrap();
    let columns = reader.headers().unwrap().clone();
    let at = |column: &str| columns.iter().position(|c| c == column).unwrap();
    let rows: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 4 * 3 * 2);
    let summary = run.points[1].repetitions[2].summary.as_ref().unwrap();
    let row = rows
        .iter()
        .find(|r| {
            &r[at("point")] == "1" && &r[at("repetition")] == "2" && r[at("flow")] == summary.flows[0].flow
        })
        .unwrap();
    let latency = summary.flows[0].latency.unwrap();
    assert_eq!(row[at("latency_p50_s")].parse::<f64>().unwrap(), latency.p50.as_secs_f64());
    assert_eq!(row[at("sent")].parse::<u64>().unwrap(), summary.flows[0].counts.sent);
    assert_eq!(columns[3], run.axes[0].key);
    assert_eq!(&row[3], "<script>alert(1)</script> & \"co\" 'x'");
}

#[cfg(feature = "png")]
#[test]
fn png_files_are_drawn_with_their_text() {
    let directory = tempfile::tempdir().unwrap();
    let files = png(&fixtures::lone(), None, directory.path()).unwrap();
    assert_eq!(files.len(), 2);
    for file in files {
        assert!(fs::read(&file).unwrap().starts_with(b"\x89PNG\r\n\x1a\n"), "{}", file.display());
    }
}

#[test]
fn json_has_every_figure_of_a_link_and_its_definition() {
    let value = json(&fixtures::swept(Backend::Sim), None);
    let link = &value["points"][3]["runs"][0]["links"][0];
    for figure in of_links() {
        assert!(link[figure.id]["mean"].is_number(), "{}", figure.id);
        assert_eq!(value["link_figures"][figure.id]["name"], figure.name);
    }
    assert_eq!(value["figures"]["latency_mean"]["rank"], 4);
    assert_eq!(value["figures"]["latency_mean"]["quantity"], "time");
    assert_eq!(value["figures"]["latency_min"].get("rank"), None);
}

#[test]
fn json_keeps_its_keys() {
    let (sim, live) = (fixtures::swept(Backend::Sim), fixtures::swept(Backend::Live));
    let value = json(&sim, Some(&live));
    let keys =
        |value: &serde_json::Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    assert_eq!((&value["kind"], &value["format"]), (&"run".into(), &2.into()));
    assert_eq!(
        keys(&value),
        [
            "axes",
            "bundle_figures",
            "figures",
            "format",
            "kind",
            "limits",
            "link_figures",
            "medium_figures",
            "name",
            "notes",
            "points",
            "runs",
            "text"
        ]
    );
    assert_eq!(value["runs"][0]["repetition_length_s"], sim.info.repetition_length.as_secs_f64());
    assert_eq!(value["runs"][0]["backend"], "sim");
    assert_eq!(value["runs"][0]["outcome"], "broken");
    assert_eq!(value["runs"][1]["outcome"], "holds");
    assert_eq!(keys(&value["limits"][0]), ["bound", "condition", "figure", "key", "runs"]);
    assert_eq!(
        keys(&value["limits"][0]["runs"][0]),
        ["broken_at", "holds_at", "outcome", "points", "run", "worst"]
    );
    assert_eq!(keys(&value["points"][3]), ["index", "runs", "values"]);
    assert_eq!(value["points"][3]["values"]["flow.bulk.count"], "4");
    let side = &value["points"][3]["runs"][0];
    assert_eq!(
        keys(side),
        ["backend", "bundles", "cut_short", "flows", "links", "media", "repetitions", "run"]
    );
    let flow = &side["flows"][0];
    assert_eq!(
        keys(flow),
        [
            "carried_by",
            "channels",
            "codec",
            "each",
            "figures",
            "flow",
            "measured",
            "members",
            "outside_e_model",
            "percentiles_exact",
            "sinks",
            "transport"
        ]
    );
    assert_eq!(keys(&flow["figures"]["latency_p99"]), ["ci95", "mean", "repetitions", "sd"]);
    assert_eq!(value["figures"].as_object().unwrap().len(), of_flows().count());
    for (_, run, counterpart) in fixtures::all() {
        let text = json(&run, counterpart.as_ref()).to_string();
        assert!(serde_json::from_str::<crate::output::Report>(&text).is_ok());
    }
}

#[test]
fn rates_of_transfers_are_shown_where_there_are_any() {
    let (with, without) = (fixtures::transfers(), fixtures::single(Backend::Sim));
    let line = terminal(&with, Screen::default());
    assert!(line.contains("transfer kbit/s") && line.contains(" 930 "), "{line}");
    assert!(!terminal(&without, Screen::default()).contains("transfer"));
    let heading = "<a href=\"#def-transfers\"";
    assert!(html(&with, None).contains(heading) && !html(&without, None).contains(heading));
    let figures = |run: &StoredRun| {
        let flows = json(run, None)["points"][0]["runs"][0]["flows"].clone();
        let bulk = flows.as_array().unwrap().iter().find(|flow| flow["flow"] == "bulk").unwrap().clone();
        [&bulk["figures"]["transfer_rate_total"]["mean"], &bulk["figures"]["transfers_kept"]["mean"]]
            .map(|v| v.as_f64())
    };
    assert_eq!(figures(&with), [Some(3_720_000.0), Some(8.0)]);
    assert_eq!(figures(&without), [None, None]);
}

#[test]
fn figures_of_media_are_shown_with_their_definitions() {
    let (with, without) = (fixtures::ring(), fixtures::swept(Backend::Sim));
    let (text, page) = (terminal(&with, Screen::default()), html(&with, None));
    let headings = text.lines().find(|line| line.contains("token rotation mean µs")).unwrap();
    assert!(headings.ends_with("bytes synchronous MiB") && !text.contains("frames"), "{text}");
    for id in ["token-rotation", "ring-utilisation", "bytes", "frames", "late-counter"] {
        assert!(page.contains(&format!("<a href=\"#def-{id}\"")), "{id}");
    }
    let value = json(&with, None);
    let media = value["points"][3]["runs"][0]["media"].clone();
    let described =
        |figure: &str, key: &str| value["medium_figures"][figure][key].as_str().unwrap().to_owned();
    assert_eq!(described("token_rotation_mean", "unit"), "s");
    assert_eq!(described("token_rotation_mean", "name"), "token rotation mean");
    assert!(!described("token_rotation_mean", "definition").is_empty());
    for figure in media.as_array().unwrap().iter().flat_map(|one| one["figures"].as_object().unwrap().keys())
    {
        assert!(value["medium_figures"][figure].is_object(), "{figure}");
    }
    assert_eq!(media[0]["station"], serde_json::Value::Null);
    assert_eq!((&media[2]["medium"], &media[2]["station"]), (&"ring".into(), &"berlin".into()));
    let mean = |medium: usize, figure: &str| media[medium]["figures"][figure]["mean"].as_f64();
    assert_eq!((mean(0, "token_rotation_mean"), mean(2, "frames")), (Some(2e-6), Some(7_500.0)));
    assert!(
        !html(&without, None).contains("id=\"media\"")
            && !terminal(&without, Screen::default()).contains("ring")
    );
}

#[test]
fn each_of_several_sinks_is_shown_the_worst_first() {
    let (with, without) = (fixtures::sinks(), fixtures::swept(Backend::Sim));
    let text = terminal(&with, Screen::default());
    let rows: Vec<&str> =
        text.lines().filter_map(|line| line.split_once("  → ")).map(|(_, row)| row).collect();
    let names = rows.iter().map(|row| row.split("  ").next().unwrap());
    assert!(text.contains("worst at   holds at") && text.contains("\ncount  flow"), "{text}");
    assert!(names.eq(["far (worst)", "late", "near"].repeat(4)), "{text}");
    let page = html(&with, None);
    assert_eq!(page.matches("<span class=\"of\">voice </span>→ ").count(), 12);
    assert_eq!(page.matches("<span class=\"tag broken\">worst</span>").count(), 4);
    assert!(page.contains("voice → far"), "among every figure");
    for page in [html(&without, None), terminal(&without, Screen::default())] {
        assert!(!page.contains('→'), "a flow with one sink is shown as ever");
    }

    let flow = json(&with, None)["points"][3]["runs"][0]["flows"][0].clone();
    let p99 = |of: &serde_json::Value| of["figures"]["latency_p99"]["mean"].as_f64().unwrap();
    let [far, late, near] = flow["sinks"].as_array().unwrap().as_slice() else { panic!("three sinks") };
    assert_eq!([&far["sink"], &late["sink"], &near["sink"]], ["far", "late", "near"]);
    assert_eq!((p99(near), far["figures"]["loss"]["mean"].as_f64()), (p99(&flow), Some(0.02)));
    assert_eq!(far["figures"]["latency_p99"]["repetitions"], 3);
    let of_sinks = of_flows().filter(|metric| metric.is_of_sinks()).count();
    assert_eq!(far["figures"].as_object().unwrap().len(), of_sinks);

    let directory = tempfile::tempdir().unwrap();
    csv(&with, directory.path()).unwrap();
    let rows =
        |file: &str| ::csv::Reader::from_path(directory.path().join(file)).unwrap().into_records().count();
    assert_eq!((rows("sinks.csv"), rows("sweep-sinks.csv")), (4 * 3 * 3, 4 * 3 * of_sinks));
}

#[test]
fn a_limit_on_a_sink_is_judged_by_its_figures() {
    let run = fixtures::sinks();
    let view = View::new(&run, None);
    let verdict = Verdict::of(&run.limits[1], &view, &view.sides[0]);
    let flow = view.sides[0].estimate(3, "voice", flow("latency_p99")).unwrap().mean;
    assert!((verdict.points[3].estimate.unwrap().mean / flow - 3.0).abs() < 1e-6);
    assert!(terminal(&run, Screen::default()).contains("voice → far latency p99 < 150 ms"));
    let swept = figures(&view);
    let latency = swept.iter().find(|figure| figure.id == "latency").unwrap();
    assert!(latency.chart.panels.iter().all(|p| p.bounds.is_empty()), "the figure shows the flow as a whole");
}

#[test]
fn pictures_on_a_page_use_its_colours_and_files_bring_their_own() {
    let run: StoredRun = fixtures::single(Backend::Sim);
    let view = View::new(&run, None);
    let figure = &figures(&view)[0];
    assert!(render(&figure.chart, figure.screen_frame(), "x").contains("var(--series-0)"));
    assert_eq!(figure.file_frame().theme, Theme::Print);
    assert!(!render(&figure.chart, figure.file_frame(), "x").contains("var("));
}

/// Not a check: writes every made-up report to a folder, to be looked at. `cargo test -p trunkline-report -- --ignored`.
#[test]
#[ignore = "writes files for people to look at"]
fn sample_reports_are_written() {
    let directory = std::env::temp_dir().join("trunkline-report-samples");
    fs::create_dir_all(&directory).unwrap();
    for (name, run, counterpart) in fixtures::all() {
        let file = |extension: &str| directory.join(format!("{name}.{extension}"));
        fs::write(file("html"), html(&run, counterpart.as_ref())).unwrap();
        fs::write(file("txt"), terminal(&run, Screen::default())).unwrap();
        fs::write(file("json"), json(&run, counterpart.as_ref()).to_string()).unwrap();
        csv(&run, &directory.join(name)).unwrap();
        png(&run, counterpart.as_ref(), &directory.join(name)).unwrap();
    }
    println!("{}", directory.display());
}
