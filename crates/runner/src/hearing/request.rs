//! What is to be heard.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use trunkline_audio::conceal::Method;
use trunkline_experiment::{Experiment, Flow, Point};
use trunkline_metrics::{FlowMeta, Measured};
use trunkline_traffic::AudioFormat;

use crate::error::HearError;

/// Everything that is to be heard, and how.
#[derive(Clone, Debug, Default)]
pub struct Hear {
    /// What.
    pub sounds: Vec<Sound>,
    /// How missing messages are replaced; without it as the flow's `codec` does: `g711` plays silence, everything else a
    /// substituted waveform.
    pub conceal: Option<Method>,
}

/// What one listener hears: written `flow.NAME.MEMBER` for all channels of a member, `flow.NAME.MEMBER.CHANNEL` for one of
/// them, and `=FILE` behind it to say where. Members and channels count from 1; where a flow has several sinks, the members
/// as the second sink has them follow those as the first has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sound {
    /// As it was asked for, without the file.
    pub key: String,
    /// The flow's name.
    pub(super) flow: String,
    /// From 0.
    pub(super) member: u32,
    /// From 0; `None` for all.
    pub(super) channel: Option<u16>,
    /// Where it is written; `None` for the run's own folder.
    pub(super) file: Option<PathBuf>,
}

impl FromStr for Sound {
    type Err = HearError;

    fn from_str(text: &str) -> Result<Sound, HearError> {
        let (key, file) = match text.split_once('=') {
            Some((key, file)) => (key, Some(file)),
            None => (text, None),
        };
        let malformed = || HearError::Form(text.to_owned());
        let mut parts = key.split('.');
        let (Some("flow"), Some(flow), Some(member), channel, None) =
            (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(malformed());
        };
        let from_1 = |text: &str| text.parse::<u32>().ok()?.checked_sub(1);
        let channel = match channel {
            Some(text) => Some(from_1(text).and_then(|n| u16::try_from(n).ok()).ok_or_else(malformed)?),
            None => None,
        };
        if flow.is_empty() || file.is_some_and(str::is_empty) {
            return Err(malformed());
        }
        Ok(Sound {
            key: key.to_owned(),
            flow: flow.to_owned(),
            member: from_1(member).ok_or_else(malformed)?,
            channel,
            file: file.map(PathBuf::from),
        })
    }
}

impl Hear {
    /// Nothing is to be heard.
    pub fn nothing() -> &'static Hear {
        static NOTHING: Hear = Hear { sounds: Vec::new(), conceal: None };
        &NOTHING
    }

    /// Finds what would stop it before anything is measured. The experiment's files are beside this one, which holds it.
    ///
    /// # Errors
    /// Says what the experiment has instead.
    pub fn check(&self, experiment: &Experiment, beside: &Path) -> Result<(), HearError> {
        let folder = beside.parent().unwrap_or(Path::new(""));
        let named = experiment.files.by_path().keys().map(|path| folder.join(path));
        let read: Vec<_> = named.chain([beside.to_owned()]).filter_map(|path| identity(&path)).collect();
        let (points, repetitions) = (experiment.points.len() as u32, experiment.repetitions);
        for (place, sound) in self.sounds.iter().enumerate() {
            sound.check(experiment)?;
            let Some(file) = &sound.file else { continue };
            if self.sounds[..place].iter().any(|other| other.file.as_ref() == Some(file)) {
                return Err(HearError::SameFile(file.clone()));
            }
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
            if folder.is_some_and(|folder| !folder.is_dir()) {
                return Err(HearError::NoFolder(file.clone()));
            }
            let is_alone = points == 1 && repetitions == 1;
            // What is there, rather than all that may be written: that can be a hundred million files.
            let there = std::fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
            let is_read = |path: &Path| identity(path).is_some_and(|it| read.contains(&it));
            let read_here: Vec<_> =
                there.filter(|one| is_read(&one.path())).map(|one| one.file_name()).collect();
            let runs = (0..points).flat_map(|point| (0..repetitions).map(move |run| (point, run)));
            let mut written = runs.map(|of| sound.path(Path::new(""), of, is_alone));
            let is_named = |file: &PathBuf| read_here.iter().any(|name| file.file_name() == Some(name));
            if !read_here.is_empty()
                && let Some(file) = written.find(is_named)
            {
                return Err(HearError::IsRead(file));
            }
        }
        Ok(())
    }

    /// The point, at which the payload is kept of every flow that is to be heard.
    pub(crate) fn listening_to(&self, point: &Point) -> Point {
        let mut point = point.clone();
        if !self.sounds.is_empty() {
            for flow in &mut Arc::make_mut(&mut point.scenario).flows {
                flow.meta.keeps_payload |= self.sounds.iter().any(|sound| sound.is_of(&flow.meta));
            }
        }
        point
    }

    /// How missing messages of a flow are replaced.
    pub(super) fn method(&self, flow: &FlowMeta) -> Method {
        self.conceal.unwrap_or_else(|| method_of(flow))
    }
}

impl Sound {
    /// Whether this is one of the flow's listeners.
    pub(super) fn is_of(&self, flow: &FlowMeta) -> bool {
        flow.name == self.flow
            && self.member < flow.ids()
            && self.channel.is_none_or(|channel| channel < flow.channels)
    }

    /// The channels of a flow that are heard.
    pub(super) fn channels(&self, flow: &FlowMeta) -> std::ops::Range<u16> {
        self.channel.map_or(0..flow.channels, |channel| channel..channel + 1)
    }

    /// Where it is written: as asked for, with the point and the repetition in the name if there are several, or into
    /// `folder`.
    pub(super) fn path(&self, folder: &Path, (point, repetition): (u32, u32), is_alone: bool) -> PathBuf {
        let Some(file) = &self.file else {
            return folder.join(format!("heard-{}.wav", self.key.trim_start_matches("flow.")));
        };
        if is_alone {
            return file.clone();
        }
        let mut name = file.file_stem().unwrap_or_default().to_os_string();
        name.push(format!("-p{point:03}-r{repetition:02}"));
        if let Some(extension) = file.extension() {
            name.push(".");
            name.push(extension);
        }
        file.with_file_name(name)
    }

    fn check(&self, experiment: &Experiment) -> Result<(), HearError> {
        let flows = || experiment.points.iter().flat_map(|point| point.scenario.flows.clone());
        let (key, name) = (|| self.key.clone(), || self.flow.clone());
        let mut named = flows().filter(|flow| flow.meta.name == self.flow).peekable();
        let Some(first) = named.peek() else {
            return Err(HearError::NoFlow { key: key(), flow: name(), known: audible(flows()) });
        };
        match audio_of(first) {
            Some(format) if format.is_silent => {
                return Err(HearError::Silence { key: key(), flow: name() });
            }
            Some(_) => {}
            None => {
                let source_kind = trunkline_traffic::KINDS[first.source.kind].name;
                let known = audible(flows());
                return Err(HearError::NoAudio { key: key(), flow: name(), source_kind, known });
            }
        }
        if first.meta.measured == Measured::Nothing {
            return Err(HearError::Nobody { key: key(), flow: name() });
        }
        let (mut members, mut channels) = (0, 0);
        for flow in named {
            if self.is_of(&flow.meta) {
                return Ok(());
            }
            (members, channels) = (members.max(flow.meta.ids()), channels.max(flow.meta.channels));
        }
        let known = match (members, channels) {
            (0, _) => "no members".to_owned(),
            (members, channels) => {
                format!("{} with {}", up_to("member", members), up_to("channel", channels))
            }
        };
        Err(HearError::NoMember { key: key(), flow: name(), known })
    }
}

/// The default concealment of a flow.
pub(super) fn method_of(flow: &FlowMeta) -> Method {
    let plays_silence = flow.listening.is_some_and(|listening| listening.codec.name == "g711");
    if plays_silence { Method::Silence } else { Method::Waveform }
}

/// The device and the inode of a file, which are the same under all its names; `None` if there is no file.
fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|file| (file.dev(), file.ino()))
}

/// How the audio of a flow is written in its messages.
pub(super) fn audio_of(flow: &Flow) -> Option<AudioFormat> {
    (trunkline_traffic::KINDS[flow.source.kind].audio)(&flow.source.values)
}

/// `member 1`, `members 1 to 4`.
fn up_to(what: &str, number: impl Into<u32>) -> String {
    match number.into() {
        1 => format!("{what} 1"),
        number => format!("{what}s 1 to {number}"),
    }
}

/// Names the flows that can be heard.
fn audible(flows: impl Iterator<Item = Flow>) -> String {
    let names: BTreeSet<String> =
        flows.filter(|flow| audio_of(flow).is_some()).map(|flow| flow.meta.name).collect();
    match Vec::from_iter(names).as_slice() {
        [] => "no flow carries audio".to_owned(),
        [name] => format!("the flow with audio is `{name}`"),
        names => format!("flows with audio are `{}`", names.join("`, `")),
    }
}
