//! A bad moment of a run: all that happened around a message, and the cause of its latency.
//!
//! A simulated repetition is simulated again for this, with the same seed and an eye on each packet. If the message comes out
//! with another latency, the packets are not shown.

mod cause;
mod remedies;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration as Wall, Instant};

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use trunkline_core::{Bytes, Duration, FlowId, Rate, Seed, Time};
use trunkline_experiment::Scenario;
use trunkline_metrics::{Fate, FlowSummary, Record, RepetitionSummary};
use trunkline_runner::{Moment, Rewound};
use trunkline_store::{Backend, StoredRepetition, StoredRun};
use utoipa::IntoParams;

use super::sound::At;
use super::traces::Which;
use crate::api::{
    ApiError, FlowInQueue, Rewind, RewoundConnection, RewoundEvent, RewoundMessage, RewoundPart, RewoundQueue,
};
use crate::app::{App, Shared};
use crate::extract::{Path, Query};
use crate::predict::{Gone, MAX_ASKED, size};
use cause::{Cause, Scene};

/// Time around the message that is shown without other wishes.
const AROUND: Duration = Duration::from_secs(1);
/// The longest part of a run that is shown.
const LONGEST: Duration = Duration::from_secs(60);
/// Number of intervals.
const INTERVALS: usize = 300;
/// Wall time of the second simulation.
const BUDGET: Wall = Wall::from_secs(20);
/// Number of connections that are shown.
const CONNECTIONS: usize = 16;

/// A moment, and the part of the run around it.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Around {
    /// When the message was sent, in seconds since the start of the run.
    at: f64,
    /// Its latency in seconds; missing for a lost message.
    latency: Option<f64>,
    /// Start of the part [default: a second before the message].
    from: Option<f64>,
    /// End of the part [default: a second after the message].
    to: Option<f64>,
}

/// The message of a flow that is nearest to a moment, the cause of its latency or loss, and all that happened around it.
#[utoipa::path(
    get, path = "/runs/{id}/points/{point}/repetitions/{repetition}/flows/{flow}/rewind", tag = "runs", params(Which, Around),
    responses((status = 200, body = Rewind))
)]
pub(crate) async fn rewind(
    State(app): Shared,
    Path(which): Path<Which>,
    Query(around): Query<Around>,
) -> Result<Json<Rewind>, ApiError> {
    let numbers = [Some(around.at), around.latency, around.from, around.to];
    if numbers.into_iter().flatten().any(|number| !number.is_finite()) {
        return Err(ApiError::input("`at`, `latency`, `from` and `to` must be numbers of seconds"));
    }
    // Dropped with this request, which ends its simulation.
    let (_gone, stop) = Gone::new();
    let turn = app.rewinds.turn().await?;
    app.blocking(move |app| {
        let _turn = turn;
        app.rewind(&which, around, &stop).map(Json)
    })
    .await
}

impl App {
    fn rewind(&self, which: &Which, around: Around, stop: &AtomicBool) -> Result<Rewind, ApiError> {
        let run = self.store.run(which.id)?;
        let message = self.nearest(which, At { at: around.at, latency: around.latency })?;
        let experiment = self.stored_experiment(&run)?;
        let none = || ApiError::not_found("the file of this run has no such point or flow");
        let stored = run.points.iter().find(|point| point.index == which.point).ok_or_else(none)?;
        let repetition =
            stored.repetitions.iter().find(|one| one.index == which.repetition).ok_or_else(none)?;
        let place = experiment.points.place_of(&stored.choice).ok_or_else(none)?;
        let point = experiment.points.at(place);
        let scenario = &*point.scenario;
        let flow = scenario.flows.iter().position(|flow| flow.meta.name == which.flow).ok_or_else(none)?;

        let sent = message.sent.unwrap_or(message.due);
        let time = |seconds: f64| Time::from_nanos((seconds.max(0.0) * 1e9) as u64);
        let earlier = Time::from_nanos(sent.as_nanos().saturating_sub(AROUND.as_nanos()));
        let from = around.from.map_or(earlier, time).min(sent);
        let to = around.to.map_or(message.received.unwrap_or(sent) + AROUND, time);
        let to = to.min(Time::ZERO + scenario.duration + scenario.drain);
        let to =
            to.min(from + LONGEST).max(message.received.unwrap_or(sent)).max(from + Duration::from_millis(1));
        let moment = Moment { flow, message, window: (from, to), intervals: INTERVALS };

        let empty = RepetitionSummary::default();
        let summary = repetition.summary.as_ref().unwrap_or(&empty);
        let (rewound, note) =
            self.again(&run, scenario, Seed::new(run.info.seed, repetition.index), moment, stop);
        let stalls = summary.stalls.as_ref().map_or(&[][..], |stalls| &stalls.over_time);
        let of_flow = summary.flows.iter().find(|one| one.flow == which.flow);
        let under_way = match &rewound {
            Some(_) => BTreeMap::new(),
            // It is not used of a message that did not arrive, and reads all traces, which disturbs a measurement.
            None if message.received.is_none() || self.jobs.measures() => BTreeMap::new(),
            None => under_way(scenario, repetition, sent)?,
        };
        let scene = Scene {
            scenario,
            flow,
            message,
            rewound: rewound.as_ref(),
            stalls,
            least: of_flow.and_then(|flow| flow.latency.as_ref()).map(|latency| latency.min),
            waits: &waits(scenario, summary, flow, sent),
            under_way: &under_way,
        };
        let cause = scene.cause();
        let queue = cause.queue.as_ref();
        let remedies = queue.and_then(|(queue, culprits)| {
            remedies::remedies(&run.text, scenario, &stored.choice, *queue, culprits)
        });
        let remedies = remedies.filter(|remedies| self.experiment(&remedies.text).is_ok());
        let shown = shown(&scene, cause, (from, to), &summary.flows);
        Ok(Rewind { note, remedies, ..shown })
    }

    /// The moment, simulated again; if not, the reason.
    fn again(
        &self,
        run: &StoredRun,
        scenario: &Scenario,
        seed: Seed,
        moment: Moment,
        stop: &AtomicBool,
    ) -> (Option<Rewound>, Option<String>) {
        let no = |why: &str| (None, Some(why.to_owned()));
        if run.info.backend != Backend::Sim {
            return no(
                "Drops and queues by flow are known of simulated runs only: this one was measured, and \
                       records messages, backlogs and stalls.",
            );
        }
        if self.jobs.measures() {
            return no("A measurement in real time is running: packets are simulated again after its end.");
        }
        if size(scenario) > MAX_ASKED {
            return no(
                "The packets are missing: the run has too many hosts and members of flows to follow each packet.",
            );
        }
        let until = Instant::now() + BUDGET;
        let mut go_on = || Instant::now() < until && !self.jobs.measures() && !stop.load(Ordering::Relaxed);
        match trunkline_runner::rewind(scenario, seed, moment, &mut go_on) {
            Ok(rewound) if rewound.is_same => (Some(rewound), None),
            Ok(_) if Instant::now() >= until => {
                no("The packets are missing: simulating them again took too long.")
            }
            Ok(_) => no(
                "The packets are missing: this version simulates the moment in another way than the one that ran it.",
            ),
            Err(error) => no(&format!("The packets are missing: {error}.")),
        }
    }
}

/// Payload between senders and receivers at a moment, by index of the flow.
fn under_way(
    scenario: &Scenario,
    repetition: &StoredRepetition,
    at: Time,
) -> Result<BTreeMap<usize, u64>, ApiError> {
    let mut found = BTreeMap::new();
    for (flow, path) in repetition.traces.iter().filter(|(_, path)| path.exists()) {
        let Some(index) = scenario.flows.iter().position(|one| one.meta.name == *flow) else { continue };
        let bytes: &mut u64 = found.entry(index).or_default();
        trunkline_store::read_trace(path, &mut |record: &Record| {
            let is_under_way = record.sent.is_some_and(|sent| sent <= at)
                && record.received.is_some_and(|received| received > at);
            if is_under_way && record.fate != Fate::Duplicate {
                *bytes += u64::from(record.payload);
            }
        })?;
    }
    Ok(found)
}

/// The time that what waited at each link of a flow's way took to leave, where backlogs were recorded.
fn waits(scenario: &Scenario, summary: &RepetitionSummary, flow: usize, at: Time) -> Vec<(String, Duration)> {
    let entrances = scenario.flows[flow].entrances();
    let wait = |(link, port): (usize, u16)| {
        let link = &scenario.links[link];
        let direction = scenario.directions(link).into_iter().nth(usize::from(port))?;
        let name = format!("{} {direction}", link.name);
        let over_time = &summary.links.iter().find(|one| one.link == name)?.backlog_over_time;
        let last = over_time.partition_point(|(from, _)| *from <= at).checked_sub(1)?;
        let bits = over_time[last].1.count() * 8;
        let rate: Rate = link.directions[usize::from(port)].rate;
        let wait = Duration::from_nanos((bits as f64 / rate.bits_per_second().max(1) as f64 * 1e9) as u64);
        Some((format!("`{}` ({direction})", link.name), wait))
    };
    entrances.filter_map(wait).collect()
}

fn seconds(at: Time) -> f64 {
    at.since(Time::ZERO).as_secs_f64()
}

/// The answer for the page.
fn shown(scene: &Scene<'_>, cause: Cause, (from, to): (Time, Time), flows: &[FlowSummary]) -> Rewind {
    let empty = Rewound::default();
    let rewound = scene.rewound.unwrap_or(&empty);
    let name = |flow: usize| scene.scenario.flows[flow].meta.name.clone();
    let link = |link: usize, port: u16| {
        let link = &scene.scenario.links[link];
        let direction = scene.scenario.directions(link).into_iter().nth(usize::from(port));
        format!("{} {}", link.name, direction.unwrap_or_default())
    };
    let bytes = |bytes: &[Bytes]| bytes.iter().map(|bytes| bytes.count()).collect();
    let queues = rewound.queues.iter().map(|queue| RewoundQueue {
        link: link(queue.link, queue.port),
        flows: queue
            .flows
            .iter()
            .map(|(flow, over)| FlowInQueue { flow: name(*flow), bytes: bytes(over) })
            .collect(),
    });
    let events = rewound.events.iter().map(|event| RewoundEvent {
        t: seconds(event.at),
        link: link(event.link, event.port),
        member: scene.member(event.member),
        mark: event.is_mark,
        cause: event.cause.to_owned(),
    });
    // Without the packets, the first connection of each flow.
    let recorded = || {
        let first = |flow: &FlowSummary| {
            let of_file = scene.scenario.flows.iter().find(|one| one.meta.name == flow.flow)?;
            Some((of_file.meta.first, flow.connection.clone()))
        };
        flows.iter().filter(|flow| !flow.connection.is_empty()).filter_map(first).collect()
    };
    let connections: Vec<(FlowId, _)> =
        if scene.rewound.is_some() { rewound.connections.clone() } else { recorded() };
    let connections = connections.iter().take(CONNECTIONS).filter_map(|(member, samples)| {
        let samples: Vec<_> = samples.iter().filter(|sample| (from..=to).contains(&sample.at)).collect();
        Some(RewoundConnection {
            flow: name(scene.flow_of(*member)?),
            member: scene.member(*member),
            t: samples.iter().map(|sample| seconds(sample.at)).collect(),
            window: samples.iter().map(|sample| sample.congestion_window.count()).collect(),
        })
    });
    let is_near = |(start, length): &&(Time, Duration)| *start <= to && *start + *length >= from;
    let stalls = scene.stalls.iter().filter(is_near);
    let meta = &scene.scenario.flows[scene.flow].meta;
    let member = FlowId(meta.first.0 + scene.message.member % meta.members.max(1));
    Rewind {
        sentence: cause.sentence,
        message: RewoundMessage {
            member: scene.member(member),
            sent: seconds(scene.message.sent.unwrap_or(scene.message.due)),
            received: scene.message.received.map(seconds),
        },
        parts: cause
            .parts
            .into_iter()
            .map(|(name, length)| RewoundPart { name, seconds: length.as_secs_f64() })
            .collect(),
        t: rewound.times.iter().copied().map(seconds).collect(),
        queues: queues.collect(),
        events: events.collect(),
        connections: connections.collect(),
        stalls: stalls.map(|(start, length)| [seconds(*start), seconds(*start + *length)]).collect(),
        note: None,
        remedies: None,
    }
}
