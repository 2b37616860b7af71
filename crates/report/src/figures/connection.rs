//! Figures of one point: the state of its TCP connections over time.

use trunkline_core::{Bytes, Duration, Rate};
use trunkline_metrics::{ConnectionSample, Retransmissions};

use super::point::{numbered, titled};
use super::{Figure, HEIGHT, axis_label, legend, look};
use crate::chart::{Axis, Chart, Datum, Entry, Kind, Look, Panel, Scale, Series, extremes};
use crate::units::{Quantity, Readable as _, Unit};
use crate::view::{View, counted};

/// A quantity of a connection.
struct Curve {
    name: &'static str,
    /// Its colour where it stands beside others of the same flow.
    hue: Option<usize>,
    dashed: bool,
    /// Tints what lies below its line, which the line of another may cover.
    tinted: bool,
    of: fn(&ConnectionSample) -> Option<f64>,
}

/// The largest number of flows that have panels of their own.
const FLOWS: usize = 6;

const NOTE: &str = "The sending end of each flow's first connection, in the first repetition.";

const fn curve(name: &'static str, hue: usize, of: fn(&ConnectionSample) -> Option<f64>) -> Curve {
    Curve { name, hue: Some(hue), dashed: false, tinted: false, of }
}

/// In the order in which they are drawn: the last on top.
const WINDOW: [Curve; 3] = [
    Curve { tinted: true, ..curve("bytes in flight", 1, |s| Some(bytes(s.in_flight))) },
    Curve { dashed: true, ..curve("slow-start threshold", 2, |s| s.slow_start_threshold.map(bytes)) },
    curve("congestion window", 0, |s| {
        (s.congestion_window > Bytes::ZERO).then(|| bytes(s.congestion_window))
    }),
];

const ROUND_TRIP: Curve =
    curve("smoothed round trip", 0, |s| s.smoothed_round_trip.map(Duration::as_secs_f64));

const PACING_RATE: Curve = curve("pacing rate", 0, |s| s.pacing_rate.map(rate));

const CAUSES: [&str; 5] = Retransmissions::CAUSES;

const RETRANSMISSIONS: [Curve; 6] = [
    Curve { hue: None, ..curve("all", 0, |s| Some(s.retransmissions.all as f64)) },
    curve(CAUSES[0], 0, |s| s.retransmissions.by_cause()[0].map(count)),
    curve(CAUSES[1], 1, |s| s.retransmissions.by_cause()[1].map(count)),
    curve(CAUSES[2], 2, |s| s.retransmissions.by_cause()[2].map(count)),
    curve(CAUSES[3], 7, |s| s.retransmissions.by_cause()[3].map(count)),
    Curve { dashed: true, ..curve(CAUSES[4], 3, |s| s.retransmissions.by_cause()[4].map(count)) },
];

fn bytes(bytes: Bytes) -> f64 {
    bytes.count() as f64
}

fn rate(rate: Rate) -> f64 {
    rate.bits_per_second() as f64
}

fn count(count: u64) -> f64 {
    count as f64
}

/// The figures of one point; none if no connection was sampled.
pub(super) fn figures(view: &View, point: u32) -> Vec<Figure> {
    let connections = Connections::new(view, point);
    let all = [
        connections.window(),
        connections.retransmissions(),
        connections.by_flow(&ROUND_TRIP, "tcp-round-trip", Quantity::Time),
        connections.by_flow(&PACING_RATE, "tcp-pacing-rate", Quantity::Rate),
    ];
    all.into_iter().flatten().collect()
}

/// The sampled connections of a point.
struct Connections<'v> {
    view: &'v View<'v>,
    point: u32,
    /// By side and flow.
    samples: Vec<Vec<&'v [ConnectionSample]>>,
}

impl<'v> Connections<'v> {
    fn new(view: &'v View<'v>, point: u32) -> Connections<'v> {
        let of_side = |side: &'v crate::view::Side<'v>| {
            let summary = side.point(point).and_then(|p| counted(p).next());
            let of_flow = |name: &&str| {
                let mut flows = summary.into_iter().flat_map(|s| &s.flows);
                flows.find(|flow| flow.flow == **name).map_or(&[][..], |flow| &flow.connection[..])
            };
            view.flows.iter().map(of_flow).collect()
        };
        Connections { view, point, samples: view.sides.iter().map(of_side).collect() }
    }

    /// The samples of a flow on all sides.
    fn of_flow(&self, flow: usize) -> impl Iterator<Item = &'v ConnectionSample> {
        self.samples.iter().flat_map(move |side| side[flow])
    }

    /// The values of these curves for these flows, on all sides.
    fn values(&self, flows: &[usize], curves: &[Curve]) -> Vec<f64> {
        let samples = flows.iter().flat_map(|flow| self.of_flow(*flow));
        samples.flat_map(|sample| curves.iter().filter_map(move |curve| (curve.of)(sample))).collect()
    }

    fn window(&self) -> Option<Figure> {
        let flows: Vec<usize> =
            (0..self.view.flows.len()).filter(|flow| self.of_flow(*flow).next().is_some()).collect();
        // A threshold that the window never comes near would flatten everything else.
        let (_, largest) =
            extremes(self.values(&flows, &WINDOW[..1]).into_iter().chain(self.values(&flows, &WINDOW[2..])))?;
        let description = "Congestion window, slow-start threshold and bytes in flight against time.";
        let shown = Shown { quantity: Quantity::Bytes, name: "window", largest: largest.max(1.0) };
        self.by_curve("tcp-window", "TCP's congestion window over time", description, &flows, &WINDOW, &shown)
    }

    fn retransmissions(&self) -> Option<Figure> {
        let is_repeated = |flow: &usize| self.of_flow(*flow).any(|sample| sample.retransmissions.all > 0);
        let flows: Vec<usize> = (0..self.view.flows.len()).filter(is_repeated).collect();
        let (_, largest) = extremes(self.values(&flows, &RETRANSMISSIONS).into_iter())?;
        let description = "Segments retransmitted until then, by cause. The kernel reports all of them and the spurious ones.";
        let shown = Shown { quantity: Quantity::Count, name: "segments retransmitted", largest };
        let title = "TCP's retransmissions over time";
        self.by_curve("tcp-retransmissions", title, description, &flows, &RETRANSMISSIONS, &shown)
    }

    /// A panel for each flow and side, with a line for each curve.
    fn by_curve(
        &self,
        id: &str,
        title: &str,
        description: &str,
        flows: &[usize],
        curves: &[Curve],
        shown: &Shown,
    ) -> Option<Figure> {
        let unit = shown.quantity.unit(shown.largest);
        let mut is_drawn = vec![false; curves.len()];
        let mut panels = Vec::new();
        for flow in flows.iter().take(FLOWS) {
            for (side, samples) in self.view.sides.iter().zip(&self.samples) {
                let mut series = Vec::new();
                for (curve, is_drawn) in curves.iter().zip(&mut is_drawn) {
                    let mut data = data(curve, samples[*flow], unit);
                    data.retain(|datum| datum.y <= shown.largest * unit.factor);
                    // A cause that never occurred is no line.
                    if data.iter().any(|datum| datum.y > 0.0) {
                        *is_drawn = true;
                        if curve.tinted {
                            series.push(Series { look: curve.look(), kind: Kind::Below, data: data.clone() });
                        }
                        series.push(Series { look: curve.look(), kind: Kind::Line, data });
                    }
                }
                let name = self.view.flows[*flow];
                let title = match (flows.len(), self.view.sides.len()) {
                    (1, 1) => String::new(),
                    (_, 1) => name.to_owned(),
                    (1, _) => side.label.clone(),
                    _ => format!("{name}, {}", side.label),
                };
                panels.push(Panel { title, series, bounds: Vec::new() });
            }
        }
        let entry = |(curve, is_drawn): (&Curve, &bool)| {
            is_drawn.then(|| Entry { label: curve.name.to_owned(), look: curve.look() })
        };
        let mut legend: Vec<Entry> = curves.iter().zip(&is_drawn).filter_map(entry).collect();
        if curves[curves.len() - 1].hue == Some(0) {
            legend.reverse();
        }
        let omitted = flows.len().saturating_sub(FLOWS);
        let note = match omitted {
            0 => format!("{description} {NOTE}"),
            _ => format!("{description} {NOTE} The first {FLOWS} of {} flows.", flows.len()),
        };
        let columns = self.view.sides.len().max(panels.len().min(2));
        self.figure(id, title, note, shown, panels, legend, columns)
    }

    /// A panel for each side, with a line for each flow.
    fn by_flow(&self, curve: &Curve, id: &str, quantity: Quantity) -> Option<Figure> {
        let flows: Vec<usize> = (0..self.view.flows.len()).collect();
        let (_, largest) = extremes(self.values(&flows, std::slice::from_ref(curve)).into_iter())?;
        let unit = quantity.unit(largest);
        let mut names: Vec<&str> = Vec::new();
        let mut panels = Vec::new();
        for (s, side) in self.view.sides.iter().enumerate() {
            let mut series = Vec::new();
            for flow in &flows {
                let data = data(curve, self.samples[s][*flow], unit);
                if !data.is_empty() {
                    let look = Look { dashed: false, ..look(self.view, s, *flow) };
                    series.push(Series { look, kind: Kind::Line, data });
                    names.push(self.view.flows[*flow]);
                }
            }
            let title = if self.view.sides.len() > 1 { side.label.clone() } else { String::new() };
            panels.push(Panel { title, series, bounds: Vec::new() });
        }
        let legend = legend(self.view, |flow| names.contains(&flow), false, false, false);
        let title = format!("TCP's {} over time", curve.name);
        let shown = Shown { quantity, name: curve.name, largest };
        let columns = panels.len();
        self.figure(id, &title, NOTE.to_owned(), &shown, panels, legend, columns)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a figure, each used once")]
    fn figure(
        &self,
        id: &str,
        title: &str,
        note: String,
        shown: &Shown,
        panels: Vec<Panel>,
        legend: Vec<Entry>,
        columns: usize,
    ) -> Option<Figure> {
        let longest = extremes(panels.iter().flat_map(|p| &p.series).flat_map(|s| &s.data).map(|d| d.x))?.1;
        let unit = shown.quantity.unit(shown.largest);
        let height = if panels.len() > 1 { HEIGHT * 0.7 } else { HEIGHT };
        let chart = Chart {
            title: titled(title, self.view, self.point),
            description: note.clone(),
            x: Axis {
                label: "time, s".to_owned(),
                scale: Scale::linear(0.0, longest.max(1e-9), 20),
                ticks: None,
            },
            y: Axis {
                label: axis_label(shown.name, unit.name),
                scale: Scale::linear(0.0, shown.largest * unit.factor, 5),
                ticks: None,
            },
            legend,
            panels,
        };
        let id = numbered(id, self.view, self.point);
        // Flows below each other, and their sides beside each other.
        let wide = chart.panels.len() > self.view.sides.len();
        Some(Figure { id, chart, note, point: Some(self.point), wide, height, columns })
    }
}

/// The vertical axis of a figure.
struct Shown {
    quantity: Quantity,
    name: &'static str,
    /// In the base unit.
    largest: f64,
}

impl Curve {
    fn look(&self) -> Look {
        Look { hue: self.hue, dashed: self.dashed, marked: false, lined: true }
    }
}

fn data(curve: &Curve, samples: &[ConnectionSample], unit: Unit) -> Vec<Datum> {
    let datum = |sample: &ConnectionSample| {
        let y = (curve.of)(sample)? * unit.factor;
        Some(Datum { x: sample.at.as_secs_f64(), y, ..Datum::default() })
    };
    samples.iter().filter_map(datum).collect()
}
