//! Flows that are held back by a window or a send buffer, and by no network.

use serde::{Deserialize, Serialize};
use trunkline_core::{Bytes, Duration, Rate};

/// The most that a conversation may have under way, as the file sets it.
#[derive(Clone, Debug, PartialEq)]
pub struct SendLimit {
    /// The option of the transport that sets it: `window`, `max-window`, `window-scaling` or `send-buffer`.
    pub option: &'static str,
    /// Its value.
    pub bytes: Bytes,
    /// The whole segments in which a window of that size is announced, and the bytes that each carries; `None` where every byte
    /// counts.
    pub segments: Option<(u64, Bytes)>,
    /// Number of conversations, each with that limit.
    pub conversations: u32,
    /// The rate of the slowest link of the path; `None` where that is not known.
    pub narrowest: Option<Rate>,
    /// As much as the path carries, or all paths together of a flow between several hosts; `None` where that is not known.
    pub carries: Option<Rate>,
    /// The largest packet that the path takes; `None` where that is not known.
    pub packet: Option<Bytes>,
    /// As a number of blocks, where the file counts those.
    pub blocks: Option<u64>,
    /// The largest window that the transport can announce: it is without window scaling.
    pub largest: Option<Bytes>,
    /// The option that limits real sockets, and by how much: profiles and options of our engine do not hold there.
    pub on_sockets: Option<(&'static str, Bytes)>,
    /// The least time of an acknowledgement on the way back; `None` where that is not known.
    pub back: Option<Duration>,
    /// The rate of the slowest link of the way back; `None` where that is not known.
    pub narrowest_back: Option<Rate>,
    /// True if what fills the limit takes two round trips: the sender asks for an acknowledgement as it begins to fill it, and again
    /// when it is full.
    pub twice: bool,
    /// Rate control of the transport itself, if it has one.
    pub burst: Option<BurstLimit>,
}

/// Rate control by bursts: so much data in whole packets in every period, which takes as long as a burst at the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstLimit {
    /// The rate.
    pub rate: Rate,
    /// The data of a period.
    pub burst: Bytes,
    /// The most data in a packet; none of which holds more than a burst.
    pub packet: Bytes,
}

/// The limit that held a flow back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitedBy {
    /// The option of the transport: `window`, `max-window`, `window-scaling`, `send-buffer` or `burst`.
    pub option: String,
    /// Its value.
    pub bytes: Bytes,
    /// As a number of blocks, where the file counts those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
    /// The shortest time after which it can be filled again, or half of it where it takes two round trips.
    pub round_trip: Duration,
    /// True if it takes two round trips.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub twice: bool,
    /// As much as that lets through, of all conversations of the flow.
    pub at_most: Rate,
    /// How much it would have to be, at the least, for what was to be sent: the offered load, or all that the path carries of
    /// a source without a pace of its own. `None` where neither is known, or where the file does not set it in bytes.
    pub enough: Option<Bytes>,
    /// The largest window that the transport can announce: it is without window scaling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<Bytes>,
}

/// A limit that drops a flow's packets although nothing else is on the line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutBy {
    /// The key in the file: `link.trunk.queue.limit`.
    pub option: String,
    /// Its value: `20 packets`.
    pub limit: String,
    /// The size of the parts in which the link handles packets, if it does not handle them whole.
    pub chunk: Option<Bytes>,
    /// A size that the flow's packets have at least.
    pub packet: Bytes,
    /// The largest packet that is carried.
    pub largest: Bytes,
}

/// The figures that a flow reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reached {
    pub(crate) user: Rate,
    /// The offered load, of a source with a pace of its own.
    pub(crate) wanted: Option<Rate>,
    /// The smallest latency, and whether that is a round trip.
    pub(crate) fastest: Duration,
    pub(crate) is_round_trip: bool,
    /// The payload of the message that had it.
    pub(crate) message: Bytes,
    /// The propagation delay of the way that the latency measures; `None` where that is not known.
    pub(crate) propagation: Option<Duration>,
}

/// A flow that reaches so much of what its limit lets through is limited by it: messages have headers, and losses and
/// delayed acknowledgements cost something.
const SHARE: f64 = 0.7;

/// A flow that reaches more than this share of what its limit lets through is not held by it: the kernel may allow more than it
/// was asked for.
const BEYOND: f64 = 1.1;

/// A burst that lets through more than this share of its rate does not hold a flow back: the rate does.
const OF_RATE: f64 = 0.95;

/// Where the path is not known, the latency of a message that is a larger part of the limit than this says too little of a
/// packet's.
const PART_OF_LIMIT: u64 = 8;

impl SendLimit {
    /// The limit as the one that held a flow back, if it did.
    pub(crate) fn judge(&self, reached: Reached) -> Option<LimitedBy> {
        self.judge_burst(&reached).or_else(|| self.judge_window(reached))
    }

    /// Rate control as what held a flow back, if it lets through less than its rate because packets do not fill its bursts.
    fn judge_burst(&self, reached: &Reached) -> Option<LimitedBy> {
        let burst = self.burst?;
        let at_most = burst.passes(reached.message) * f64::from(self.conversations);
        let bits = |rate: Rate| rate.bits_per_second() as f64;
        let is_full = at_most > OF_RATE * bits(burst.rate) * f64::from(self.conversations);
        let has_enough = reached.wanted.is_some_and(|wanted| bits(wanted) <= at_most);
        let is_reached = (1.0 / BEYOND..=BEYOND).contains(&(self.had(reached) / at_most));
        (!is_full && !has_enough && is_reached).then(|| LimitedBy {
            option: "burst".to_owned(),
            bytes: burst.burst,
            blocks: None,
            round_trip: burst.rate.time_for(burst.burst),
            twice: false,
            at_most: Rate::from_bits_per_second(at_most as u64),
            enough: Some(Bytes(burst.burst.count().next_multiple_of(burst.whole(reached.message, u64::MAX)))),
            largest: None,
        })
    }

    fn judge_window(&self, reached: Reached) -> Option<LimitedBy> {
        let one_way = self.of_a_packet(&reached)?;
        let back = if reached.is_round_trip { Duration::ZERO } else { self.back.unwrap_or(one_way) };
        let round_trip = one_way + back;
        let bits = |rate: Rate| rate.bits_per_second() as f64;
        // A block holds no more than one message.
        let in_blocks = self.blocks.map(|blocks| Bytes(blocks.saturating_mul(reached.message.count())));
        let bytes = in_blocks.map_or(self.bytes, |most| most.min(self.bytes));
        // The request goes with the first message of a half, which it acknowledges too.
        let of_a_half =
            |bytes: f64| if self.twice { (bytes + reached.message.count() as f64) / 2.0 } else { bytes };
        let per_round_trip = |bytes: Bytes| {
            let bits = of_a_half(bytes.count() as f64) * 8.0;
            bits * f64::from(self.conversations) / round_trip.as_secs_f64()
        };
        let had = self.had(&reached);
        // Windows are rounded by the segments that arrive, so smaller ones leave less of them unused.
        let of_segments =
            self.segments.filter(|(count, each)| had <= BEYOND * per_round_trip(Bytes(each.count() * count)));
        let at_most = per_round_trip(of_segments.map_or(bytes, |(count, each)| Bytes(each.count() * count)));
        let enough_of_it = of_segments.map_or(SHARE, |(count, _)| share_of(count));
        let controlled =
            self.burst.map(|burst| burst.passes(reached.message) * f64::from(self.conversations));
        let is_narrower = |rate: f64| rate <= at_most;
        let path_is_narrower =
            self.carries.map(bits).is_some_and(is_narrower) || controlled.is_some_and(is_narrower);
        let has_enough = reached.wanted.is_some_and(|wanted| bits(wanted) <= SHARE * at_most);
        let share = had / at_most;
        let is_reached = (enough_of_it..=BEYOND).contains(&share);
        if round_trip.is_zero() || path_is_narrower || has_enough || !is_reached {
            return None;
        }
        let target = reached.wanted.or(self.carries).map(bits);
        let enough = target.map(|rate| {
            let halves = if self.twice { 2.0 } else { 1.0 };
            let each = rate / f64::from(self.conversations.max(1)) * round_trip.as_secs_f64() * halves / 8.0;
            // Headers and late acknowledgements take the same part of a larger one.
            Bytes((each / share.min(1.0)).ceil() as u64)
        });
        Some(LimitedBy {
            option: self.option.to_owned(),
            bytes,
            blocks: self.blocks,
            round_trip,
            twice: self.twice,
            at_most: Rate::from_bits_per_second(at_most as u64),
            // What would be enough is more than there is.
            enough: enough.filter(|enough| self.blocks.is_none() && *enough > bytes),
            largest: self.largest,
        })
    }

    /// How long a packet takes at least: as long as the fastest message, or as the path takes for one if the message is
    /// several. `None` if the path is not known and the message is large.
    fn of_a_packet(&self, reached: &Reached) -> Option<Duration> {
        match (self.packet, self.narrowest, reached.propagation) {
            (Some(packet), Some(narrowest), Some(propagation)) if reached.message > packet => {
                let back = Some(self.narrowest_back.unwrap_or(narrowest)).filter(|_| reached.is_round_trip);
                let back = back.map_or(Duration::ZERO, |rate| rate.time_for(packet));
                Some(reached.fastest.min(propagation + narrowest.time_for(packet) + back))
            }
            (Some(_), Some(_), Some(_)) => Some(reached.fastest),
            _ if reached.message.count() * PART_OF_LIMIT > self.bytes.count() => None,
            _ => Some(reached.fastest),
        }
    }

    /// The rate that the flow had, in bit/s. Where a message is sent over several round trips, its throughput does not count the
    /// last one, which may be most of what was carried: then the rate of the fastest one, if that is more.
    fn had(&self, reached: &Reached) -> f64 {
        let user = reached.user.bits_per_second() as f64;
        if reached.message <= self.bytes || reached.is_round_trip {
            return user;
        }
        let of_message = Rate::of(reached.message, reached.fastest).bits_per_second() as f64;
        user.max(of_message * f64::from(self.conversations))
    }
}

impl BurstLimit {
    /// The data of a packet of whole messages, or of a part of a message that is larger, of which a burst holds so much.
    fn whole(&self, message: Bytes, burst: u64) -> u64 {
        let most = self.packet.count().min(burst).max(1);
        let messages = most / message.count().max(1);
        if messages > 0 { messages * message.count().max(1) } else { most }
    }

    /// The rate at which waiting messages of this size pass, in bit/s.
    fn passes(&self, message: Bytes) -> f64 {
        let burst = self.burst.count().max(1);
        let packet = self.whole(message, burst);
        (burst / packet * packet) as f64 / burst as f64 * self.rate.bits_per_second() as f64
    }
}

/// [`SHARE`] of a window of that number of segments: one of them may wait for a delayed acknowledgement, and one may be half empty.
fn share_of(segments: u64) -> f64 {
    if segments > 1 { (1.0 - 1.5 / segments as f64).clamp(0.5, SHARE) } else { SHARE }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: fn(u64) -> Rate = |n| Rate::from_bits_per_second(n * 1_000_000);

    fn window(narrowest: u64) -> SendLimit {
        SendLimit {
            option: "window",
            bytes: Bytes(262_144),
            segments: None,
            conversations: 1,
            narrowest: Some(MBIT(narrowest)),
            carries: Some(MBIT(narrowest)),
            packet: Some(Bytes(1500)),
            blocks: None,
            largest: None,
            on_sockets: None,
            back: Some(Duration::from_millis(15)),
            narrowest_back: Some(MBIT(narrowest)),
            twice: false,
            burst: None,
        }
    }

    fn reached(user: u64, wanted: Option<u64>) -> Reached {
        Reached {
            user: MBIT(user),
            wanted: wanted.map(MBIT),
            fastest: Duration::from_millis(15),
            is_round_trip: false,
            message: Bytes(1400),
            propagation: Some(Duration::from_millis(15)),
        }
    }

    #[test]
    fn a_window_that_is_too_small_for_the_path_is_found() {
        // 256 KiB in 30 ms are 69.9 Mbit/s.
        let limited = window(200).judge(reached(65, Some(74))).unwrap();
        assert_eq!((limited.option.as_str(), limited.bytes), ("window", Bytes(262_144)));
        assert_eq!(limited.round_trip, Duration::from_millis(30));
        assert_eq!(limited.at_most.bits_per_second(), 69_905_066);
        // 74 Mbit/s in 30 ms are 277,500 B, of which 65 of 69.9 would be used.
        assert_eq!(limited.enough, Some(Bytes(298_441)));
        assert_eq!(window(200).judge(reached(65, None)).unwrap().enough, Some(Bytes(806_597)));
    }

    #[test]
    fn a_small_window_lets_through_the_whole_segments_that_are_announced() {
        // 4 KiB in 30 ms would be 1092 kbit/s, but two segments are announced, which are 772 kbit/s.
        let small = SendLimit { bytes: Bytes(4096), segments: Some((2, Bytes(1448))), ..window(20) };
        let with = |user| {
            let user = Rate::from_bits_per_second(user);
            small.judge(Reached { user, ..reached(0, Some(8)) })
        };
        let limited = with(620_000).unwrap();
        assert_eq!((limited.bytes, limited.at_most), (Bytes(4096), Rate::from_bits_per_second(772_266)));
        // Of two segments, one may wait for its acknowledgement, or hold the rest of a message.
        assert!(with(400_000).is_some() && with(380_000).is_none());
        // Smaller segments fill more of the window.
        assert_eq!(with(1_000_000).unwrap().at_most, Rate::from_bits_per_second(1_092_266));
        assert_eq!(with(1_300_000), None);
    }

    #[test]
    fn what_the_network_or_the_source_limits_is_not_blamed_on_a_window() {
        assert_eq!(window(50).judge(reached(49, Some(74))), None, "the path is narrower");
        assert_eq!(window(200).judge(reached(20, None)), None, "something else holds it back");
        assert_eq!(window(200).judge(reached(40, Some(40))), None, "it carries what is wanted");
    }

    #[test]
    fn a_window_that_is_acknowledged_on_request_takes_two_round_trips() {
        // XTP: 64 KiB and a message of 1400 B in 2 x 30 ms, of which 8.9 Mbit/s are left.
        let asked = SendLimit { bytes: Bytes(64 << 10), twice: true, ..window(200) };
        let limited = asked.judge(reached(9, None)).unwrap();
        assert!(limited.twice && limited.at_most == Rate::from_bits_per_second(8_924_800), "{limited:?}");
        let at_once = SendLimit { twice: false, ..asked };
        assert_eq!(at_once.judge(reached(9, None)), None, "it allows 17.5 Mbit/s");
    }

    #[test]
    fn a_burst_that_packets_do_not_fill_is_found_and_no_window_is_blamed() {
        // One message of 1000 B in each period of 1.2 ms, and 64 KiB in 60 ms.
        let burst = BurstLimit { rate: MBIT(10), burst: Bytes(1500), packet: Bytes(1448) };
        let controlled = SendLimit {
            bytes: Bytes(64 << 10),
            burst: Some(burst),
            back: Some(Duration::from_millis(30)),
            ..window(20)
        };
        let reached = |user: u64, wanted, message| Reached {
            user: Rate::from_bits_per_second(user),
            fastest: Duration::from_millis(30),
            propagation: Some(Duration::from_millis(30)),
            message: Bytes(message),
            ..reached(0, wanted)
        };
        let limited = controlled.judge(reached(6_666_000, Some(8), 1000)).unwrap();
        assert_eq!((limited.option.as_str(), limited.bytes), ("burst", Bytes(1500)));
        assert_eq!(limited.round_trip, Duration::from_micros(1200));
        assert_eq!(
            (limited.at_most, limited.enough),
            (Rate::from_bits_per_second(6_666_666), Some(Bytes(2000)))
        );
        assert_eq!(controlled.judge(reached(6_000_000, Some(6), 1000)), None, "it carries what is wanted");
        // Two messages fit into a packet, and three into a burst: the third waits for the next, and for a packet that is not full.
        assert!((burst.passes(Bytes(500)) - 6_666_666.6).abs() < 1.0);
        // Packets of a longer message are full, and the rest of the burst is too small for one.
        assert!((burst.passes(Bytes(8000)) - 9_653_333.3).abs() < 1.0);
        let wide = SendLimit { bytes: Bytes(128 << 10), ..controlled.clone() };
        assert_eq!(wide.judge(reached(9_600_000, None, 8000)), None, "the rate holds it back");
        // A smaller window is what holds it back.
        let small = SendLimit { bytes: Bytes(16 << 10), ..controlled };
        assert_eq!(small.judge(reached(2_000_000, Some(8), 1000)).unwrap().option, "window");
    }

    #[test]
    fn a_round_trip_is_not_doubled() {
        let reached =
            Reached { fastest: Duration::from_millis(30), is_round_trip: true, ..reached(65, None) };
        assert_eq!(window(200).judge(reached).unwrap().round_trip, Duration::from_millis(30));
    }

    #[test]
    fn the_round_trip_is_that_of_a_packet_and_not_of_a_message() {
        // 16 KiB over 20 Mbit/s and 2 x 50 ms; a message of 2 MiB takes 13.75 s, and one is delivered in 20 s.
        let window =
            SendLimit { bytes: Bytes(16 << 10), back: Some(Duration::from_millis(50)), ..window(20) };
        let reached = Reached {
            user: Rate::from_bits_per_second(838_861),
            fastest: Duration::from_millis(13_750),
            message: Bytes(2 << 20),
            propagation: Some(Duration::from_millis(50)),
            ..reached(0, None)
        };
        let limited = window.judge(reached).unwrap();
        assert_eq!(limited.round_trip, Duration::from_micros(100_600));
        assert_eq!(limited.at_most, Rate::from_bits_per_second(1_302_902));
        // 251,500 B, of which as much would be used as of the 16 KiB: 2 MiB in 13.75 s of 1.3 Mbit/s.
        assert_eq!(limited.enough, Some(Bytes(268_555)));
        // Over a network that is not known such a message says nothing of a packet.
        let unknown = SendLimit {
            narrowest: None,
            carries: None,
            packet: None,
            back: None,
            narrowest_back: None,
            ..window
        };
        assert_eq!(unknown.judge(Reached { propagation: None, ..reached }), None);
    }

    /// The answer of a packet of 1500 B takes 12 ms at 1 Mbit/s, after 600 us at 20 Mbit/s.
    #[test]
    fn the_way_back_of_a_round_trip_has_its_own_rate() {
        let window = SendLimit { bytes: Bytes(64 << 10), narrowest_back: Some(MBIT(1)), ..window(20) };
        let reached = Reached {
            user: MBIT(10),
            fastest: Duration::from_millis(500),
            is_round_trip: true,
            message: Bytes(50_000),
            propagation: Some(Duration::from_millis(30)),
            ..reached(0, None)
        };
        assert_eq!(window.judge(reached).unwrap().round_trip, Duration::from_micros(42_600));
    }

    #[test]
    fn a_message_of_more_blocks_than_the_window_holds_takes_several_round_trips_itself() {
        // URP: three blocks of 256 bytes over 1 Mbit/s and 2 x 40 ms; a message of four is delivered after two round trips.
        let blocks = SendLimit {
            bytes: Bytes(768),
            packet: Some(Bytes(262)),
            blocks: Some(3),
            back: Some(Duration::from_millis(40)),
            ..window(1)
        };
        let reached = Reached {
            user: Rate::from_bits_per_second(74_680),
            fastest: Duration::from_micros(124_600),
            message: Bytes(1024),
            propagation: Some(Duration::from_millis(40)),
            ..reached(0, None)
        };
        let limited = blocks.judge(reached).unwrap();
        assert_eq!(limited.round_trip, Duration::from_micros(82_096));
        assert_eq!(limited.at_most, Rate::from_bits_per_second(74_839));
        assert_eq!(limited.enough, None, "the file counts blocks, of which there are at most seven");
    }

    #[test]
    fn a_block_holds_no_more_than_one_message() {
        // URP: three blocks of 80 bytes in 9 ms, where 640 kbit/s are wanted.
        let blocks = SendLimit {
            bytes: Bytes(786),
            packet: Some(Bytes(262)),
            blocks: Some(3),
            back: Some(Duration::from_millis(4)),
            ..window(1)
        };
        let reached = Reached {
            user: Rate::from_bits_per_second(213_000),
            wanted: Some(Rate::from_bits_per_second(640_000)),
            fastest: Duration::from_millis(5),
            message: Bytes(80),
            propagation: Some(Duration::from_millis(4)),
            ..reached(0, None)
        };
        let limited = blocks.judge(reached).unwrap();
        assert_eq!((limited.bytes, limited.blocks), (Bytes(240), Some(3)));
        assert_eq!(limited.at_most, Rate::from_bits_per_second(213_333));
    }
}
