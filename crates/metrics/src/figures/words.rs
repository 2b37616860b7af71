//! Words that explain others: no figure has one of these definitions.

use super::{Definition, KnownIn, define};

const MESSAGE: Definition = define(
    "message",
    "message",
    "The unit that the application passes to the transport: the samples of one voice packet, or one block of a bulk \
     transfer. All figures count messages unless they name packets.",
);

const ESTIMATE: Definition = define(
    "estimate",
    "mean ± half width",
    "Mean over repetitions, with half the width of its 95 % confidence interval (Student's t). One repetition has no \
     interval.",
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
    "Periods in which the operating system, or the host of a virtual machine, did not run a probe that was ready to \
     run. The latencies of a measured run beyond p99 cannot be better than these.",
)
.known_in(KnownIn::WireAndLive);

/// At the head of a glossary.
pub(super) const BEFORE: &[&Definition] = &[&MESSAGE];

/// Behind the figures of flows.
pub(super) const DEFINITIONS: &[&Definition] = &[&ESTIMATE, &VERDICT];

/// At its end.
pub(super) const AFTER: &[&Definition] = &[&STALLS];
