use super::*;
use crate::fixtures;
use crate::{Screen, terminal_comparison};
use trunkline_core::{Duration, Ratio};
use trunkline_metrics::QualitySummary;
use trunkline_store::Backend;

fn estimate(mean: f64, standard_deviation: f64, repetitions: u32) -> Estimate {
    let standard_deviation = (repetitions > 1).then_some(standard_deviation);
    Estimate { mean, standard_deviation, confidence95: None, repetitions }
}

/// Two samples of 5 with means 20 and 25 and deviations 2 and 4: 0.8 and 3.2 add up to a variance of 4; degrees of freedom
/// 16 / (0.64 / 4 + 10.24 / 4) = 5.88; t = 2.459.
#[test]
fn intervals_are_welchs() {
    let half = welch(&estimate(20.0, 2.0, 5), &estimate(25.0, 4.0, 5)).unwrap();
    assert!((half - 2.0 * 2.459).abs() < 0.01, "{half}");
    assert_eq!(welch(&estimate(20.0, 2.0, 5), &estimate(25.0, 0.0, 1)), None);
    assert_eq!(welch(&estimate(20.0, 0.0, 3), &estimate(25.0, 0.0, 3)), Some(0.0));
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let run = fixtures::single(Backend::Sim);
    let comparison = compare(&run, &run);
    assert!(comparison.same_experiment && comparison.unmatched.is_empty());
    assert!(comparison.rows.len() > 20);
    for row in &comparison.rows {
        assert_eq!(row.difference, 0.0, "{}", row.figure.id);
        assert_ne!(row.is_significant(), Some(true));
    }
}

#[test]
fn extrapolated_figures_are_marked() {
    let mut run = fixtures::single(Backend::Sim);
    let summaries = run.points.iter_mut().flat_map(|p| &mut p.repetitions).filter_map(|r| r.summary.as_mut());
    for flow in summaries.flat_map(|summary| &mut summary.flows).take(1) {
        flow.quality = Some(QualitySummary {
            r: 10.0,
            mos: 1.1,
            mouth_to_ear: Some(Duration::from_secs(2)),
            ppl: Ratio::ZERO,
            burst_r: 1.0,
            codec: "pcmu".to_owned(),
        });
    }
    let text = terminal_comparison(&compare(&run, &run), true, Screen::default());
    let line = text.lines().find(|line| line.contains("MOS")).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(line.matches('?').count(), 2, "{text}");
    assert!(text.contains("?: extrapolated beyond the range of the E-model"), "{text}");
}

#[test]
fn the_values_of_a_row_have_one_unit() {
    let run = fixtures::single(Backend::Sim);
    let mut comparison = compare(&run, &run);
    comparison.rows.retain(|row| row.figure.id == "latency_mean");
    comparison.rows.truncate(1);
    (comparison.rows[0].run, comparison.rows[0].with) =
        (estimate(0.0123, 0.0, 1), estimate(0.000_45, 0.0, 1));
    let text = terminal_comparison(&comparison, true, Screen::default());
    assert!(text.contains("12.3 ms") && text.contains("0.45 ms") && !text.contains("µs"), "{text}");
}

#[test]
fn points_are_known_by_their_values_and_strangers_are_named() {
    let run = fixtures::swept(Backend::Sim);
    let mut other = fixtures::swept(Backend::Live);
    other.info.id = 99;
    // The sweep turned round, its first value another, and one flow slower.
    other.points.reverse();
    for (index, point) in (0..).zip(&mut other.points) {
        point.index = index;
    }
    let axis = &mut other.axes[0];
    let gone = std::mem::replace(&mut axis.values[0], "1000".to_owned());
    let comparison = compare(&run, &other);
    assert!(comparison.unmatched.iter().any(|name| name.contains(&gone)), "{:?}", comparison.unmatched);
    assert!(comparison.unmatched.iter().any(|name| name.contains("1000")), "{:?}", comparison.unmatched);
    assert!(!comparison.rows.is_empty());
    let text = terminal_comparison(&comparison, false, Screen::default());
    assert!(text.contains("run 99") && text.contains("latency mean"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let mut many = comparison.clone();
    many.unmatched = vec!["run 1: count = 7".to_owned(); 100];
    let many = terminal_comparison(&many, false, Screen::default());
    assert!(many.contains("94 more in one of the runs only"), "{many}");
    let all = terminal_comparison(&comparison, true, Screen::default());
    assert!(all.contains("IPDV") && !text.contains("IPDV"));
}
