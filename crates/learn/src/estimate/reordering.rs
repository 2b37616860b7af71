//! Packets that later ones overtook.

use crate::estimate::statistics::median;
use crate::observations::Packet;

/// The share of packets that others overtook, and by how many seconds they were later than the packets around them. `None`
/// if none was.
pub(crate) fn model(packets: &[Packet]) -> Option<(f64, f64)> {
    // A packet without a successor close behind cannot be overtaken by it: only those with one count.
    let (mut overtaken, mut counted) = (Vec::new(), 0u32);
    let arrived: Vec<(u64, i64)> =
        packets.iter().filter_map(|packet| Some((packet.sent.as_nanos(), packet.delay?))).collect();
    for (index, &(sent, delay)) in arrived.iter().enumerate() {
        let after = arrived[index + 1..].iter().take(20).take_while(|(then, _)| then - sent < 1_000_000);
        let received = i128::from(sent) + i128::from(delay);
        let mut others: Vec<f64> = Vec::new();
        let mut earlier = 0;
        for &(then, other) in after {
            others.push(other as f64 / 1e9);
            earlier += u32::from(i128::from(then) + i128::from(other) < received);
        }
        if others.is_empty() {
            continue;
        }
        counted += 1;
        // Overtaken by most of those behind it: it was late, not they.
        if 2 * earlier as usize > others.len() {
            overtaken.push(delay as f64 / 1e9 - median(&others));
        }
    }
    (overtaken.len() >= 3).then(|| (overtaken.len() as f64 / f64::from(counted), median(&overtaken)))
}

#[cfg(test)]
mod tests {
    use trunkline_core::{Seed, Time};

    use super::*;

    #[test]
    fn late_packets_are_found_with_their_lateness() {
        let mut stream = Seed::new(2, 0).stream("late");
        let mut packets = Vec::new();
        for run in 0..300u64 {
            for n in 0..10 {
                let late = if stream.unit() < 0.03 { 8_000_000 } else { 0 };
                let delay = 20_000_000 + n * 100_000 + late;
                packets.push(Packet {
                    sent: Time::from_nanos(run * 200_000_000),
                    bytes: 128,
                    delay: Some(delay),
                });
            }
        }
        let (share, by) = model(&packets).unwrap();
        assert!((0.02..0.04).contains(&share), "{share}");
        assert!((by - 8e-3).abs() < 0.5e-3, "{by}");
        let in_order: Vec<Packet> =
            packets.iter().map(|p| Packet { delay: Some(20_000_000), ..*p }).collect();
        assert_eq!(model(&in_order), None);
    }
}
