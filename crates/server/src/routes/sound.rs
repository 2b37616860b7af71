//! The sound of a channel after its run: sent and heard audio, and the missing pieces.

use std::ops::Range;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use trunkline_audio::format::{Encoding, Endian, Format};
use trunkline_audio::wav::header_of;
use trunkline_core::{Duration, Seed, Time};
use trunkline_experiment::Experiment;
use trunkline_metrics::{Fate, Record};
use trunkline_runner::{ChannelSound, channel_sound};
use trunkline_store::StoredRun;
use utoipa::{IntoParams, ToSchema};

use super::results::download;
use super::traces::{Which, trace};
use crate::api::{ApiError, Moment, Pieces};
use crate::app::{App, Shared};
use crate::extract::{Path, Query};

/// A channel.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Asked {
    /// The member of the flow, from 0 [default: 0].
    member: u32,
    /// Its channel, from 0 [default: 0].
    channel: u16,
    /// Which sound [default: heard].
    of: End,
    /// Playout delay in milliseconds [default: that of the flow].
    #[param(minimum = 0, maximum = 60_000)]
    playout_ms: Option<f64>,
}

/// A dot of the latency chart.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct At {
    /// When it was sent, in seconds since the start of the run.
    pub(super) at: f64,
    /// Its latency in seconds; missing for a lost message.
    pub(super) latency: Option<f64>,
}

impl At {
    /// Distance of a message in seconds; of two at the same distance, a lost one comes first.
    fn distance(self, record: &Record) -> (f64, bool) {
        let seconds = |time: Time| time.since(Time::ZERO).as_secs_f64();
        let away = |at: Time| (seconds(at) - self.at).abs();
        match record.sent.zip(record.received) {
            None => (away(record.due) + self.latency.unwrap_or(0.0).abs(), false),
            Some((sent, received)) => {
                let latency = received.since(sent).as_secs_f64();
                (away(sent) + self.latency.map_or(0.0, |wanted| (latency - wanted).abs()), true)
            }
        }
    }
}

/// The end at which one listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum End {
    /// The audio that the source sent.
    Sent,
    /// The same as `run --hear` plays it: with lost and late messages concealed, or through the FIFO of its `playback`.
    #[default]
    Heard,
}

/// The sent or the heard audio of the first ten minutes of a channel, as a WAV file. Both are aligned with each other: they leave
/// out the delay of the first message.
#[utoipa::path(
    get, path = "/runs/{id}/points/{point}/repetitions/{repetition}/flows/{flow}/sound.wav", tag = "runs", params(Which, Asked),
    responses((status = 200, body = String, content_type = "audio/wav"))
)]
pub(crate) async fn sound(
    State(app): Shared,
    Path(which): Path<Which>,
    Query(asked): Query<Asked>,
) -> Result<Response, ApiError> {
    let end = if asked.of == End::Sent { "sent" } else { "heard" };
    let name = format!("{}-{}-{}-{end}.wav", which.flow, asked.member, asked.channel);
    let wav = app
        .blocking(move |app| {
            let sound = app.sound(&which, asked)?;
            let samples = if asked.of == End::Sent { &sound.sent } else { &sound.heard };
            Ok(wav(sound.sample_rate, samples))
        })
        .await?;
    Ok(download(&name, "audio/wav", wav.into()))
}

/// The lost and the late pieces of a channel's sound.
#[utoipa::path(
    get, path = "/runs/{id}/points/{point}/repetitions/{repetition}/flows/{flow}/pieces", tag = "runs", params(Which, Asked),
    responses((status = 200, body = Pieces))
)]
pub(crate) async fn pieces(
    State(app): Shared,
    Path(which): Path<Which>,
    Query(asked): Query<Asked>,
) -> Result<Json<Pieces>, ApiError> {
    app.blocking(move |app| {
        let run = app.store.run(which.id)?;
        let experiment = app.stored_experiment(&run)?;
        let pieces = found(&sound_of(&run, &experiment, &which, asked)?);
        let own = playout_of(&experiment, &which.flow).map(|playout| playout.as_secs_f64());
        Ok(Json(Pieces { playout: asked.playout_ms.map(|ms| ms / 1e3).or(own), ..pieces }))
    })
    .await
}

/// The place of a message in the sound of its channel: the message of the flow that is nearest to this moment. Sound leaves out
/// pauses, so its time is not the time of the run.
#[utoipa::path(
    get, path = "/runs/{id}/points/{point}/repetitions/{repetition}/flows/{flow}/moment", tag = "runs", params(Which, At),
    responses((status = 200, body = Moment))
)]
pub(crate) async fn moment(
    State(app): Shared,
    Path(which): Path<Which>,
    Query(at): Query<At>,
) -> Result<Json<Moment>, ApiError> {
    if !at.at.is_finite() || at.latency.is_some_and(|latency| !latency.is_finite()) {
        return Err(ApiError::input("`at` and `latency` must be numbers of seconds"));
    }
    app.blocking(move |app| app.moment(&which, at).map(Json)).await
}

/// A WAV file.
pub(super) fn wav(sample_rate: u32, samples: &[f32]) -> Vec<u8> {
    let mut wav = header_of(1, sample_rate, samples.len() as u64).to_vec();
    Format { encoding: Encoding::I16, endian: Endian::Little }.encode(samples, &mut wav);
    wav
}

/// The lost and the late pieces of a channel's sound.
pub(super) fn found(sound: &ChannelSound) -> Pieces {
    let seconds = |samples: usize| samples as f64 / f64::from(sound.sample_rate);
    let of = |pieces: &[Range<usize>]| {
        pieces.iter().map(|piece| [piece.start, piece.end].map(seconds)).collect::<Vec<_>>()
    };
    Pieces {
        duration: seconds(sound.sent.len()),
        lost: of(&sound.lost),
        late: of(&sound.late),
        playout: None,
        part: None,
    }
}

/// The playout delay of a flow, as the file gives it at its first point.
pub(super) fn playout_of(experiment: &Experiment, flow: &str) -> Option<Duration> {
    let flows = &experiment.points.first().scenario.flows;
    trunkline_runner::playout_of(flows.iter().map(|flow| &flow.meta).find(|meta| meta.name == flow)?)
}

impl App {
    /// The message of a flow that is nearest to a dot.
    pub(super) fn nearest(&self, which: &Which, at: At) -> Result<Record, ApiError> {
        let mut nearest: Option<((f64, bool), Record)> = None;
        trunkline_store::read_trace(&self.trace(which)?, &mut |record| {
            let distance = at.distance(record);
            let is_nearer = nearest.as_ref().is_none_or(|(least, _)| distance < *least);
            if is_nearer && record.fate != Fate::Duplicate {
                nearest = Some((distance, *record));
            }
        })?;
        nearest.map(|found| found.1).ok_or_else(|| ApiError::not_found("the flow sent no message"))
    }

    fn moment(&self, which: &Which, at: At) -> Result<Moment, ApiError> {
        let Record { member, channel, sequence, .. } = self.nearest(which, at)?;
        let sound = self.sound(which, Asked { member, channel, ..Asked::default() })?;
        let place = sound.places.get(sequence as usize).ok_or_else(|| {
            ApiError::not_found(
                "only the first ten minutes of a channel have sound, or less if its machine was late in making messages from a `fifo`",
            )
        })?;
        let position = place.start as f64 / f64::from(sound.sample_rate);
        Ok(Moment { member, channel, position })
    }

    fn sound(&self, which: &Which, asked: Asked) -> Result<ChannelSound, ApiError> {
        let run = self.store.run(which.id)?;
        let experiment = self.stored_experiment(&run)?;
        sound_of(&run, &experiment, which, asked)
    }
}

/// The sound of a channel of a run.
pub(super) fn sound_of(
    run: &StoredRun,
    experiment: &Experiment,
    which: &Which,
    asked: Asked,
) -> Result<ChannelSound, ApiError> {
    let trace = trace(run, which)?;
    let playout = match asked.playout_ms {
        Some(ms) if !(0.0..=60_000.0).contains(&ms) => {
            return Err(ApiError::input("`playout_ms` must be from 0 to 60000"));
        }
        ms => ms.map(|ms| Duration::from_nanos((ms * 1e6) as u64)),
    };
    let choice = run.points.iter().find(|point| point.index == which.point).map(|point| &point.choice);
    let point = choice.and_then(|choice| experiment.points.get(experiment.points.place_of(choice)?));
    let flow =
        |flows: &[trunkline_experiment::Flow]| flows.iter().position(|flow| flow.meta.name == which.flow);
    let place = point.and_then(|point| {
        let flow = flow(&point.scenario.flows)?;
        Some((point, flow))
    });
    let seed = Seed::new(run.info.seed, which.repetition);
    let sound = match place {
        Some((point, flow)) => {
            channel_sound(&point.scenario, flow, (asked.member, asked.channel), seed, &trace, playout)?
        }
        None => None,
    };
    sound.ok_or_else(|| {
        ApiError::not_found(
            "there is no such channel with audio: it takes a flow with the source `voice`, or with `audio` and `signal = \"tones\"`",
        )
    })
}
