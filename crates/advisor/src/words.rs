//! Sentences and figures as people read them.

use trunkline_audio::pipeline::Protection;
use trunkline_core::{Duration, Rate, Ratio};

use crate::choose::{Choice, Use};
use crate::judge::Judgement;
use crate::plan::Question;

/// `9.3 ms`, `268 ms`.
pub(crate) fn ms(duration: Duration) -> String {
    let ms = duration.as_millis_f64();
    if ms < 99.95 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") }
}

/// `0.05 %`, `1.2 %`, `34 %`.
pub(crate) fn percent(share: Ratio) -> String {
    let percent = share.value() * 100.0;
    match percent {
        0.0 => "0 %".to_owned(),
        ..1.0 => format!("{percent:.2} %"),
        1.0..10.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// `86.8 kbit/s`, `1.88 Mbit/s`.
pub(crate) fn rate(rate: Rate) -> String {
    let bits = rate.bits_per_second() as f64;
    if bits < 1e6 { format!("{:.1} kbit/s", bits / 1e3) } else { format!("{:.2} Mbit/s", bits / 1e6) }
}

/// What is sent besides, against loss.
pub(crate) fn protection(protection: Protection) -> String {
    match protection {
        Protection::None => "no redundancy".to_owned(),
        Protection::Repeat(1) => "each packet repeated once".to_owned(),
        Protection::Repeat(repeats) => format!("each packet repeated {repeats} times"),
        Protection::Xor { data } => format!("a parity packet after every {data}"),
        Protection::ReedSolomon { data, parity } => format!("{parity} parity packets after every {data}"),
    }
}

/// `udp, 64 frames, 2 channels, playout 0.2 ms deep, no redundancy`.
pub(crate) fn way(judgement: &Judgement) -> String {
    let Judgement { transport, blocks, depth, .. } = judgement;
    format!("{transport}, {blocks}, playout {} deep, {}", ms(*depth), protection(judgement.protection))
}

/// Why this is best for its use, with the numbers, in a paragraph.
pub(crate) fn why(choice: &Choice, loaded: Option<&Judgement>, question: &Question) -> String {
    let best = &choice.best;
    let stages = best.stages;
    let mut text = match (choice.purpose, choice.suffices) {
        (Use::Rehearsal, true) => format!(
            "The lowest latency with at most {} of the audio concealed: ",
            percent(question.concealed)
        ),
        (Use::Rehearsal, false) => format!(
            "No option conceals at most {} of the audio; this one comes closest: ",
            percent(question.concealed)
        ),
        (Use::Recording, true) if best.transport.is_reliable() => {
            format!(
                "{} retransmits lost packets, with the lowest latency of all transports that do: ",
                best.transport
            )
        }
        (Use::Recording, true) => "The lowest latency without loss: ".to_owned(),
        (Use::Recording, false) => "Every option loses packets; this one loses the fewest: ".to_owned(),
        (Use::Telephony, _) => {
            format!("The highest mean opinion score, {:.2} (R = {:.0}): ", best.mos, best.r)
        }
    };
    text += &format!(
        "{} from mouth to ear: sound cards {}{}, network {} (half of the fastest round trip) and playout {}. ",
        ms(best.mouth_to_ear),
        ms(stages.capture + stages.playback),
        if stages.block.is_zero() {
            String::new()
        } else {
            format!(", filling a block {} more", ms(stages.block))
        },
        ms(stages.network),
        ms(stages.playout),
    );
    text += &format!(
        "Of {} measured blocks, {} did not come back and {} were late",
        best.measured,
        percent(best.lost),
        percent(best.late)
    );
    text += &match best.protection {
        _ if best.concealed == Ratio::ZERO => "; none would have been concealed".to_owned(),
        Protection::None => format!("; {} would have been concealed", percent(best.concealed)),
        _ => format!("; with redundancy, {} would have been concealed", percent(best.concealed)),
    };
    text += &format!(". It takes {} in each direction.", rate(best.rate));
    if choice.is_best_brief {
        text += &format!(" {}; a larger `--budget` measures it longer.", brief(best));
    }
    if let Some(loaded) = loaded {
        text += &format!(
            " While bulk transfers loaded the network it would have been {}.",
            percent(loaded.concealed)
        );
    }
    text
}

/// Says for how long something was measured, without the full stop.
fn brief(judgement: &Judgement) -> String {
    let measured = judgement.blocks.interval() * judgement.measured;
    format!("It was measured for {} only, which is too short to rely on", ms(measured))
}

/// What the runner-up costs against the best, in a sentence.
pub(crate) fn runner_up(choice: &Choice) -> Option<String> {
    let (best, other) = (&choice.best, choice.runner_up.as_ref()?);
    let more = other.mouth_to_ear.as_millis_f64() - best.mouth_to_ear.as_millis_f64();
    let difference = match more {
        ..=-0.05 => format!("{:.1} ms less", -more),
        0.05.. => format!("{more:.1} ms more"),
        _ => "as much".to_owned(),
    };
    let brief = if choice.is_runner_up_brief { format!(" {}.", brief(other)) } else { String::new() };
    Some(format!(
        "{}: {} from mouth to ear ({difference}), {} concealed, MOS {:.2}, {} in each direction.{brief}",
        way(other),
        ms(other.mouth_to_ear),
        percent(other.concealed),
        other.mos,
        rate(other.rate),
    ))
}
