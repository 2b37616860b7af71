//! `trunkline listen`

use std::path::Path;

use serde_json::{Value, json};
use trunkline_audio::measure::{Channel, Comparison, Recording, compare};
use trunkline_sound::file::Reader;

use crate::args::Global;
use crate::args::listen::Listen;
use crate::output::{self, Failure};

pub(super) fn listen(global: &Global, arguments: &Listen) -> Result<u8, Failure> {
    let (sent, received) = (read(&arguments.sent)?, read(&arguments.received)?);
    let compared = compare(&sent, &received).map_err(Failure::input)?;
    if global.json {
        output::print_json(&as_json(arguments, &compared));
    } else {
        output::print(as_text(&compared));
    }
    Ok(output::DONE)
}

fn read(path: &Path) -> Result<Recording, Failure> {
    let mut reader = Reader::open(path).map_err(Failure::input)?;
    reader.cut_short().into_iter().for_each(output::warn);
    let mut channels = vec![Vec::new(); usize::from(reader.channels())];
    let mut frames = Vec::new();
    while reader.read(&mut frames).map_err(Failure::input)? {
        for frame in frames.chunks_exact(channels.len().max(1)) {
            channels.iter_mut().zip(frame).for_each(|(channel, sample)| channel.push(*sample));
        }
        frames.clear();
    }
    Ok(Recording { sample_rate: reader.sample_rate(), channels })
}

fn as_text(compared: &Comparison) -> String {
    let alignment = compared.alignment;
    let (delay, word) =
        (alignment.delay.abs() * 1000.0, if alignment.delay < 0.0 { "earlier" } else { "later" });
    let mut lines = vec![format!(
        "{:.1} s compared: {delay:.3} ms {word}, clock {:+.1} ppm, parts up to {:.3} ms beside that",
        alignment.compared,
        alignment.drift,
        alignment.wander * 1000.0
    )];
    let heading =
        "channel|received|gain dB|SNR dB|segmental|spectral dB|noise/mask dB|heard %|altered %|gaps|s|clicks";
    let mut rows = vec![heading.split('|').map(str::to_owned).collect::<Vec<_>>()];
    for (number, channel) in compared.channels.iter().enumerate() {
        let Channel { received, gain, inverted, measures } = *channel;
        rows.push(vec![
            (number + 1).to_string(),
            format!("{}{}", received + 1, if inverted { " inverted" } else { "" }),
            format!("{gain:+.2}"),
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
    lines.push(output::table(&rows, output::screen()));
    lines.push("heard: time in which the difference is loud enough to be noticed; altered: in which it is as loud as the sound".to_owned());
    lines.join("\n")
}

fn as_json(arguments: &Listen, compared: &Comparison) -> Value {
    let alignment = compared.alignment;
    let channels = compared.channels.iter().enumerate().map(|(number, channel)| {
        let Channel { received, gain, inverted, measures } = *channel;
        json!({
            "channel": number + 1,
            "received": received + 1,
            "gain_db": rounded(gain),
            "inverted": inverted,
            "snr_db": rounded(measures.snr),
            "segmental_snr_db": rounded(measures.segmental_snr),
            "log_spectral_distance_db": rounded(measures.log_spectral_distance),
            "noise_to_mask_db": rounded(measures.noise_to_mask),
            "disturbed": rounded(measures.disturbed),
            "altered": rounded(measures.altered),
            "gaps": measures.gaps,
            "gap_time_s": rounded(measures.gap_time),
            "clicks": measures.clicks,
            "click_time_s": rounded(measures.click_time),
        })
    });
    json!({
        "sent": arguments.sent.display().to_string(),
        "received": arguments.received.display().to_string(),
        "compared_s": rounded(alignment.compared),
        "delay_s": (alignment.delay * 1e9).round() / 1e9,
        "drift_ppm": rounded(alignment.drift),
        "wander_s": rounded(alignment.wander),
        "channels": channels.collect::<Vec<_>>(),
    })
}

/// To six places: what lies behind them nobody measures.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6 + 0.0
}
