//! iBoxNet profiles (Ashok et al. 2020): a bottleneck each way, and the traffic of others on it.

use serde::Deserialize;
use trunkline_core::{Bytes, Duration, Rate};

use super::ImportError;
use super::description::{Attachment, Learned, Others, exact};
use crate::Way;

/// The longest profile that is read.
pub const MAX_BYTES: usize = 1 << 20;

/// The most seconds of a series that are taken.
const MAX_SECONDS: usize = 86_400;

/// The packet in which the authors count.
const MTU: u64 = 1500;

#[derive(Deserialize)]
struct Profile {
    measurement_node: Option<String>,
    peer_cloud_server: Option<String>,
    data_flow_direction: Option<String>,
    link_type: Option<String>,
    config: Config,
}

#[derive(Deserialize)]
struct Config {
    uplink: Direction,
    downlink: Direction,
}

#[derive(Deserialize)]
struct Direction {
    /// kbit/s
    bottleneck_bandwidth: f64,
    buffer_size_bytes: Option<u64>,
    buffer_size_packets: Option<u64>,
    /// ms
    propagation_delay: f64,
    /// kbit/s, one a second
    #[serde(default)]
    cross_traffic_pattern: Vec<f64>,
}

impl Direction {
    /// The authors' values for a direction that they have not measured.
    fn is_default(&self) -> bool {
        self.bottleneck_bandwidth == 100_000.0
            && self.propagation_delay == 0.0
            && self.buffer_size_packets == Some(10_000)
            && self.cross_traffic_pattern.is_empty()
    }
}

/// Reads a profile. `name` is the file's.
///
/// # Errors
/// If it is not one, or a value cannot be that of a link.
pub fn read(name: &str, bytes: &[u8]) -> Result<Learned, ImportError> {
    if bytes.len() > MAX_BYTES {
        return Err(ImportError::new(format!(
            "is longer than an iBoxNet profile: more than {}",
            Bytes(MAX_BYTES as u64)
        )));
    }
    let profile: Profile = serde_json::from_slice(bytes).map_err(|error| {
        ImportError::new(format!(
            "is JSON, but not an iBoxNet profile: line {}, column {}: {error}",
            error.line(),
            error.column()
        ))
    })?;
    let mut learned = Learned { from: format!("the iBoxNet profile `{name}`"), ..Learned::default() };
    let said = |of: &Option<String>| of.clone().unwrap_or_else(|| "unknown".to_owned());
    learned.remarks.push(format!(
        "Measured between `{}` (first) and `{}` in the direction `{}`; link type: {}.",
        said(&profile.measurement_node),
        said(&profile.peer_cloud_server),
        said(&profile.data_flow_direction),
        said(&profile.link_type)
    ));
    learned.remarks.push(
        "iBoxNet sees the path through one saturating flow: a standing queue counts as propagation, and a varying rate as \
         traffic of others."
            .to_owned(),
    );
    learned.both.text("medium", "serial", "iBoxNet's model: one bottleneck each way");
    for (way, place, direction) in [
        (Way::Forward, "uplink", &profile.config.uplink),
        (Way::Backward, "downlink", &profile.config.downlink),
    ] {
        add(&mut learned, way, place, direction)?;
    }
    Ok(learned)
}

fn add(learned: &mut Learned, way: Way, place: &str, direction: &Direction) -> Result<(), ImportError> {
    let wrong = |key: &str, value: f64, expected: &str| {
        ImportError::new(format!("has an error in config.{place}.{key}: expected {expected}, not {value}"))
    };
    let kbits = direction.bottleneck_bandwidth;
    if !(0.001..=1e9).contains(&kbits) {
        return Err(wrong("bottleneck_bandwidth", kbits, "a rate in kbit/s"));
    }
    let ms = direction.propagation_delay;
    if !(0.0..=3_600_000.0).contains(&ms) {
        return Err(wrong("propagation_delay", ms, "a delay in milliseconds"));
    }
    // The largest limit of a queue.
    if let Some(bytes) = direction.buffer_size_bytes.filter(|bytes| *bytes > 1 << 40) {
        return Err(wrong("buffer_size_bytes", bytes as f64, "a size in bytes"));
    }
    if let Some(packets) = direction.buffer_size_packets.filter(|packets| *packets > 1 << 30) {
        return Err(wrong("buffer_size_packets", packets as f64, "a number of packets"));
    }
    let series = &direction.cross_traffic_pattern;
    if let Some((at, other)) = series.iter().enumerate().find(|(_, kbits)| !(0.0..=1e8).contains(*kbits)) {
        return Err(wrong(&format!("cross_traffic_pattern[{at}]"), *other, "a rate in kbit/s"));
    }
    if series.len() > MAX_SECONDS {
        return Err(wrong("cross_traffic_pattern", series.len() as f64, "at most 86400 entries"));
    }
    let is_default = direction.is_default();
    let assumed = if is_default { "; a placeholder, not measured: iBoxNet's default" } else { "" };
    let side = learned.side(way);
    let rate = Rate::from_bits_per_second((kbits * 1e3).round() as u64);
    side.text("rate", exact(rate), format!("largest receive rate, {rate}{assumed}"));
    let delay = Duration::from_secs_f64(ms / 1e3);
    side.text("delay", delay, format!("smallest one-way delay{assumed}"));
    let packets = direction.buffer_size_packets;
    match (direction.buffer_size_bytes, packets) {
        (Some(bytes), _) if bytes >= MTU => {
            let at_rate = rate.time_for(Bytes(bytes));
            let by_packets = packets.map_or(String::new(), |n| format!(", or {n} packets"));
            side.toml(
                "queue",
                format!("{{ kind = \"fifo\", limit = \"{bytes} B\" }}"),
                format!("largest minus smallest delay, {at_rate} at the rate{by_packets}{assumed}; the discipline is iBoxNet's assumption"),
            );
        }
        (None, Some(packets)) if packets >= 1 => side.toml(
            "queue",
            format!("{{ kind = \"fifo\", limit = \"{packets} packets\" }}"),
            format!("largest minus smallest delay{assumed}; the discipline is iBoxNet's assumption"),
        ),
        (bytes, _) => {
            side.toml(
                "queue",
                "{ kind = \"fifo\", limit = \"1 packets\" }",
                "the profile's buffer is smaller than a packet; one packet is the smallest queue",
            );
            let bytes = bytes.unwrap_or_default();
            learned.warnings.push(format!(
                "The {place} has a buffer of {bytes} B, less than a packet: one packet is taken."
            ));
        }
    }
    let side = learned.side(way);
    side.unknown("loss", "iBoxNet has no random loss; all losses are the queue's");
    side.unknown("jitter, reorder, duplicate", "not in iBoxNet's model");
    others(learned, way, place, rate, series);
    Ok(())
}

/// The traffic of others, unless it cannot be true.
fn others(learned: &mut Learned, way: Way, place: &str, rate: Rate, series: &[f64]) {
    if series.iter().all(|kbits| *kbits == 0.0) {
        return;
    }
    let bits: Vec<u64> = series.iter().map(|kbits| (kbits * 1e3).round() as u64).collect();
    let mean = bits.iter().sum::<u64>() / bits.len() as u64;
    if mean > rate.bits_per_second() {
        learned.warnings.push(format!(
            "The traffic of others on the {place} has {} on average, more than the link's {rate}; it is left out, since both \
             cannot be true.",
            Rate::from_bits_per_second(mean)
        ));
        return;
    }
    let above = bits.iter().filter(|bits| **bits > rate.bits_per_second()).count();
    if above > 0 {
        learned.warnings.push(format!(
            "The traffic of others on the {place} exceeds the link's {rate} in {above} of {} seconds: delays and losses then \
             are larger than any flow of the measurement had.",
            bits.len()
        ));
    }
    let mut text = String::from(
        "# seconds, bit/s of messages of 972 B: packets of 1000 B with the headers of IP and UDP\n",
    );
    for (second, bits) in bits.iter().enumerate() {
        text += &format!("{second}, {}\n", bits * 972 / 1000);
    }
    let suffix = match way {
        Way::Forward => "others-there.csv",
        Way::Backward => "others-back.csv",
    };
    let series = Attachment { suffix: suffix.into(), text };
    learned.others.push(Others { way, series, seconds: bits.len() as u64 });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(uplink: &str) -> String {
        format!(
            "{{\"measurement_node\": \"here\", \"config\": {{\"uplink\": {{{uplink}}}, \"downlink\": {{\"bottleneck_bandwidth\": \
             100000, \"buffer_size_bytes\": 15000000, \"buffer_size_packets\": 10000, \"propagation_delay\": 0, \
             \"cross_traffic_pattern\": []}}}}}}"
        )
    }

    fn uplink(kbits: f64, series: &str) -> String {
        profile(&format!(
            "\"bottleneck_bandwidth\": {kbits}, \"buffer_size_bytes\": 11961, \"buffer_size_packets\": 7, \
             \"propagation_delay\": 24, \"cross_traffic_pattern\": {series}"
        ))
    }

    #[test]
    fn a_profile_is_a_serial_link_each_way_and_a_flow_of_others() {
        let learned = read("p.json", uplink(6792.0, "[5582, 0, 974.5]").as_bytes()).unwrap();
        let text = learned.to_toml("p", "today");
        for line in ["rate = \"6792 kbit/s\"", "delay = \"24 ms\"", "limit = \"11961 B\"", "# loss: "] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(
            text.split("[backward]").nth(1).unwrap().contains("not measured: iBoxNet's default"),
            "{text}"
        );
        let [others] = &learned.others[..] else { panic!("{:?}", learned.others) };
        assert_eq!((others.way, others.seconds), (Way::Forward, 3));
        let series = &others.series.text;
        assert_eq!(series.lines().skip(1).collect::<Vec<_>>(), ["0, 5425704", "1, 0", "2, 947214"]);
        let experiment = learned.to_experiment("p").unwrap();
        assert!(
            experiment.contains("p-others-there.csv") && experiment.contains("every = \"3 s\""),
            "{experiment}"
        );
    }

    #[test]
    fn a_series_that_no_link_can_carry_is_left_out() {
        let learned = read("p.json", uplink(1000.0, "[1500, 1400]").as_bytes()).unwrap();
        assert!(learned.others.is_empty());
        assert!(learned.warnings[0].contains("more than the link's 1 Mbit/s"), "{:?}", learned.warnings);
        let learned = read("p.json", uplink(1000.0, "[1500, 200]").as_bytes()).unwrap();
        assert_eq!(learned.others.len(), 1);
        assert!(learned.warnings[0].contains("in 1 of 2 seconds"), "{:?}", learned.warnings);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let problem = |text: &str| read("p.json", text.as_bytes()).unwrap_err().to_string();
        assert!(problem("{").contains("line 1, column 1"));
        assert!(problem("{\"config\": {}}").contains("not an iBoxNet profile"));
        assert!(problem(&uplink(-5.0, "[]")).contains("config.uplink.bottleneck_bandwidth"));
        assert!(problem(&uplink(5.0, "[1, -2]")).contains("config.uplink.cross_traffic_pattern[1]"));
    }
}
