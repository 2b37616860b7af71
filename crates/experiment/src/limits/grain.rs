//! The grain of a figure that counts messages: repetitions may agree in it by chance, whatever its spread is.

use trunkline_metrics::figures::{self, FigureKind};
use trunkline_metrics::{BundleSummary, FlowSummary, RepetitionSummary};

use crate::model::{Limit, Single, Subject};

/// How finely a figure that counts messages is divided, in one repetition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Grain {
    /// It is a share of these messages.
    Share {
        /// Their number.
        messages: u64,
    },
    /// One message more or less changes it by so much.
    Step(f64),
}

impl Limit {
    /// The grain of the limit's figure in one repetition; `None` if it does not count messages, or if there are none.
    pub fn grain(&self, of: &RepetitionSummary) -> Option<Grain> {
        match &self.subject {
            Subject::Single { flow, single, metric } => {
                let flow = of.flows.get(*flow)?;
                match single {
                    Single::Number(number) => of_flow(metric, flow.each.get(*number as usize - 1)?),
                    // The worst of several varies less than each of them.
                    Single::Each => {
                        let steps = flow.each.iter().filter_map(|one| Some(of_flow(metric, one)?.step()));
                        steps.reduce(f64::max).map(Grain::Step)
                    }
                }
            }
            Subject::Flow { flow, sink, metric } => {
                let flow = of.flows.get(*flow)?;
                let Some(sink) = sink else { return of_flow(metric, flow) };
                let sink = flow.sinks.iter().find(|summary| summary.sink == *sink)?;
                matches!(metric.grain, figures::Grain::Share).then(|| Grain::share(sink.counts.due()))?
            }
            Subject::Class { bundle, transport, metric } => {
                let bundle = of.bundles.get(*bundle)?;
                let messages = messages(of, bundle, transport);
                let members = bundle.classes.iter().find(|class| class.transport == *transport)?.members;
                match metric.grain {
                    figures::Grain::Share => Grain::share(messages),
                    figures::Grain::ShareOfConnection => {
                        (messages > 0).then(|| Grain::Step(f64::from(members) / messages as f64))
                    }
                    figures::Grain::None | figures::Grain::Step(_) => None,
                }
            }
            Subject::Bundle { .. } => None,
        }
    }
}

impl Limit {
    /// Messages of each flow that were counted, and all of them, for a share that every flow of several keeps by itself; otherwise
    /// nothing. Of a share that the connections of a bundle keep, each stands for the one that is judged: its bounds are those of
    /// one connection, which chance has chosen among as many.
    pub fn counted_each(&self, of: &RepetitionSummary) -> Vec<(u64, u64)> {
        match &self.subject {
            Subject::Single { flow, single: Single::Each, metric } => {
                let each = of.flows.get(*flow).map_or(&[][..], |flow| &flow.each);
                let is_share = matches!(metric.grain, figures::Grain::Share);
                let counted = |one: &FlowSummary| events(metric.value(one), one.counts.due());
                each.iter().filter(|_| is_share).map(counted).collect()
            }
            Subject::Class { bundle, transport, metric } => {
                let class = || {
                    let bundle = of.bundles.get(*bundle)?;
                    let class = bundle.classes.iter().find(|class| class.transport == *transport)?;
                    let each = messages(of, bundle, transport).checked_div(u64::from(class.members))?;
                    Some((class.members, events(metric.value_of_connections(class), each)))
                };
                let class = class().filter(|_| matches!(metric.grain, figures::Grain::ShareOfConnection));
                class.map_or_else(Vec::new, |(members, counted)| vec![counted; members as usize])
            }
            Subject::Single { .. } | Subject::Flow { .. } | Subject::Bundle { .. } => Vec::new(),
        }
    }
}

/// The share of these messages as a number, and all of them.
fn events(share: Option<f64>, messages: u64) -> (u64, u64) {
    let events = share.unwrap_or_default() * messages as f64;
    (events.round().clamp(0.0, messages as f64) as u64, messages)
}

/// Messages of all connections over a transport.
fn messages(of: &RepetitionSummary, bundle: &BundleSummary, transport: &str) -> u64 {
    let flows = of.flows.iter().filter(|flow| bundle.flows.contains(&flow.flow));
    flows.filter(|flow| flow.transport == transport).map(|flow| flow.counts.due()).sum()
}

impl Grain {
    /// That of a share of so many messages.
    fn share(messages: u64) -> Option<Grain> {
        (messages > 0).then_some(Grain::Share { messages })
    }

    /// By how much one message more or less changes the figure.
    pub fn step(&self) -> f64 {
        match self {
            Grain::Share { messages } => 1.0 / (*messages).max(1) as f64,
            Grain::Step(step) => *step,
        }
    }
}

fn of_flow(figure: &FigureKind, flow: &FlowSummary) -> Option<Grain> {
    let messages = flow.counts.due();
    match figure.grain {
        figures::Grain::Share => Grain::share(messages),
        figures::Grain::Step(of) if messages > 0 => of(flow, messages).map(Grain::Step),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use trunkline_core::Ratio;
    use trunkline_metrics::{ClassSummary, Counts, QualitySummary, Spread};

    use super::*;
    use crate::model::Operator;

    fn grain(metric: &'static FigureKind) -> Option<Grain> {
        let counts = Counts { sent: 500, received: 499, lost: 1, ..Counts::default() };
        let quality = QualitySummary { codec: "g711".to_owned(), r: 93.2, mos: 4.4, ..Default::default() };
        let quality = QualitySummary { mouth_to_ear: Some(trunkline_core::Duration::ZERO), ..quality };
        let flow = FlowSummary { members: 1, counts, quality: Some(quality), ..FlowSummary::default() };
        let of = RepetitionSummary { flows: vec![flow], ..RepetitionSummary::default() };
        let subject = Subject::Flow { flow: 0, sink: None, metric };
        let (key, condition) = (String::new(), String::new());
        Limit { key, condition, subject, operator: Operator::Less, bound: 0.01 }.grain(&of)
    }

    #[test]
    fn shares_of_messages_and_what_follows_from_them_have_a_grain() {
        assert_eq!(grain(figures::flow("loss")), Some(Grain::Share { messages: 500 }));
        assert_eq!(grain(figures::flow("latency_p99")), None);
        // G.711 without concealment: 95 Ppl / (Ppl + 4.3), with a Ppl of 0.2 %.
        let Some(Grain::Step(r)) = grain(figures::flow("r")) else { panic!("R has a step") };
        assert!((r - 95.0 * 0.2 / 4.5).abs() < 0.05, "{r}");
        let Some(Grain::Step(mos)) = grain(figures::flow("mos")) else { panic!("MOS has a step") };
        assert!(mos > 0.05 && mos < 0.2, "{mos}");
    }

    #[test]
    fn the_worst_connection_of_a_bundle_has_the_messages_of_one_connection() {
        let counts = |messages| Counts { sent: messages, received: messages, ..Counts::default() };
        let flow = |name: &str, members, messages| FlowSummary {
            flow: name.to_owned(),
            transport: "udp".to_owned(),
            members,
            counts: counts(messages),
            ..FlowSummary::default()
        };
        let share = |value| Ratio::new(value).unwrap();
        let class = ClassSummary {
            transport: "udp".to_owned(),
            members: 4,
            loss: Some(Spread { mean: share(0.002), min: share(0.0), max: share(0.008), members: 4 }),
            ..ClassSummary::default()
        };
        let bundle = BundleSummary {
            flows: vec!["a".to_owned(), "b".to_owned()],
            classes: vec![class],
            members: 4,
            ..BundleSummary::default()
        };
        let of = RepetitionSummary {
            flows: vec![flow("a", 3, 750), flow("b", 1, 250)],
            bundles: vec![bundle],
            ..RepetitionSummary::default()
        };
        let counted = |id: &str| {
            let metric = figures::of_bundles().find(|figure| figure.id == id).expect("a figure of bundles");
            let subject = Subject::Class { bundle: 0, transport: "udp".to_owned(), metric };
            let (key, condition) = (String::new(), String::new());
            Limit { key, condition, subject, operator: Operator::Less, bound: 0.01 }.counted_each(&of)
        };
        assert_eq!(counted("connection_loss_max"), [(2, 250); 4]);
        assert_eq!(counted("connection_loss_min"), [(0, 250); 4]);
        assert_eq!(counted("connection_loss"), [], "all messages count in the mean");
    }
}
