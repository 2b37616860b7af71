//! The command lines that do what is recommended.

use std::fmt::Write as _;

use trunkline_audio::pipeline::Protection;

use crate::choose::Use;
use crate::judge::{Judgement, LONGEST_BLOCK};
use crate::live::SEND_TIMEOUT;

/// The sample rate of sound cards that blocks of the telephone are cut for.
const DEVICE_RATE: u32 = 48_000;

/// What to type at the other end, and here. None of it needs quoting, if the host does not.
pub fn commands(host: &str, purpose: Use, judgement: &Judgement) -> (String, String) {
    let Judgement { transport, blocks, depth, .. } = *judgement;
    let (format, frames) = if blocks.is_telephone() {
        ("pcmu", u64::from(blocks.frames) * u64::from(DEVICE_RATE) / u64::from(blocks.sample_rate))
    } else {
        let format = match blocks.sample_bytes {
            ..=2 => "i16",
            3 => "i24",
            4.. => "f32",
        };
        (format, u64::from(blocks.frames))
    };
    let mut send = format!(
        "trunkline send {host} --channels {} --rate {} --format {format} --block {frames} --transport {transport}",
        blocks.channels, blocks.sample_rate
    );
    // Writing to a String cannot fail.
    let _ = match judgement.protection {
        Protection::None => Ok(()),
        Protection::Repeat(repeats) => write!(send, " --redundancy {repeats}"),
        Protection::Xor { data } => write!(send, " --fec xor:{data}"),
        Protection::ReedSolomon { data, parity } => write!(send, " --fec rs:{data}+{parity}"),
    };
    if transport.is_reliable() {
        let _ = write!(send, " --send-timeout {}s", SEND_TIMEOUT.as_secs_f64());
    }
    let answer = match purpose {
        // What has to be whole is neither resampled nor concealed, and waits for no turn.
        Use::Recording => "trunkline receive --to take.wav --exact".to_owned(),
        _ => {
            let rate = if blocks.is_telephone() { DEVICE_RATE } else { blocks.sample_rate };
            let longest = (LONGEST_BLOCK.as_secs_f64() * f64::from(rate)).round() as u64;
            let played = frames.min(longest);
            format!("trunkline receive --block {played} --playout {:.1}ms", depth.as_millis_f64())
        }
    };
    (answer, send)
}
