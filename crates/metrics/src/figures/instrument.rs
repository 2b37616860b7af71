//! Errors of the instrument itself: its clocks, its schedule, its calls.

use trunkline_core::Duration;

use super::Quantity::Time;
use super::{Definition, FigureKind, KnownIn, define, figure};

pub(super) const CLOCK_ERROR: Definition = define(
    "clock-error",
    "clock error bound",
    "Between hosts, the arrival time of a message is read from the sink's clock and converted to the source's. No \
     one-way time is wrong by more than this bound, however asymmetric the path is. Differences between messages \
     (jitter) are as exact as the clocks' rates are constant.",
)
.source("RFC 5905, maximum error")
.known_in(KnownIn::Live);

pub(super) const SCHEDULE_ERROR: Definition = define(
    "schedule-error",
    "schedule error",
    "Time from a message's due time until it was passed to the kernel: the instrument's own error.",
)
.known_in(KnownIn::WireAndLive);

pub(super) const SEND_CALL: Definition =
    define("send-call", "send call", "Duration of the system call that passed a message to the kernel.")
        .known_in(KnownIn::WireAndLive);

pub(super) const DEFINITIONS: &[&Definition] = &[&CLOCK_ERROR, &SCHEDULE_ERROR, &SEND_CALL];

pub(super) const FIGURES: &[FigureKind] = &[
    figure("clock_error", "clock error bound", Time, &CLOCK_ERROR)
        .of_flow(|f| f.clock_error.map(Duration::as_secs_f64)),
    figure("schedule_error_p50", "schedule error, p50", Time, &SCHEDULE_ERROR)
        .of_flow(|f| f.schedule_error.map(|d| d.p50.as_secs_f64())),
    figure("schedule_error_p99", "schedule error, p99", Time, &SCHEDULE_ERROR)
        .of_flow(|f| f.schedule_error.map(|d| d.p99.as_secs_f64())),
    figure("schedule_error_max", "schedule error, maximum", Time, &SCHEDULE_ERROR)
        .of_flow(|f| f.schedule_error.map(|d| d.max.as_secs_f64())),
    figure("send_call_p50", "send call, p50", Time, &SEND_CALL)
        .of_flow(|f| f.send_call.map(|d| d.p50.as_secs_f64())),
    figure("send_call_p99", "send call, p99", Time, &SEND_CALL)
        .of_flow(|f| f.send_call.map(|d| d.p99.as_secs_f64())),
    figure("send_call_max", "send call, maximum", Time, &SEND_CALL)
        .of_flow(|f| f.send_call.map(|d| d.max.as_secs_f64())),
];
