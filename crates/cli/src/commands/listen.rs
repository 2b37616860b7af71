//! `trunkline listen`

use std::path::Path;

use trunkline_audio::measure::{Channel, Comparison, Doubt, Jump, Recording, compare};
use trunkline_sound::file::Reader;

use crate::args::Global;
use crate::args::listen::Listen;
use crate::json::{ListenChannel, ListenDoubt, ListenJump, ListenOutput};
use crate::output::{self, Failure};

pub(super) fn listen(global: &Global, arguments: &Listen) -> Result<u8, Failure> {
    let (sent, received) = (read(&arguments.sent)?, read(&arguments.received)?);
    let compared = compare(&sent, &received).map_err(Failure::input)?;
    if global.json {
        output::print_json(&as_json(arguments, &compared));
    } else {
        output::print_words(as_text(&sent, &compared));
    }
    Ok(output::DONE)
}

fn read(path: &Path) -> Result<Recording, Failure> {
    let mut reader = Reader::open(path).map_err(|error| Failure::about(path, error))?;
    reader.cut_short().into_iter().for_each(|why| output::warn_about(path, why));
    let mut channels = vec![Vec::new(); usize::from(reader.channels())];
    let mut frames = Vec::new();
    while reader.read(&mut frames).map_err(|error| Failure::about(path, error))? {
        for frame in frames.chunks_exact(channels.len().max(1)) {
            channels.iter_mut().zip(frame).for_each(|(channel, sample)| channel.push(*sample));
        }
        frames.clear();
    }
    Ok(Recording { sample_rate: reader.sample_rate(), channels })
}

fn as_text(sent: &Recording, compared: &Comparison) -> String {
    let longest = compared.channels.iter().map(|channel| channel.alignment.compared).fold(0.0, f64::max);
    let sent = sent.channels.iter().map(Vec::len).max().unwrap_or(0) as f64 / f64::from(sent.sample_rate);
    let mut lines = vec![match sent - longest >= 0.1 {
        true => format!("{longest:.1} s of {sent:.1} s compared"),
        false => format!("{longest:.1} s compared"),
    }];
    lines.push(output::table(&alignments(compared), output::screen()));
    lines.push(String::new());
    lines.push(output::table(&measures(compared), output::screen()));
    lines.push(
        "heard: time in which the difference is audible; altered: time in which it is as loud as the \
        audio"
            .to_owned(),
    );
    for (number, channel) in (1..).zip(&compared.channels) {
        lines.extend(note(number, channel));
        lines.extend(silent_end(number, channel));
        lines.extend(jumps(number, &channel.jumps));
    }
    lines.join("\n")
}

fn row(cells: &str) -> Vec<String> {
    cells.split('|').map(str::to_owned).collect()
}

/// Where each channel is in the received recording.
fn alignments(compared: &Comparison) -> Vec<Vec<String>> {
    let mut rows = vec![row("channel|received|polarity|delay ms|±|clock ppm|±|moved ms|jumps|gain dB")];
    for (number, channel) in compared.channels.iter().enumerate() {
        let alignment = channel.alignment;
        let mark = if alignment.doubt.is_some() { "?" } else { "" };
        let polarity = if channel.inverted { "inverted" } else { "same" };
        rows.push(vec![
            (number + 1).to_string(),
            (channel.received + 1).to_string(),
            format!("{polarity}{mark}"),
            format!("{:+.3}{mark}", alignment.delay * 1000.0 + 0.0),
            format!("{:.3}", alignment.delay_error * 1000.0),
            format!("{:+.1}", alignment.drift + 0.0),
            if alignment.drift_error.is_finite() {
                format!("{:.1}", alignment.drift_error)
            } else {
                "unknown".to_owned()
            },
            format!("{:.3}", alignment.wander * 1000.0),
            channel.jumps.len().to_string(),
            format!("{:+.2}", channel.gain),
        ]);
    }
    rows
}

/// The differences of each channel.
fn measures(compared: &Comparison) -> Vec<Vec<String>> {
    let mut rows =
        vec![row("channel|SNR dB|segmental|spectral dB|noise/mask dB|heard %|altered %|gaps|s|clicks")];
    for (number, Channel { measures, .. }) in compared.channels.iter().enumerate() {
        rows.push(vec![
            (number + 1).to_string(),
            format!("{:.1}", measures.snr),
            format!("{:.1}", measures.segmental_snr),
            format!("{:.2}", measures.log_spectral_distance),
            format!("{:.1}", measures.noise_to_mask),
            format!("{:.2}", 100.0 * measures.disturbed),
            format!("{:.2}", 100.0 * measures.altered),
            measures.gaps.to_string(),
            format!("{:.3}", measures.gap_time),
            measures.clicks.to_string(),
        ]);
    }
    rows
}

/// A sentence about a channel that is identical, or whose alignment is not certain.
fn note(number: usize, channel: &Channel) -> Option<String> {
    let note = match channel.alignment.doubt {
        None if channel.identical => "identical".to_owned(),
        None => return None,
        Some(Doubt::Periodic { later, flips }) => {
            let (here, there) =
                (channel.alignment.delay * 1000.0, (channel.alignment.delay + later) * 1000.0);
            let polarity = if flips { " with the opposite polarity" } else { "" };
            format!(
                "ambiguous delay: the sound repeats itself, and {there:+.3} ms{polarity} fits nearly as well \
                as {here:+.3} ms; the delay is known only up to multiples of {:.3} ms, and this may cause \
                gaps or clicks at the ends. Use a sound that does not repeat, such as speech or noise",
                later.abs() * 1000.0
            )
        }
        Some(Doubt::Faint) => {
            "uncertain delay: most of the received sound differs from the sent one, or lacks most of its frequencies. Check \
             that the files belong together"
                .to_owned()
        }
        Some(Doubt::Unrelated) => {
            "not found in the received recording; compared at the delay of the loudest channel".to_owned()
        }
    };
    Some(format!("channel {number}: {note}"))
}

/// A sentence about a channel that is silent at its end.
fn silent_end(number: usize, channel: &Channel) -> Option<String> {
    (channel.silent_end > 0.0).then(|| {
        format!(
            "channel {number}: the received recording is silent in its last {:.3} s, in which the sent one is not: the sender \
             had ended, or the end was lost; compared until then",
            channel.silent_end
        )
    })
}

/// Most jumps that are written in words.
const MOST_JUMPS: usize = 5;

/// A sentence about each of the first jumps.
fn jumps(number: usize, jumps: &[Jump]) -> Vec<String> {
    let sentence = |jump: &Jump| {
        let (length, at) = (jump.by.abs() * 1000.0, jump.at);
        let what = if jump.by > 0.0 { "inserted" } else { "left out" };
        format!("channel {number}: {length:.3} ms {what} at {at:.3} s of the sent recording")
    };
    let mut lines: Vec<String> = jumps.iter().take(MOST_JUMPS).map(sentence).collect();
    if jumps.len() > MOST_JUMPS {
        lines.push(format!("channel {number}: {} more jumps, see --json", jumps.len() - MOST_JUMPS));
    }
    lines
}

fn as_json(arguments: &Listen, compared: &Comparison) -> ListenOutput {
    let channels =
        compared.channels.iter().enumerate().map(|(number, channel)| channel_json(number + 1, channel));
    ListenOutput {
        sent: arguments.sent.display().to_string(),
        received: arguments.received.display().to_string(),
        channels: channels.collect(),
    }
}

fn channel_json(number: usize, channel: &Channel) -> ListenChannel {
    let Channel { received, alignment, ref jumps, gain, inverted, identical, silent_end, measures } =
        *channel;
    let jump = |jump: &Jump| ListenJump { at_s: nanoseconds(jump.at), by_s: nanoseconds(jump.by) };
    ListenChannel {
        channel: number,
        received: received + 1,
        identical,
        compared_s: rounded(alignment.compared),
        silent_end_s: rounded(silent_end),
        delay_s: nanoseconds(alignment.delay),
        delay_error_s: nanoseconds(alignment.delay_error),
        drift_ppm: rounded(alignment.drift),
        // JSON has no infinity.
        drift_error_ppm: alignment.drift_error.is_finite().then(|| rounded(alignment.drift_error)),
        wander_s: nanoseconds(alignment.wander),
        jumps: jumps.len() as u32,
        jump_time_s: nanoseconds(jumps.iter().map(|jump| jump.by.abs()).sum()),
        each_jump: jumps.iter().map(jump).collect(),
        doubt: alignment.doubt.map(doubt_json),
        gain_db: rounded(gain),
        inverted,
        snr_db: rounded(measures.snr),
        segmental_snr_db: rounded(measures.segmental_snr),
        log_spectral_distance_db: rounded(measures.log_spectral_distance),
        noise_to_mask_db: rounded(measures.noise_to_mask),
        disturbed: rounded(measures.disturbed),
        altered: rounded(measures.altered),
        gaps: measures.gaps,
        gap_time_s: rounded(measures.gap_time),
        clicks: measures.clicks,
        click_time_s: rounded(measures.click_time),
    }
}

fn doubt_json(doubt: Doubt) -> ListenDoubt {
    let (kind, other) = match doubt {
        Doubt::Periodic { later, flips } => ("periodic", Some((nanoseconds(later), flips))),
        Doubt::Faint => ("faint", None),
        Doubt::Unrelated => ("unrelated", None),
    };
    ListenDoubt {
        kind,
        other_later_s: other.map(|(later, _)| later),
        other_inverts: other.map(|(_, flips)| flips),
    }
}

/// Seconds to nine places.
fn nanoseconds(value: f64) -> f64 {
    (value * 1e9).round() / 1e9 + 0.0
}

/// To six places: what lies behind them nobody measures.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6 + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tone of 441 Hz for a second, 300 samples later, cut at the end of the recording and not quite what was sent.
    #[test]
    fn the_delay_of_a_tone_without_its_end_is_not_shown_as_certain() {
        let tone = |first: usize| -> Vec<f32> {
            let sample = |n: usize| (n as f32 * 441.0 / 8000.0 * std::f32::consts::TAU).sin() / 2.0;
            std::iter::repeat_n(0.0, first).chain((0..8000 - first).map(sample)).collect()
        };
        let recording = |samples: Vec<f32>| Recording { sample_rate: 8000, channels: vec![samples] };
        let sent = recording(tone(0));
        let shown = |received| as_text(&sent, &compare(&sent, &recording(received)).unwrap());
        let noisy = |(n, sample): (usize, f32)| sample + (n * 7919 % 101) as f32 / 50_000.0;
        let doubtful = shown(tone(300).into_iter().enumerate().map(noisy).collect());
        let row = doubtful.lines().nth(2).unwrap();
        assert_eq!(row.matches('?').count(), 2, "{doubtful}");
        assert!(doubtful.contains("the delay is known only up to multiples of"), "{doubtful}");
        let certain = shown(tone(0));
        assert!(!certain.contains('?') && certain.starts_with("1.0 s compared\n"), "{certain}");
        let half = shown(tone(0)[..4000].to_vec());
        assert!(half.starts_with("0.5 s of 1.0 s compared\n"), "{half}");
    }
}
