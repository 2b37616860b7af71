//! Figures that only some kinds of media have, and their stations. Media compute them and name them by these ids
//! (`trunkline_network::medium::Figure`), with `-` where the ids of others have `_`.

use super::Quantity::{Bytes, Count, Share, Time};
use super::{Definition, FigureKind, KnownIn, define, figure};

const TOKEN_ROTATION: Definition = define(
    "token-rotation",
    "token rotation",
    "Time from one arrival of the token at the first station of a ring to the next, including rotations in which no \
     station sent. Percentiles by nearest rank, within 0.8 %.",
)
.source("ANSI X3.139")
.known_in(KnownIn::SimAndWire);

const TTRT: Definition =
    define("ttrt", "ttrt", "The target token rotation time that the stations of a ring agreed on.")
        .source("ANSI X3.139")
        .known_in(KnownIn::SimAndWire);

const LATE_COUNTER: Definition = define(
    "late-counter",
    "late counter",
    "Largest value of a station's late counter when the token arrived: expirations of its token rotation timer since \
     the token's previous arrival.",
)
.source("ANSI X3.139")
.known_in(KnownIn::SimAndWire);

const RING_LATENCY: Definition =
    define("ring-latency", "ring latency", "Time that a bit takes around a ring.")
        .known_in(KnownIn::SimAndWire);

const RING_UTILISATION: Definition = define(
    "ring-utilisation",
    "ring utilisation",
    "Share of the time in which any station of a ring sent a frame.",
)
.known_in(KnownIn::SimAndWire);

const FRAMES: Definition =
    define("frames", "frames", "Frames sent on a ring, by class of station or by station.")
        .known_in(KnownIn::SimAndWire);

const BYTES_SENT: Definition =
    define("bytes", "bytes", "Bytes sent on a ring, with all framing.").known_in(KnownIn::SimAndWire);

const SWITCH: Definition = define(
    "switch",
    "switch",
    "The switch port that leads to a station: the share of the time in which it transmitted, the time that frames \
     waited in its buffer, the largest backlog there, and the frames dropped because the buffer was full.",
)
.known_in(KnownIn::SimAndWire);

const CHANNEL_USE: Definition = define(
    "channel-use",
    "channel use",
    "Share of the time in which a cell used its channel: frames, acknowledgements and the wait for missing \
     acknowledgements, without the use by other cells (`occupied`).",
)
.known_in(KnownIn::SimAndWire);

const COLLISIONS: Definition = define(
    "collisions",
    "collisions",
    "Number of times that several stations of a cell transmitted at once.",
)
.known_in(KnownIn::SimAndWire);

const AIRTIME: Definition =
    define("airtime", "airtime", "Share of the time in which a station sent frames in its cell.")
        .known_in(KnownIn::SimAndWire);

const TRANSMISSIONS: Definition = define(
    "transmissions",
    "transmissions",
    "Frames that a station transmitted in its cell, including retries.",
)
.known_in(KnownIn::SimAndWire);

const RETRIES: Definition =
    define("retries", "retries", "Transmissions that were not the first of their packet.")
        .source("IEEE 802.11")
        .known_in(KnownIn::SimAndWire);

const COLLIDED: Definition =
    define("collided", "collided", "Transmissions of a station that coincided with another's.")
        .known_in(KnownIn::SimAndWire);

const SPOILT: Definition =
    define("spoilt", "spoilt", "Receptions of a station's transmissions that failed because of noise.")
        .known_in(KnownIn::SimAndWire);

const HOST_LINE: Definition = define(
    "host-line",
    "host line utilisation",
    "Share of the time in which an ATM host sent cells on its own line to the switch (`line`): 53 bytes for every 48 \
     bytes of its packets, of which the last cell is padded and ends with a trailer of 8 bytes. The utilisation of \
     the link is that of the switch's output line (`rate`), counted in the same cells without those that were \
     discarded.",
)
.source("ITU-T I.363.5")
.known_in(KnownIn::SimAndWire);

const CELLS: Definition = define(
    "cells",
    "cells",
    "Cells that an ATM host sent; those of them that did not conform to the contract; those that the policer tagged \
     for that reason; and those that did not arrive, because the policer discarded them, a buffer was full, or other \
     cells of their packet were discarded. The cell loss ratio is the share of cells that did not arrive. Names that \
     begin with “observed” are figures of the one member of a flow that `observe` names, as a test set at the far \
     end of the line sees one connection.",
)
.source("ITU-T I.356; ATM Forum Traffic Management 4.0, section 3")
.known_in(KnownIn::SimAndWire);

const CELL_DELAY: Definition = define(
    "cell-delay",
    "cell transfer delay",
    "Time from when the first bit of a cell leaves its host until its last bit arrives, without \
     impairments; the cell delay variation is the longest minus the shortest.",
)
.source("ITU-T I.356; ATM Forum Traffic Management 4.0, section 3")
.known_in(KnownIn::SimAndWire);

const CELL_BACKLOG: Definition =
    define("cell-backlog", "cell backlog", "Largest number of cells that waited in the switch.")
        .known_in(KnownIn::SimAndWire);

const CELL_INTERARRIVAL: Definition = define(
    "cell-interarrival",
    "cell interarrival time",
    "Time from one arrival of a cell of the observed connection to the next: mean and sample standard \
     deviation.",
)
.known_in(KnownIn::SimAndWire);

const SHAPER: Definition = define(
    "shaper",
    "shaper wait",
    "Time that packets waited for tokens after they had left the queue, while the line was free. Time spent in the \
     queue behind a packet that waits for tokens counts as sojourn time.",
)
.source("RFC 2475")
.known_in(KnownIn::SimAndWire);

const POLICER: Definition = define(
    "policer",
    "packets within and beyond the committed rate",
    "Packets within the committed rate of a shaper or policer, those beyond it that were only counted, those that were \
     tagged as least urgent, and those that were discarded.",
)
.source("RFC 2475; RFC 2698")
.known_in(KnownIn::SimAndWire);

pub(super) const DEFINITIONS: &[&Definition] = &[
    &TOKEN_ROTATION,
    &TTRT,
    &LATE_COUNTER,
    &RING_LATENCY,
    &RING_UTILISATION,
    &FRAMES,
    &BYTES_SENT,
    &SWITCH,
    &CHANNEL_USE,
    &COLLISIONS,
    &AIRTIME,
    &TRANSMISSIONS,
    &RETRIES,
    &COLLIDED,
    &SPOILT,
    &HOST_LINE,
    &CELLS,
    &CELL_DELAY,
    &CELL_BACKLOG,
    &CELL_INTERARRIVAL,
    &SHAPER,
    &POLICER,
];

pub(super) const FIGURES: &[FigureKind] = &[
    figure("ttrt", "ttrt", Time, &TTRT),
    figure("ring-latency", "ring latency", Time, &RING_LATENCY),
    figure("ring-utilisation", "ring utilisation", Share, &RING_UTILISATION),
    figure("token-rotations", "token rotations", Count, &TOKEN_ROTATION),
    figure("token-rotation-mean", "token rotation mean", Time, &TOKEN_ROTATION),
    figure("token-rotation-p50", "token rotation p50", Time, &TOKEN_ROTATION),
    figure("token-rotation-p99", "token rotation p99", Time, &TOKEN_ROTATION),
    figure("token-rotation-p999", "token rotation p999", Time, &TOKEN_ROTATION),
    figure("token-rotation-max", "token rotation max", Time, &TOKEN_ROTATION),
    figure("late-counter-max", "late counter max", Count, &LATE_COUNTER),
    figure("frames-synchronous", "frames synchronous", Count, &FRAMES),
    figure("bytes-synchronous", "bytes synchronous", Bytes, &BYTES_SENT),
    figure("frames-asynchronous", "frames asynchronous", Count, &FRAMES),
    figure("bytes-asynchronous", "bytes asynchronous", Bytes, &BYTES_SENT),
    figure("frames", "frames", Count, &FRAMES),
    figure("bytes", "bytes", Bytes, &BYTES_SENT),
    figure("switch-utilisation", "switch utilisation", Share, &SWITCH),
    figure("switch-sojourn-mean", "switch sojourn mean", Time, &SWITCH),
    figure("switch-sojourn-max", "switch sojourn max", Time, &SWITCH),
    figure("switch-backlog-max", "switch backlog max", Bytes, &SWITCH),
    figure("switch-dropped", "switch dropped", Count, &SWITCH),
    figure("channel-use", "channel use", Share, &CHANNEL_USE),
    figure("collisions", "collisions", Count, &COLLISIONS),
    figure("airtime", "airtime", Share, &AIRTIME),
    figure("transmissions", "transmissions", Count, &TRANSMISSIONS),
    figure("retries", "retries", Count, &RETRIES),
    figure("collided", "collided", Count, &COLLIDED),
    figure("spoilt", "spoilt", Count, &SPOILT),
    figure("host-line-utilisation", "host line utilisation", Share, &HOST_LINE),
    figure("cells", "cells", Count, &CELLS),
    figure("cells-nonconforming", "cells nonconforming", Count, &CELLS),
    figure("cells-tagged", "cells tagged", Count, &CELLS),
    figure("cells-lost", "cells lost", Count, &CELLS),
    figure("cell-loss-ratio", "cell loss ratio", Share, &CELLS),
    figure("cell-transfer-delay-mean", "cell transfer delay mean", Time, &CELL_DELAY),
    figure("cell-transfer-delay-max", "cell transfer delay max", Time, &CELL_DELAY),
    figure("cell-delay-variation", "cell delay variation", Time, &CELL_DELAY),
    figure("cell-backlog-max", "cell backlog max", Count, &CELL_BACKLOG),
    figure("observed-cells", "observed cells", Count, &CELLS),
    figure("observed-cells-nonconforming", "observed cells nonconforming", Count, &CELLS),
    figure("observed-cells-tagged", "observed cells tagged", Count, &CELLS),
    figure("observed-cells-lost", "observed cells lost", Count, &CELLS),
    figure("observed-cell-loss-ratio", "observed cell loss ratio", Share, &CELLS),
    figure("observed-cell-transfer-delay-mean", "observed cell transfer delay mean", Time, &CELL_DELAY),
    figure("observed-cell-transfer-delay-max", "observed cell transfer delay max", Time, &CELL_DELAY),
    figure("observed-cell-delay-variation", "observed cell delay variation", Time, &CELL_DELAY),
    figure("observed-cell-interarrival-mean", "observed cell interarrival mean", Time, &CELL_INTERARRIVAL),
    figure(
        "observed-cell-interarrival-standard-deviation",
        "observed cell interarrival standard deviation",
        Time,
        &CELL_INTERARRIVAL,
    ),
    figure("shaper-wait-mean", "shaper wait mean", Time, &SHAPER),
    figure("shaper-wait-max", "shaper wait max", Time, &SHAPER),
    figure("packets-conforming", "packets conforming", Count, &POLICER),
    figure("packets-passed", "packets passed beyond the rate", Count, &POLICER),
    figure("packets-tagged", "packets tagged", Count, &POLICER),
    figure("packets-policed", "packets policed", Count, &POLICER),
];
