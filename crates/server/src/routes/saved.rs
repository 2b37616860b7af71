//! A run as one HTML file: the report, and inside it the page with the answers that the page would ask a server for.

mod sounds;

use std::io::{self, Write as _};
use std::ops::Range;
use std::path::Path as FilePath;

use axum::extract::State;
use axum::response::Response;
use data_encoding::BASE64;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::Value;
use trunkline_experiment::Experiment;
use trunkline_report::{EmbeddedPage, REPORT_SCRIPT, meanings, whole_html};
use trunkline_store::{LatencySeries, Store, StoredPoint, StoredRepetition, StoredRun};

use super::results::download;
use super::runs;
use super::traces::{Which, distribution, packed, shown, trace};
use crate::api::{ApiError, Definition, MAIN_FILE, Run};
use crate::app::Shared;
use crate::assets;
use crate::extract::Path;
use crate::files::ServedFiles;
use sounds::{Sounds, sounds};

/// Size that the file stays below, in bytes, unless the report alone is larger.
const LIMIT: usize = 4_900_000;
/// Least bytes for a long trace: its distribution, its share of what is measured over time, and this many messages.
const LEAST_OF_TRACE: usize = 16_000;
const LEAST_MESSAGES: usize = 500;
/// Bytes of a message.
const MESSAGE: usize = 12;
/// Bytes of a trace beside its messages, and how many times compression shortens all of them at least.
const BESIDE: usize = 9_000;
const COMPRESSED: usize = 4;
/// Number of points of a distribution.
const CDF_POINTS: usize = 300;

/// The run as one HTML file below 5 MB, unless the report alone is larger: the report, and the page with its interactive charts and the audio. It opens offline.
#[utoipa::path(
    get, path = "/runs/{id}/saved.html", tag = "runs", params(("id" = u64, Path, description = "The run's number")),
    responses((status = 200, body = String, content_type = "text/html"))
)]
pub(crate) async fn saved(State(app): Shared, Path(id): Path<u64>) -> Result<Response, ApiError> {
    let (name, html) = app
        .blocking(move |app| {
            app.with_counterpart(id, |run, other| {
                let html = saved_run(&app.store, run, other, &app.files)?;
                Ok((format!("{}-run-{id}.html", run.info.name), html))
            })
        })
        .await?;
    Ok(download(&name, "text/html; charset=utf-8", html.into()))
}

/// A run as one HTML file: the report with audio, and the page with what it needs in place of a server. Traces are thinned so that
/// it stays below 5 MB, unless the report alone is larger. In a build without the page it is the report. `files` is the folder of the files that the experiment names, unless the store has kept them.
///
/// # Errors
/// If a trace cannot be read.
pub fn saved_run(
    store: &Store,
    run: &StoredRun,
    counterpart: Option<&StoredRun>,
    files: &FilePath,
) -> Result<String, ApiError> {
    let files = ServedFiles { folder: files.to_owned() };
    let experiment = trunkline_runner::stored(store, run, MAIN_FILE, &files).ok();
    let mut table = Table::default();
    let named = |run: &StoredRun| {
        let mut run = run.clone();
        run.info.file = run.info.file.file_name().map(Into::into).unwrap_or(run.info.file);
        run
    };
    let (run, counterpart) = (&named(run), counterpart.map(named));
    let counterpart = counterpart.as_ref();
    let sounds = sounds(run, experiment.as_ref(), &mut table);
    let (Some(script), Some(style)) = (assets::text("saved.js"), assets::text("saved.css")) else {
        return Ok(whole_html(run, counterpart, &sounds.embedded, None));
    };
    let hash =
        |script: &str| BASE64.encode(ring::digest::digest(&ring::digest::SHA256, script.as_bytes()).as_ref());
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}' 'sha256-{}'; style-src 'unsafe-inline'; img-src data: blob:; \
         media-src data: blob:; base-uri 'none'; form-action 'none'",
        hash(REPORT_SCRIPT),
        hash(&script)
    );
    table.json("/definitions", &meanings().map(Definition::from).collect::<Vec<_>>());
    let whole = whole(run, counterpart, experiment.as_ref());
    let html = |data: &str| {
        let page = EmbeddedPage { style: &style, script: &script, data, policy: &policy };
        whole_html(run, counterpart, &sounds.embedded, Some(&page))
    };
    // What stands in the file whatever is chosen of the traces.
    let with = |thinned: &Thinned| -> Result<String, ApiError> {
        let mut table = table.clone();
        thinned.add(run, &whole, &sounds, &mut table)?;
        Ok(html(&table.packed()?))
    };
    let nothing = Thinned { repetitions: Vec::new(), messages: 0 };
    let room = LIMIT.saturating_sub(with(&nothing)?.len()) * 3 / 4;
    let mut thinned = Thinned::to_fit(run, room);
    loop {
        let file = with(&thinned)?;
        if file.len() <= LIMIT || thinned.repetitions.is_empty() {
            return Ok(file);
        }
        thinned.shrink();
    }
}

/// The run as the page in the file gets it: alone, and without the folder where it is stored.
fn whole(run: &StoredRun, counterpart: Option<&StoredRun>, experiment: Option<&Experiment>) -> Run {
    let mut whole = Run { counterpart: None, ..runs::whole(run, counterpart, experiment) };
    whole.info.summary.directory.clear();
    for side in whole.figures.get_mut("runs").and_then(Value::as_array_mut).into_iter().flatten() {
        side["directory"] = "".into();
    }
    whole
}

/// Traces in the file.
struct Thinned<'a> {
    repetitions: Vec<(&'a StoredPoint, &'a StoredRepetition)>,
    /// Maximum number of messages of each trace.
    messages: usize,
}

impl<'a> Thinned<'a> {
    /// All repetitions, or the first of each point, or of the first points, as `room` bytes have place for them.
    fn to_fit(run: &'a StoredRun, room: usize) -> Thinned<'a> {
        let of = |point: &'a StoredPoint| point.repetitions.iter().map(move |one| (point, one));
        let traces = |repetitions: &[(&StoredPoint, &StoredRepetition)]| -> usize {
            repetitions.iter().map(|(_, one)| one.traces.len()).sum()
        };
        let least = |repetitions: &[(&StoredPoint, &StoredRepetition)]| -> usize {
            repetitions.iter().map(|(_, one)| least_bytes(one)).sum()
        };
        let mut repetitions: Vec<_> = run.points.iter().flat_map(of).collect();
        if least(&repetitions) > room {
            repetitions = run.points.iter().filter_map(|point| of(point).next()).collect();
        }
        while least(&repetitions) > room {
            repetitions.pop();
        }
        let each = room / traces(&repetitions).max(1);
        let messages = (each.saturating_sub(LEAST_OF_TRACE / 2) / MESSAGE).max(LEAST_MESSAGES);
        Thinned { repetitions, messages: messages.min(LatencySeries::EXACT_UP_TO) }
    }

    fn shrink(&mut self) {
        match self.messages > LEAST_MESSAGES {
            true => self.messages = (self.messages / 2).max(LEAST_MESSAGES),
            false => self.repetitions.truncate(self.repetitions.len() / 2),
        }
    }

    /// Adds the answers about the run and about these traces to the table.
    fn add(&self, run: &StoredRun, whole: &Run, sounds: &Sounds, table: &mut Table) -> Result<(), ApiError> {
        let (mut is_thinned, mut with_messages) = (false, 0);
        let mut whole = whole.clone();
        for (point, one) in whole.points.iter_mut().flat_map(|point| {
            let index = point.index;
            point.repetitions.iter_mut().map(move |one| (index, one))
        }) {
            let at = repetition(run.info.id, point, one.index);
            let is_kept = |(point_kept, kept): &(&StoredPoint, &StoredRepetition)| {
                (point_kept.index, kept.index) == (point, one.index)
            };
            match self.repetitions.iter().find(|both| is_kept(both)) {
                None => one.traces.clear(),
                Some((_, stored)) => {
                    // What cannot be read is left out, as what is not there: a run that was imported without its files has none.
                    if let Ok(over_time) = shown(stored) {
                        table.json(&format!("{at}/over-time"), &over_time);
                    }
                    let (id, repetition) = (run.info.id, one.index);
                    let read = |flow: &str| -> Result<_, ApiError> {
                        let trace = trace(run, &Which { id, point, repetition, flow: flow.to_owned() })?;
                        let series =
                            trunkline_store::latency_series(&trace, None, self.messages / 4, self.messages)?;
                        Ok((series, distribution(&trace, CDF_POINTS)?))
                    };
                    one.traces.retain(|name| {
                        let Ok((series, distribution)) = read(&name.flow) else { return false };
                        is_thinned |= !series.is_exact;
                        table.add(&format!("{at}/flows/{}/latency", name.flow), &packed(&series));
                        table.json(&format!("{at}/flows/{}/cdf", name.flow), &distribution);
                        true
                    });
                    with_messages += usize::from(!one.traces.is_empty());
                }
            }
            one.audio.clear();
            one.sounds.retain_mut(|sound| {
                (sound.members, sound.channels) = (1, 1);
                sounds.inside.contains(&format!("{at}/flows/{}", sound.flow))
            });
        }
        let all: usize = run.points.iter().map(|point| point.repetitions.len()).sum();
        let mut note = vec![format!("This file was saved from run {}.", run.info.id)];
        if is_thinned {
            note.push(format!("Of a long trace it has up to {} messages, among them the smallest and the largest latency of each moment.", self.messages));
        }
        if with_messages < all {
            note.push(format!(
                "It has the messages of {with_messages} of {all} repetitions; the figures are of all."
            ));
        }
        let (inside, left_out) = (sounds.inside.len(), sounds.embedded.left_out);
        if inside + left_out > 0 {
            let some = match left_out {
                0 => String::new(),
                _ => format!(", for {inside} of {} of them", inside + left_out),
            };
            note.push(format!(
                "Its audio is the first channel of each flow in the first repetition of each point{some}."
            ));
        }
        if sounds.has_parts {
            note.push("Of audio that is too long it has the part with the most lost and late packets, or the beginning if none are.".to_owned());
        }
        let and_playouts = if sounds.has_playouts { "" } else { ", and other playout delays," };
        note.push(format!("The packets around a moment with its cause{and_playouts} need the program: `trunkline serve` with this run."));
        table.json("/saved", &note.join(" "));
        table.json(&format!("/runs/{}", run.info.id), &whole);
        Ok(())
    }
}

/// Least bytes for the traces of a repetition.
fn least_bytes(one: &StoredRepetition) -> usize {
    let of_flow = |name: &str| one.summary.iter().flat_map(|all| &all.flows).find(|flow| flow.flow == name);
    let of_trace = |(name, _): &(String, _)| {
        let messages = of_flow(name).map_or(usize::MAX, |flow| flow.counts.sent as usize);
        LEAST_OF_TRACE.min(messages.saturating_mul(MESSAGE).saturating_add(BESIDE) / COMPRESSED)
    };
    one.traces.iter().map(of_trace).sum()
}

/// Answers by their addresses.
#[derive(Clone, Default)]
struct Table {
    places: Vec<Place>,
    bodies: Vec<u8>,
}

/// An answer.
#[derive(Clone)]
struct Place {
    path: String,
    of: Range<usize>,
    /// The path of the answer from which this one is stored as the difference, by exclusive or.
    from: Option<String>,
}

impl Table {
    fn add(&mut self, path: &str, body: &[u8]) {
        // What a channel sent is the same at all points.
        let known = self.places.iter().map(|place| &place.of).find(|of| self.bodies[(*of).clone()] == *body);
        let of = known.cloned().unwrap_or_else(|| {
            self.bodies.extend(body);
            self.bodies.len() - body.len()..self.bodies.len()
        });
        self.places.push(Place { path: path.to_owned(), of, from: None });
    }

    /// Adds a body of the same length as one that is in the table, and much like it: compression leaves little of the difference.
    fn add_difference(&mut self, path: &str, body: &[u8], from: &str) {
        let Some(base) = self.places.iter().find(|place| place.path == from) else { return };
        let difference: Vec<u8> =
            self.bodies[base.of.clone()].iter().zip(body).map(|(base, own)| base ^ own).collect();
        self.add(path, &difference);
        if let Some(place) = self.places.last_mut() {
            place.from = Some(from.to_owned());
        }
    }

    fn json(&mut self, path: &str, value: &impl Serialize) {
        // These types have no maps with other keys than text.
        self.add(path, &serde_json::to_vec(value).unwrap_or_default());
    }

    /// In base64, compressed: the length of the index as a u32, the index as JSON (path, start, end, and the path from which it is a
    /// difference or null), and the bodies.
    fn packed(&self) -> Result<String, ApiError> {
        let place = |Place { path, of, from }: &Place| (path.clone(), of.start, of.end, from.clone());
        let places: Vec<_> = self.places.iter().map(place).collect();
        let compress = || -> io::Result<Vec<u8>> {
            let index = serde_json::to_vec(&places)?;
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&(index.len() as u32).to_le_bytes())?;
            encoder.write_all(&index)?;
            encoder.write_all(&self.bodies)?;
            encoder.finish()
        };
        Ok(BASE64.encode(&compress().map_err(ApiError::environment)?))
    }
}

/// The address of a repetition, as the page asks for it.
fn repetition(run: u64, point: u32, repetition: u32) -> String {
    format!("/runs/{run}/points/{point}/repetitions/{repetition}")
}
