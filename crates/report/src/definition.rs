//! The glossary: what the names in a report mean, with their sources.

use crate::metric::METRICS;

/// What a figure of a flow, or a word of a report, means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The figure's name in files and JSON; `None` of a word that explains others.
    pub figure: Option<&'static str>,
    /// What it is called in text.
    pub name: &'static str,
    /// What it means.
    pub text: &'static str,
    /// Standard or paper; empty if the text says it all.
    pub source: &'static str,
}

/// What every figure of a flow means, then every other word of the glossary.
pub fn meanings() -> impl Iterator<Item = Meaning> {
    let figures = METRICS.iter().map(|metric| {
        let definition = metric.definition();
        Meaning {
            figure: Some(metric.id),
            name: metric.name,
            text: definition.text,
            source: definition.source,
        }
    });
    let is_of_figures = |id: &str| METRICS.iter().any(|metric| metric.definition().id == id);
    let others = DEFINITIONS.iter().filter(move |definition| !is_of_figures(definition.id));
    figures.chain(others.map(|other| Meaning {
        figure: None,
        name: other.name,
        text: other.text,
        source: other.source,
    }))
}

/// What a name in the report means.
pub(crate) struct Definition {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    /// Standard or paper; empty if the text says it all.
    pub(crate) source: &'static str,
}

macro_rules! definitions {
    ($($id:literal, $name:literal, $text:literal, $source:literal;)*) => {
        /// The glossary, in the order in which it is printed.
        pub(crate) const DEFINITIONS: &[Definition] = &[$(Definition {
            id: $id, name: $name, text: $text, source: $source,
        }),*];
    };
}

definitions! {
    "message", "message", "What the application hands over at once: one voice packet's samples, one block of a bulk \
        transfer. All figures count messages unless they say packets.", "";
    "latency", "latency", "From the moment a message was sent to the moment it arrived where latency is measured. \
        One way: at the sink. Round trip: back at the source, through the reflector; it is not halved. The standard \
        deviation is the sample's.", "RFC 7679 section 3; RFC 2681 section 2";
    "percentile", "p50, p90, p99, p99.9", "The smallest latency that at least that share of the received messages \
        does not exceed (nearest rank). Marked ≈ where taken from a histogram, which is right within 0.1 %; exact \
        otherwise. p99.9 is Weaver's “99.9 % threshold”.", "RFC 2330 section 11.3";
    "latency-from-due", "latency from due", "From the moment the source wanted a message sent to its arrival. Where \
        the transport blocks its sender this is larger than latency: it includes the wait in front of the transport.",
        "";
    "jitter-mad", "jitter, mean absolute deviation", "Mean of the absolute differences between each latency and the \
        mean latency.", "Schiavoni and Queiroz 2013, equation 2";
    "jitter-sd", "jitter, standard deviation", "Standard deviation of latency.", "";
    "jitter-interarrival", "interarrival jitter", "J = J + (|D| - J)/16 with D the change of latency from one message \
        of a channel to the next in order of arrival; its value at the end, mean over channels.",
        "RFC 3550 section 6.4.1";
    "ipdv", "IPDV", "Absolute difference of the latencies of consecutive messages of a channel.",
        "RFC 3393 with consecutive selection";
    "pdv", "PDV", "Latency minus the smallest latency of the flow.", "RFC 5481 section 4.2";
    "interarrival", "interarrival time", "Time between consecutive arrivals of one channel.", "Lamont et al. 1998";
    "robust-minimum", "robust minimum", "First and last ten messages dropped; then latencies above mean + 1 standard \
        deviation removed, twice; the mean of the rest, with the number of points kept and removed, the second \
        threshold, and the standard deviation of the points kept with the mean over it.", "Hawley 1989, section 4.2.1";
    "robust-loaded", "robust loaded mean", "First and last ten messages dropped; then latencies above mean + 8 \
        standard deviations removed, once; the mean of the rest, with the same figures beside it.",
        "Hawley 1989, section 4.3.1";
    "loss", "loss", "Messages that the network or the transport lost: sent, and not received by the end of the run plus \
        its drain time, as a share of those due. What a reliable transport would still deliver is unfinished, and what \
        it never took is refused: neither is loss.", "RFC 7680 section 2";
    "unfinished", "unfinished", "Messages that a reliable transport took and had not delivered by the end of the run plus \
        its drain time: they wait in the sender's buffer or are being repeated. A share of the messages due.", "";
    "refused", "refused", "Messages that the transport never took: there was no room before the send timeout or by the \
        end of the run, or they were too large. A share of the messages due.", "";
    "undelivered", "undelivered", "Messages that did not arrive: lost, unfinished or refused, as a share of those due. \
        What arrived late can be added.", "";
    "late", "late", "Received after the playout deadline: the first received message of the channel, plus the playout \
        delay, plus the difference of their due times. A share of the messages due. Needs a playout in the file.", "";
    "loss-and-late", "loss and late", "Loss plus late.", "";
    "affected", "time affected", "Share of the time in which a listener does not hear what was sent but concealment or \
        silence: audio that was lost, unfinished, refused or late or found no room in a FIFO, of all audio due, over all channels.",
        "";
    "loss-burst", "loss burst", "Consecutive lost messages of one channel.", "RFC 3357 section 3";
    "reordered", "reordered", "Arrived with a smaller sequence number than one that arrived before, per channel.",
        "RFC 4737 section 3";
    "counts", "counts", "Due = sent + refused; sent = received + late + lost + unfinished. Duplicates are further copies and count \
        nowhere else.", "";
    "stray", "stray bytes", "Bytes that arrived and were no message of this run.", "";
    "throughput-user", "user throughput", "Payload delivered in the flow's active time, each message once, over all its \
        members and channels. The window at the sink begins and ends later by the propagation delay of the path; what \
        still waits in a queue then does not count, so that no sum of flows exceeds what a link carries.", "";
    "throughput-network", "network throughput", "What the flow took of the first link of its path in its active time, \
        with all framing of that link. Not known between real hosts.", "";
    "throughput-offered", "offered load", "Payload that the source wanted sent, per second of active time.", "";
    "active", "active time", "From the first due message to the end of the run; for a source that sends a fixed volume, to \
        the last arrival.", "";
    "transfers", "transfer rate", "Payload of one transfer over the time from its first message to the answer that ends \
        it. Of every channel with at least three transfers the first and the last are dropped. “All channels” is the \
        mean times the number of channels of all members.", "Hawley 1989, section 4.1.1";
    "voice-channels", "voice channels", "How many telephone channels of 64 kbit/s were delivered, rounded \
        down.", "ITU-T G.711";
    "fairness", "fairness", "Jain's index of the user throughputs of the members of a flow or of a bundle: 1 if all are equal, 1/n if one \
        has everything.", "Jain, Chiu and Hawe 1984";
    "bundle", "bundle", "Flows counted together on one path. Its throughput is that of all of them, over the time from the \
        first due message to the end of the last active time; network throughput with all framing of the first link.", "";
    "connection", "figures of connections", "Of each member of a bundle's flows by itself first; then the mean, the \
        smallest and the largest over all members whose flows use the same transport. p99.9 is at most 0.8 % too high.",
        "Lamont et al. 1998, section 6";
    "start-up", "start-up delay", "From the moment at which the first sample of a talk spurt began to the moment at which \
        it is played: the time to fill a packet, its latency, and the time until the D/A FIFO is filled as far as \
        `playback` asks.", "Weaver and McNabb 1992, section 5.2";
    "margin", "deadline margin", "How much earlier than its deadline a packet came; less than zero if it missed it. The \
        deadline is the moment at which everything before it has been played: as long after its predecessor's as that \
        one's samples last. Percentiles by nearest rank: 0.1 % of the packets had p0.1 or less.",
        "Weaver and McNabb 1992, section 5.2";
    "underflow", "underflow, silence", "A D/A FIFO had nothing to play: silence until the next packet.",
        "Weaver and McNabb 1992, section 3";
    "overflow", "overflow", "Samples found no room: in the A/D FIFO while the transport took nothing, or in the D/A FIFO \
        at the arrival of a packet.", "Weaver and McNabb 1992, section 3";
    "mos", "MOS (estimated)", "Mean opinion score of a conversation, from 1 to 4.5, that belongs to the R-factor \
        (MOS-CQE). An estimate for planning: nobody was asked.", "ITU-T G.107 (06/2015), Annex B";
    "r", "R-factor", "Transmission rating of a conversation, from 0 to 100, from the codec, the mouth-to-ear delay with \
        talkers' echo 65 dB down, the share not heard in time and its burst ratio; all else has the default values. \
        G.711 without delay and loss has 93.2; 80 and more satisfy users.",
        "ITU-T G.107 (06/2015), equation 7-1; codecs: ITU-T G.113, Appendix I";
    "mouth-to-ear", "mouth-to-ear delay", "Mean over the messages heard of the time to fill a packet, the codec's \
        look-ahead and the time from when a message is due until it is played. Sound cards and processing cost none.",
        "ITU-T G.107 (06/2015), Ta";
    "ppl", "not heard in time (Ppl)", "Share of the messages due that were lost, unfinished, refused or late; of a flow with FIFOs \
        also those that missed their deadline or found no room.", "ITU-T G.107 (06/2015), clause 7.5";
    "burst-r", "burst ratio", "Mean length of the runs of messages not heard, over that of random loss of the same \
        probability: 1 / (1 - Ppl).", "ITU-T G.107 (06/2015), clause 7.5";
    "clock-error", "bound of the clocks", "Between hosts, the arrival of a message is read from the sink's clock and brought to \
        the source's. No one-way time is further from the truth than this, whatever the ways there and back are; differences \
        between messages (jitter) are as exact as the clocks run evenly.", "RFC 5905, maximum error";
    "schedule-error", "schedule error", "How long after its due time a message was handed to the kernel: the \
        instrument's own error.", "";
    "send-call", "send call", "How long the call took that handed a message to the kernel.", "";
    "estimate", "mean ± half width", "Mean over repetitions, with half the width of its 95 % confidence interval \
        (Student's t). One repetition has none.", "";
    "verdict", "verdict", "A limit holds at a point if the mean over repetitions meets it. “Not certain” means that \
        the 95 % confidence interval reaches across the bound.", "";
    "token-rotation", "token rotation", "From one coming of the token to the first station of a ring to the next, \
        rotations on which nobody sent among them. Percentiles by nearest rank, within 0.8 %.", "ANSI X3.139";
    "ttrt", "ttrt", "The target token rotation time on which the stations of a ring agreed.", "ANSI X3.139";
    "late-counter", "late counter", "How often a station's token rotation timer had expired since the token had come \
        last, at the most.", "ANSI X3.139";
    "ring-latency", "ring latency", "How long a bit takes around a ring.", "";
    "ring-utilisation", "ring utilisation", "Share of the time in which a station of a ring sent a frame.", "";
    "frames", "frames", "Frames sent on a ring, by class of station or by station.", "";
    "bytes", "bytes", "Bytes sent on a ring, with all framing.", "";
    "switch", "switch", "Of the port of a switch that leads to a station: the share of the time in which it transmitted, \
        how long frames waited in its buffer, the most bytes that waited there, and frames for which it had no room.",
        "";
    "channel-use", "channel use", "Share of the time in which the channel of a cell was in use.", "";
    "collisions", "collisions", "How often several stations of a cell transmitted at once.", "";
    "airtime", "airtime", "Share of the time in which a station used the channel of its cell.", "";
    "transmissions", "transmissions", "Frames that a station transmitted in its cell, repeated ones among them.", "";
    "retries", "retries", "Transmissions that were not the first of their packet.", "IEEE 802.11";
    "collided", "collided", "Transmissions of a station that coincided with another's.", "";
    "spoilt", "spoilt", "Receptions of a station's transmissions that noise spoilt.", "";
    "utilisation", "utilisation", "Share of the measured time, without the drain time, in which the line was busy.", "";
    "sojourn", "sojourn time", "Time from a packet's arrival at a queue to its departure; percentiles by nearest rank \
        over all packets of the direction that left the queue, to 0.8 %.", "";
    "backlog", "backlog", "What waits in a queue; the largest seen.", "";
    "stalls", "stalls", "Gaps in which the operating system or the host of a virtual machine did not run a probe \
        that wanted to run. Latencies beyond p99 of a measured run can be no better than these.", "";
}
