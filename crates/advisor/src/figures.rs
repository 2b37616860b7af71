//! The figures of an advice.

use trunkline_core::Duration;
use trunkline_report::chart::{Axis, Chart, Datum, Entry, Kind, Look, Panel, Scale, Series};

use crate::advice::Advice;
use crate::configuration::{Configuration, Load, Marking};
use crate::findings::Findings;
use crate::units::ms;

/// Points of a distribution that are drawn.
const POINTS: usize = 200;

/// The figures with their names.
pub(crate) fn figures(advice: &Advice, findings: &Findings) -> Vec<(String, Chart)> {
    let mut figures: Vec<(String, Chart)> =
        distribution(advice, findings).map(|chart| ("round-trips".to_owned(), chart)).into_iter().collect();
    for recommendation in &advice.recommendations {
        if recommendation.by_depth.len() > 1 {
            let name = format!("depth-{}", recommendation.choice.purpose);
            figures.push((name, depths(recommendation)));
        }
    }
    figures
}

/// Round trips of the recommended options, idle (solid) and loaded (dashed).
fn distribution(advice: &Advice, findings: &Findings) -> Option<Chart> {
    let mut ways: Vec<Configuration> = Vec::new();
    for recommendation in &advice.recommendations {
        let best = &recommendation.choice.best;
        let one = Configuration {
            transport: best.transport,
            blocks: best.blocks,
            load: Load::Idle,
            marking: Marking::Expedited,
        };
        if !ways.contains(&one) {
            ways.push(one);
        }
    }
    let (mut series, mut legend, mut most) = (Vec::new(), Vec::new(), 0);
    for (hue, way) in ways.iter().enumerate() {
        for load in [Load::Idle, Load::Bulk] {
            let one = way.under(load);
            let mut sorted: Vec<Option<Duration>> =
                findings.traces(&one).flat_map(|trace| trace.round_trips.iter().copied()).collect();
            let count = sorted.len();
            most = most.max(count);
            // What did not come back is beyond everything that did.
            sorted.sort_by_key(|round_trip| round_trip.unwrap_or(Duration::MAX));
            let data: Vec<Datum> = (1..=POINTS.min(count))
                .filter_map(|point| {
                    let rank = (count * point).div_ceil(POINTS.min(count));
                    let x = sorted.get(rank - 1).copied().flatten()?.as_millis_f64();
                    Some(Datum { x, y: rank as f64 / count as f64, ..Datum::default() })
                })
                .collect();
            if !data.is_empty() {
                let look = Look { hue: Some(hue), dashed: load == Load::Bulk, marked: false, lined: true };
                legend.push(Entry { label: one.to_string(), look });
                series.push(Series { look, kind: Kind::Line, data });
            }
        }
    }
    let largest = || series.iter().flat_map(|series| &series.data).map(|datum| datum.x);
    let x = Scale::of_quantity(largest().collect::<Vec<_>>().into_iter());
    (!series.is_empty()).then(|| Chart {
        title: "Round trips of the recommended options".to_owned(),
        description:
            "Share of blocks that returned within the time on the horizontal axis: solid on an idle \
            network, dashed under bulk load. The vertical axis magnifies the tail."
                .to_owned(),
        x: Axis { label: "round trip, ms".to_owned(), scale: x, ticks: None },
        y: Axis {
            label: "blocks at most, %".to_owned(),
            scale: Scale::Tail { top: 1.0 - 1.0 / most.max(100) as f64 },
            ticks: None,
        },
        legend,
        panels: vec![Panel { series, ..Panel::default() }],
    })
}

/// What has to be concealed against the playout depth.
fn depths(recommendation: &crate::advice::Recommendation) -> Chart {
    let look = Look { hue: Some(0), dashed: false, marked: true, lined: true };
    let datum = |judgement: &crate::judge::Judgement| Datum {
        x: judgement.mouth_to_ear.as_millis_f64(),
        y: judgement.concealed.value() * 100.0,
        half_width: None,
        label: format!(
            "playout {} deep: {:.2} % concealed, MOS {:.2}",
            ms(judgement.depth),
            judgement.concealed.value() * 100.0,
            judgement.mos
        ),
    };
    let data: Vec<Datum> = recommendation.by_depth.iter().map(datum).collect();
    let own = Series {
        look: Look { hue: Some(1), ..look },
        kind: Kind::Points,
        data: vec![datum(&recommendation.choice.best)],
    };
    let purpose = recommendation.choice.purpose;
    let xs: Vec<f64> = data.iter().chain(&own.data).map(|datum| datum.x).collect();
    let ys: Vec<f64> = data.iter().chain(&own.data).map(|datum| datum.y).collect();
    Chart {
        title: format!("Effect of the playout depth on {purpose}"),
        description: "A deeper buffer adds latency and reduces concealment.".to_owned(),
        x: Axis { label: "mouth to ear, ms".to_owned(), scale: Scale::of_sweep(&xs), ticks: None },
        y: Axis { label: "concealed, %".to_owned(), scale: Scale::of_quantity(ys.into_iter()), ticks: None },
        legend: vec![
            Entry { label: "other depths".to_owned(), look },
            Entry { label: "recommended".to_owned(), look: own.look },
        ],
        panels: vec![Panel {
            series: vec![Series { look, kind: Kind::Markers, data }, own],
            ..Panel::default()
        }],
    }
}
