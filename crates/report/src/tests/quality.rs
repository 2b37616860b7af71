//! The quality of voice.

use trunkline_core::{Duration, Ratio};
use trunkline_metrics::QualitySummary;
use trunkline_store::Backend;

use crate::{Screen, csv, fixtures, html, json, terminal};

/// The E-model holds within ranges: what it gives beyond them is marked wherever it is shown.
#[test]
fn a_quality_outside_the_model_is_marked() {
    let good = QualitySummary {
        r: 60.0,
        mos: 3.125,
        mouth_to_ear: Some(Duration::from_millis(150)),
        ppl: Ratio::new(0.019).unwrap(),
        burst_r: 7.0,
        codec: "g711".to_owned(),
    };
    let many = QualitySummary { ppl: Ratio::new(0.05).unwrap(), ..good.clone() };
    for (quality, outside) in [
        (good.clone(), None),
        (QualitySummary { burst_r: 2.0, ..many.clone() }, None),
        (
            QualitySummary { burst_r: 2.003, ..many.clone() },
            Some("a burst ratio of 2.003 with Ppl of 5.0 % (at most 2 from 2 % on)"),
        ),
        (many, Some("a burst ratio of 7.0 with Ppl of 5.0 % (at most 2 from 2 % on)")),
        (QualitySummary { burst_r: 9.0, ..good.clone() }, Some("a burst ratio of 9.0 (at most 8)")),
        (
            QualitySummary { ppl: Ratio::new(0.3).unwrap(), burst_r: 1.0, ..good.clone() },
            Some("Ppl of 30.0 % (at most 20 %)"),
        ),
        (
            QualitySummary { mouth_to_ear: Some(Duration::from_millis(532)), ..good },
            Some("a mouth-to-ear delay of 532 ms (at most 500 ms)"),
        ),
    ] {
        let mut run = fixtures::single(Backend::Sim);
        for repetition in &mut run.points[0].repetitions {
            repetition.summary.as_mut().unwrap().flows[0].quality = Some(quality.clone());
        }
        let (text, page, value) = (terminal(&run, Screen::default()), html(&run, None), json(&run, None));
        let flow = &value["points"][0]["runs"][0]["flows"][0];
        let all: Vec<&str> = outside.into_iter().collect();
        assert_eq!(flow["outside_e_model"], serde_json::json!(all));
        assert_eq!(flow["marks"]["mos"].as_str(), outside.map(|_| "?"));
        assert_eq!(text.contains("3.125?"), outside.is_some(), "{text}");
        // In the table of flows, and among all figures.
        assert_eq!(page.matches("? 3.125").count(), if outside.is_some() { 2 } else { 0 });
        let directory = tempfile::tempdir().unwrap();
        csv(&run, directory.path()).unwrap();
        let table = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        let marked = outside.map_or("g711,,".to_owned(), |outside| format!("g711,{outside},"));
        assert!(table("repetitions.csv").contains(&marked), "{}", table("repetitions.csv"));
        let sweep = table("sweep.csv");
        for (figure, is_outside) in [("mos", outside.is_some()), ("r", outside.is_some()), ("burst_r", false)]
        {
            let row = sweep.lines().find(|row| row.contains(&format!(",{figure},"))).unwrap();
            assert!(row.ends_with(&format!(",{is_outside}")), "{row}");
        }
        for shown in [&text.split_whitespace().collect::<Vec<_>>().join(" "), &page] {
            assert_eq!(shown.contains(", outside the range of the E-model"), outside.is_some());
            assert!(outside.is_none_or(|outside| shown.contains(outside)), "{shown}");
        }
    }
}

/// The inputs that are named are those of one repetition.
#[test]
fn the_hint_says_in_how_many_repetitions_the_model_does_not_hold() {
    let mut run = fixtures::single(Backend::Sim);
    let quality = QualitySummary { ppl: Ratio::new(0.3).unwrap(), burst_r: 1.0, ..Default::default() };
    let again = run.points[0].repetitions[0].clone();
    run.points[0].repetitions.push(again);
    run.points[0].repetitions[1].summary.as_mut().unwrap().flows[0].quality = Some(quality);
    let text = terminal(&run, Screen::default()).split_whitespace().collect::<Vec<_>>().join(" ");
    let hint = "are extrapolated in 1 of 2 repetitions, first by Ppl of 30.0 % (at most 20 %), outside";
    assert!(text.contains(hint), "{text}");

    // The share of repetitions is that of the point that is named.
    let quality = QualitySummary { ppl: Ratio::new(0.3).unwrap(), burst_r: 1.0, ..Default::default() };
    let mut run = fixtures::swept(Backend::Sim);
    for repetition in run.points.iter_mut().flat_map(|point| &mut point.repetitions) {
        repetition.summary.as_mut().unwrap().flows[0].quality = Some(quality.clone());
    }
    let all = run.points[0].repetitions.len();
    let text = terminal(&run, Screen::default()).split_whitespace().collect::<Vec<_>>().join(" ");
    let share =
        format!("in {all} of {all} repetitions, first by Ppl of 30.0 % (at most 20 %), outside the range");
    let others = format!("(ITU-T G.107), and at {} other points.", run.points.len() - 1);
    assert!(text.contains(&share) && text.contains(&others), "{text}");
}

#[test]
fn the_quality_of_a_conversation_stands_in_every_report() {
    let mut run = fixtures::single(Backend::Sim);
    let quality = QualitySummary {
        r: 82.5,
        mos: 4.125,
        mouth_to_ear: Some(Duration::from_millis(123)),
        ppl: Ratio::new(0.015).unwrap(),
        burst_r: 1.75,
        codec: "g711-plc".to_owned(),
    };
    for repetition in &mut run.points[0].repetitions {
        let flow = &mut repetition.summary.as_mut().unwrap().flows[0];
        (flow.quality, flow.affected) = (Some(quality.clone()), Ratio::new(0.0375));
    }
    let text = terminal(&run, Screen::default());
    assert!(text.contains("MOS") && text.contains("4.125"), "{text}");
    let page = html(&run, None);
    for shown in [
        "#def-affected",
        "#def-mos",
        "#def-r",
        "#def-mouth-to-ear",
        "#def-ppl",
        "#def-burst-r",
        "82.5",
        ", g711-plc",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
    // A share is written in percent, and what stands beside it in the group is none.
    for heading in [">MOS</a>", ">R</a>"] {
        let (_, behind) = page.split_once(heading).unwrap();
        assert!(behind.starts_with("</th>"), "{heading} has a unit: {}", &behind[..40]);
    }
    let value = json(&run, None);
    let flow = &value["points"][0]["runs"][0]["flows"][0];
    assert_eq!(flow["codec"], "g711-plc");
    assert_eq!(flow["figures"]["mouth_to_ear"]["mean"], 0.123);
    let directory = tempfile::tempdir().unwrap();
    csv(&run, directory.path()).unwrap();
    let mut reader = ::csv::Reader::from_path(directory.path().join("repetitions.csv")).unwrap();
    let names = reader.headers().unwrap().clone();
    let row = reader.records().next().unwrap().unwrap();
    let of = |name: &str| &row[names.iter().position(|n| n == name).unwrap_or_else(|| panic!("no {name}"))];
    assert_eq!([of("codec"), of("mos"), of("r"), of("ppl")], ["g711-plc", "4.125", "82.5", "0.015"]);
    assert_eq!(of("affected"), "0.0375");
}
