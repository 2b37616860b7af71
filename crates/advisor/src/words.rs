//! Sentences as people read them.

use trunkline_audio::pipeline::Protection;
use trunkline_core::Ratio;

use crate::choose::{Choice, Use};
use crate::judge::Judgement;
use crate::plan::Question;
use crate::units::{ms, percent, rate};

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
