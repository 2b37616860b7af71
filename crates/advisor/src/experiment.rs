//! The recommendation as an experiment: the network as it was measured, and the flow that is recommended over it.

use trunkline_audio::pipeline::Protection;
use trunkline_core::quantity::significant;
use trunkline_core::{Duration, Rate};

use crate::advice::{Advice, Recommendation};
use crate::choose::Use;
use crate::configuration::{Blocks, Configuration, Load, MOST_AUDIO, Marking};
use crate::trace::RoundTrips;
use crate::words;

/// An experiment file of what is recommended for the first use that was asked for: two hosts, a link with the rate, delay,
/// variation and loss that were measured, and one flow with the transport, the block and the playout. `None` if nothing is
/// recommended.
///
/// It is what the simulator, or a wire, needs to try other things on such a network. Delays and losses were measured there
/// and back; one way they are taken to be half of it.
pub fn experiment(advice: &Advice) -> Option<String> {
    let recommendation = advice.recommendations.first()?;
    let best = &recommendation.choice.best;
    let purpose = recommendation.choice.purpose;
    let host = printable(&advice.host);
    let round_trips = round_trips(advice, recommendation);
    let mut text = format!(
        "# Measured to {host} by `trunkline probe`, with its recommendation for {purpose}:\n# {}.\n",
        words::way(best)
    );
    if best.protection != Protection::None {
        text += "# Experiments do not model redundancy: the loss is that before repair.\n";
    }
    text += &format!(
        "name = \"{purpose} to {host}\"\nduration = \"30 s\"\nseed = 1\n\n[hosts]\nhere = {{}}\nthere = {{}}\n\n\
         [link.network]\nbetween = [\"here\", \"there\"]\n"
    );
    text += &match advice.capacity {
        Some(capacity) => format!("rate = \"{}\"   # throughput of bulk transfers\n", rate(capacity)),
        None => {
            format!("rate = \"{}\"   # not measured; far above the stream's rate\n", rate(ample(best.rate)))
        }
    };
    text += &format!("delay = \"{}\"   # half of the fastest round trip\n", time(best.stages.network));
    if let Some(found) = round_trips {
        text += &variation(&found);
    }
    text +=
        &format!("\n[flow.{purpose}]\nfrom = \"here\"\nto = \"there\"\ntransport = \"{}\"\n", best.transport);
    text += &source(best.blocks);
    text += &format!("playout = \"{}\"\n", time(best.depth));
    if purpose == Use::Rehearsal {
        let concealed = advice.question.concealed.value() * 100.0;
        text += &format!(
            "\n[limits]\n\"flow.rehearsal.loss-and-late\" = \"<= {} %\"\n",
            significant(concealed, 3)
        );
    }
    Some(text)
}

/// The round trips of what is recommended, with nothing else on the network.
fn round_trips(advice: &Advice, recommendation: &Recommendation) -> Option<RoundTrips> {
    let best = &recommendation.choice.best;
    let wanted = Configuration {
        transport: best.transport,
        blocks: best.blocks,
        load: Load::Idle,
        marking: Marking::Expedited,
    };
    Some(advice.measured.iter().find(|row| row.configuration == wanted)?.round_trips)
}

/// What differs from packet to packet. Less than a microsecond is nothing.
fn variation(found: &RoundTrips) -> String {
    let mut text = String::new();
    let jitter = found.median.saturating_sub(found.fastest) / 2;
    if jitter >= Duration::from_micros(1) {
        // Half of the round trips take longer by at most the median, which of an exponential distribution is its mean's ln 2.
        let mean = Duration::from_secs_f64(jitter.as_secs_f64() / core::f64::consts::LN_2);
        text += &format!("jitter = {{ kind = \"exponential\", mean = \"{}\" }}\n", time(mean));
    }
    if found.lost > 0 {
        let there_and_back = found.lost as f64 / found.blocks.max(1) as f64;
        let share = (1.0 - (1.0 - there_and_back).sqrt()) * 100.0;
        text += &format!(
            "loss = \"{} %\"   # {} of {} round trips\n",
            significant(share, 3),
            found.lost,
            found.blocks
        );
    }
    text
}

/// The blocks as a source sends them: each channel its own, or where that would be more than a packet holds, in as many
/// packets as a session makes of them.
fn source(blocks: Blocks) -> String {
    if blocks.is_telephone() {
        return format!("source = {{ kind = \"voice\", samples = {} }}\n", blocks.frames);
    }
    let Blocks { sample_rate, frames, channels, sample_bytes } = blocks;
    if u64::from(frames) * u64::from(sample_bytes) <= MOST_AUDIO {
        let bits = u32::from(sample_bytes) * 8;
        return format!(
            "source = {{ kind = \"audio\", frames = {frames}, device-rate = {sample_rate}, sample-rate = {sample_rate}, \
             bits = {bits} }}\nchannels = {channels}\n"
        );
    }
    let (packets, bytes) = blocks.packets();
    format!(
        "source = {{ kind = \"load\", message = \"{bytes} B\", interval = \"{}\", burst = {packets} }}\n",
        time(blocks.interval())
    )
}

/// Ten times as much as is sent, and no less than a local network has.
fn ample(sent: Rate) -> Rate {
    Rate::from_bits_per_second(sent.bits_per_second().saturating_mul(10).max(100_000_000))
}

/// A rate in a unit that people use, with three digits.
fn rate(rate: Rate) -> String {
    let bits = rate.bits_per_second().max(1) as f64;
    match bits {
        1e6.. => format!("{} Mbit/s", significant(bits / 1e6, 3)),
        1e3.. => format!("{} kbit/s", significant(bits / 1e3, 3)),
        _ => format!("{bits} bit/s"),
    }
}

/// A time in milliseconds, to the microsecond.
fn time(time: Duration) -> String {
    let micros = (time.as_nanos() + 500) / 1000;
    let text = format!("{}.{:03}", micros / 1000, micros % 1000);
    format!("{} ms", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A name that may stand in a text and in a comment.
fn printable(host: &str) -> String {
    host.chars().filter(|c| !c.is_control() && !matches!(c, '"' | '\\')).collect()
}
