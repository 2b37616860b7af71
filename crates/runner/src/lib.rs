//! "Run this experiment": picks a driver, schedules points and repetitions, streams records and audio to the store,
//! reports progress, and keeps what was measured when it is told to stop. Has no face: it prints nothing.

mod audio;
mod backend;
mod congestion;
mod drive;
mod exact;
mod files;
mod growing;
mod hearing;
mod kernels;
mod parallel;
mod predict;
mod repetition;
mod schedule;
mod tap;
mod wire;

pub use backend::{notes, refused};
pub use drive::{Driven, drive};
pub use files::{DirectoryFiles, LoadError, load, load_from, stored};
pub use growing::GrowingRun;
pub use hearing::{Hear, HearError, Heard, Sound};
pub use parallel::in_parallel;
pub use predict::predict;
pub use schedule::{Observer, Outcome, Plan, Request, RunnerError, precheck, resume, run};
pub use tap::{RepetitionTap, Tap, TappedRepetition};
pub use wire::WireMeans;
