//! "Run this experiment": picks a driver, schedules points and repetitions, streams records and audio to the store,
//! reports progress, and keeps what was measured when it is told to stop. Has no face: it prints nothing.

mod audio;
mod backend;
mod congestion;
mod drain;
mod drive;
mod driven;
mod error;
mod exact;
mod files;
mod growing;
mod hearing;
mod kernels;
mod means;
mod parallel;
mod predict;
mod repetition;
mod request;
mod rewind;
mod schedule;
mod tap;
mod task;
mod wire;

pub use backend::{notes, refusals, refused};
pub use drive::drive;
pub use driven::Driven;
pub use error::{HearError, RunnerError};
pub use files::{DirectoryFiles, LoadError, learned, library, load, load_from, set_library, stored};
pub use growing::{Elsewhere, GrowingRun, Take};
pub use hearing::{ChannelSound, Hear, Heard, Listener, Sound, channel_sound, has_sound, playout_of};
pub use means::{KernelMeans, WireMeans};
pub use parallel::in_parallel;
pub use predict::predict;
pub use request::{Observer, Plan, Request};
pub use rewind::{Hop, Loss, Moment, Rewound, RewoundEvent, RewoundQueue, rewind};
pub use schedule::{Outcome, begin, precheck, resume, run, run_shard, run_some};
pub use tap::{RepetitionTap, Tap, TappedRepetition};
pub use task::Task;
pub use trunkline_store::Shard;
