//! Words that explain others: no figure has one of these definitions.

use super::{Definition, KnownIn, define};

const MESSAGE: Definition = define(
    "message",
    "message",
    "What the application hands over at once: one voice packet's samples, one block of a bulk transfer. All \
     figures count messages unless they say packets.",
);

const ESTIMATE: Definition = define(
    "estimate",
    "mean ± half width",
    "Mean over repetitions, with half the width of its 95 % confidence interval (Student's t). One \
     repetition has none.",
);

const VERDICT: Definition = define(
    "verdict",
    "verdict",
    "A limit holds at a point if the mean over repetitions meets it. “Not certain” means that the 95 % \
     confidence interval reaches across the bound.",
);

const STALLS: Definition = define(
    "stalls",
    "stalls",
    "Gaps in which the operating system or the host of a virtual machine did not run a probe that wanted to \
     run. Latencies beyond p99 of a measured run can be no better than these.",
)
.known_in(KnownIn::WireAndLive);

/// At the head of a glossary.
pub(super) const BEFORE: &[&Definition] = &[&MESSAGE];

/// Behind the figures of flows.
pub(super) const DEFINITIONS: &[&Definition] = &[&ESTIMATE, &VERDICT];

/// At its end.
pub(super) const AFTER: &[&Definition] = &[&STALLS];
