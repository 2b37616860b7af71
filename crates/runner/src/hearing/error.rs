//! Why something cannot be heard.

use std::io;
use std::path::PathBuf;

/// Why something cannot be heard.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HearError {
    /// It is not written as it should be.
    #[error(
        "invalid `--hear {0}`; expected `flow.NAME.MEMBER`, or `flow.NAME.MEMBER.CHANNEL`, both counted from \
        1"
    )]
    Form(String),
    /// The experiment has no such flow.
    #[error("`{key}`: there is no flow `{flow}`; {known}")]
    NoFlow {
        /// What was asked for.
        key: String,
        /// The flow's name.
        flow: String,
        /// A clause that names the flows with audio.
        known: String,
    },
    /// No point has this member or channel of the flow.
    #[error("`{key}`: the flow `{flow}` has {known}")]
    NoMember {
        /// What was asked for.
        key: String,
        /// The flow's name.
        flow: String,
        /// What it has: `members 1 to 4 of 2 channels each`.
        known: String,
    },
    /// The flow carries no audio.
    #[error("`{key}`: the source `{source_kind}` of the flow `{flow}` carries no audio; {known}")]
    NoAudio {
        /// What was asked for.
        key: String,
        /// The flow's name.
        flow: String,
        /// Its source's kind.
        source_kind: &'static str,
        /// A clause that names the flows with audio.
        known: String,
    },
    /// The flow carries nothing but silence.
    #[error("`{key}`: the flow `{flow}` sends silence; set `signal = \"tones\"` in its source")]
    Silence {
        /// What was asked for.
        key: String,
        /// The flow's name.
        flow: String,
    },
    /// The flow's messages go nowhere.
    #[error("`{key}`: the flow `{flow}` has no sink and therefore no listener; give it a `to`")]
    Nobody {
        /// What was asked for.
        key: String,
        /// The flow's name.
        flow: String,
    },
    /// Two sounds would be written to one file.
    #[error("`{0}` would be written twice: give each `--hear` its own file")]
    SameFile(PathBuf),
    /// The folder for a file does not exist.
    #[error("cannot write `{0}`: its folder does not exist; create it first")]
    NoFolder(PathBuf),
    /// A file could not be written. Everything else was measured and stored.
    #[error("cannot write the audio to `{path}`: {error}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl HearError {
    /// Whether the user can mend it by another key or another file (exit code 2), rather than the environment.
    pub(crate) fn is_bad_input(&self) -> bool {
        !matches!(self, HearError::Write { .. })
    }
}
