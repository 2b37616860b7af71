//! What a DCCP conversation can be told.

use core::net::IpAddr;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use trunkline_core::Duration;
use trunkline_core::schema::Limit;

/// Options of a DCCP conversation; both ends should be given the same.
#[derive(Clone, Debug, PartialEq)]
pub struct DccpConfig {
    /// What the connection is for (RFC 4340 section 8.1.2): a server refuses other codes than its own.
    pub service_code: u32,
    /// The preferred congestion control, both ways; the others follow in the list of preferences.
    pub ccid: Ccid,
    /// How many messages, or bytes of messages, wait until congestion control lets them out. One is always held.
    pub send_queue: Limit,
    /// What happens to a message for which the send queue has no room.
    pub when_full: WhenFull,
    /// How long a message may wait: older ones are dropped and counted as `expired`. `None` for as long as it takes.
    pub lifetime: Option<Duration>,
    /// Bytes of messages that wait to be received; beyond it they are dropped, counted as `receive-buffer-full` and
    /// reported to the sender (RFC 4340 section 11.7, Drop Code 2).
    pub receive_buffer: usize,
    /// The largest packet at the network layer, in bytes: what the path's MTU allows.
    pub max_packet: usize,
    /// What carries the packets.
    pub encapsulation: Encapsulation,
    /// The addresses of both ends, which the checksum covers where DCCP is carried by IP; those of
    /// [`ipv4_of`](crate::ipv4_of) if absent.
    pub addresses: Option<[IpAddr; 2]>,
    /// What the checksum covers of sent messages (RFC 4340 section 9.2), from 0 to 15: everything if 0, else the first
    /// `4 * (n - 1)` bytes. Everything, too, when the peer wants more than that.
    pub checksum_coverage: u8,
    /// The smallest coverage that is accepted, from 0 to 15 (RFC 4340 section 9.2.1); 0 for full coverage only.
    pub min_checksum_coverage: u8,
    /// Adds a CRC-32c of every message (RFC 4340 section 9.3), by which the peer finds damage that the checksum does
    /// not cover.
    pub data_checksum: bool,
    /// Sends Data, Ack and DataAck with 24-bit numbers where the peer agrees: 4 or 8 bytes less per packet.
    pub short_sequence_numbers: bool,
    /// How many packets may be under way before the ends lose each other (RFC 4340 section 7.5.2), from 32 to 2^46 - 1.
    /// It grows by itself with the sending rate.
    pub sequence_window: u64,
    /// Lets queues mark packets instead of dropping them (RFC 4340 section 12; ECT(0) only, as RFC 8311 has it).
    pub ecn: bool,
    /// Asks the peer to count its packets without data, so that their loss is not taken for the loss of data.
    pub ndp_count: bool,
    /// After how long without any answer, to a request or to data, the peer counts as gone. `None` for never.
    pub timeout: Option<Duration>,
}

impl Default for DccpConfig {
    /// CCID 2, 64 KiB to send and what Linux allows by default to receive, refusing when full, Ethernet's packets,
    /// directly over IP, everything covered by the checksum, ECN, and a minute's patience.
    fn default() -> DccpConfig {
        DccpConfig {
            service_code: 0,
            ccid: Ccid::TcpLike,
            send_queue: Limit::Bytes(trunkline_core::Bytes(64 << 10)),
            when_full: WhenFull::Refuse,
            lifetime: None,
            receive_buffer: 212_992,
            max_packet: 1500,
            encapsulation: Encapsulation::Ip,
            addresses: None,
            checksum_coverage: 0,
            min_checksum_coverage: 0,
            data_checksum: false,
            short_sequence_numbers: false,
            sequence_window: 1000,
            ecn: true,
            ndp_count: true,
            timeout: Some(Duration::from_secs(60)),
        }
    }
}

impl DccpConfig {
    /// The largest message in bytes: what is left of [`max_packet`](DccpConfig::max_packet) beside the headers and the
    /// options that may stand in every packet with data.
    pub const fn max_message(&self) -> usize {
        self.max_packet.saturating_sub(self.encapsulation.overhead() + HEADERS)
    }

    pub(super) fn check(&self, ports: &[u16]) -> Result<(), DccpConfigError> {
        if ports.contains(&0) {
            return Err(DccpConfigError::Port);
        }
        for (key, value) in [
            ("checksum-coverage", self.checksum_coverage),
            ("min-checksum-coverage", self.min_checksum_coverage),
        ] {
            if value > 15 {
                return Err(DccpConfigError::Coverage { key, value });
            }
        }
        if !(MIN_SEQUENCE_WINDOW..=MAX_SEQUENCE_WINDOW).contains(&self.sequence_window) {
            return Err(DccpConfigError::SequenceWindow(self.sequence_window));
        }
        if !(MIN_PACKET..=MAX_PACKET).contains(&self.max_packet) {
            return Err(DccpConfigError::MaxPacket(self.max_packet));
        }
        Ok(())
    }
}

/// What a message leaves free in its packet, in bytes: DataAck's header with long numbers, NDP Count and Data Checksum.
/// Network headers come on top.
pub const HEADERS: usize = 24 + 8 + 8;
/// What IPv4 must carry anywhere (RFC 791) leaves room for every handshake.
const MIN_PACKET: usize = 576;
const MAX_PACKET: usize = 65_535;
/// RFC 4340 section 7.5.2.
pub(super) const MIN_SEQUENCE_WINDOW: u64 = 32;
/// RFC 4340 section 7.5.2.
pub(super) const MAX_SEQUENCE_WINDOW: u64 = (1 << 46) - 1;

/// Congestion control, by its identifier (RFC 4340 section 10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ccid {
    /// CCID 2: a window as TCP's with selective acknowledgements (RFC 4341).
    #[default]
    TcpLike,
    /// CCID 3: TCP-Friendly Rate Control (RFC 4342, RFC 5348): a smooth rate for packets of one size.
    Tfrc,
    /// CCID 4: TFRC for small packets (RFC 5622): a flow of voice gets the bytes per second of a TCP with large ones.
    TfrcSmallPackets,
}

impl Ccid {
    /// All of them.
    pub const ALL: [Ccid; 3] = [Ccid::TcpLike, Ccid::Tfrc, Ccid::TfrcSmallPackets];

    /// The identifier.
    pub const fn number(self) -> u8 {
        match self {
            Ccid::TcpLike => 2,
            Ccid::Tfrc => 3,
            Ccid::TfrcSmallPackets => 4,
        }
    }

    /// The word in an experiment file.
    pub const fn name(self) -> &'static str {
        match self {
            Ccid::TcpLike => "ccid-2",
            Ccid::Tfrc => "ccid-3",
            Ccid::TfrcSmallPackets => "ccid-4",
        }
    }

    pub(super) fn of_number(number: u64) -> Ccid {
        Ccid::ALL.into_iter().find(|ccid| u64::from(ccid.number()) == number).unwrap_or_default()
    }
}

/// What happens to a message for which the send queue has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhenFull {
    /// [`SendError::Full`](crate::SendError::Full): the application waits.
    #[default]
    Refuse,
    /// It is dropped and counted as `dropped-newest`.
    DropNewest,
    /// The oldest messages are dropped until it fits, and counted as `dropped-oldest`.
    DropOldest,
}

impl WhenFull {
    /// All of them.
    pub const ALL: [WhenFull; 3] = [WhenFull::Refuse, WhenFull::DropNewest, WhenFull::DropOldest];

    /// The word in an experiment file.
    pub const fn name(self) -> &'static str {
        match self {
            WhenFull::Refuse => "refuse",
            WhenFull::DropNewest => "drop-newest",
            WhenFull::DropOldest => "drop-oldest",
        }
    }
}

/// What carries DCCP's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encapsulation {
    /// IP, as protocol 33.
    #[default]
    Ip,
    /// UDP (RFC 6773), port 6511 at both ends: the packets that an endpoint writes begin with the UDP header, and its
    /// checksum protects them.
    Udp,
    /// UDP (RFC 6773), by a socket that adds, checks and removes the UDP header.
    UdpPayload,
}

impl Encapsulation {
    /// Bytes of network headers in front of DCCP's.
    pub const fn overhead(self) -> usize {
        match self {
            Encapsulation::Ip => 20,
            Encapsulation::Udp | Encapsulation::UdpPayload => 28,
        }
    }
}

/// A word that names no congestion control or no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not one of {expected}")]
pub struct UnknownWord {
    word: String,
    expected: &'static str,
}

impl FromStr for Ccid {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Ccid, UnknownWord> {
        let unknown = || UnknownWord { word: word.to_owned(), expected: "`ccid-2`, `ccid-3` and `ccid-4`" };
        Ccid::ALL.into_iter().find(|ccid| ccid.name() == word).ok_or_else(unknown)
    }
}

impl FromStr for WhenFull {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<WhenFull, UnknownWord> {
        let expected = "`refuse`, `drop-newest` and `drop-oldest`";
        let unknown = || UnknownWord { word: word.to_owned(), expected };
        WhenFull::ALL.into_iter().find(|policy| policy.name() == word).ok_or_else(unknown)
    }
}

/// Why a configuration is impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DccpConfigError {
    /// A port is 0.
    #[error("a DCCP port is 0; expected 1 to 65,535")]
    Port,
    /// A coverage is beyond its four bits.
    #[error("`{key}` is {value}; expected 0 to 15")]
    Coverage {
        /// Which one.
        key: &'static str,
        /// What was given.
        value: u8,
    },
    /// The sequence window is out of its range.
    #[error("`sequence-window` is {0}; expected 32 to 2^46 - 1")]
    SequenceWindow(u64),
    /// The largest packet is out of its range.
    #[error("the largest DCCP packet is {0} bytes; expected 576 to 65,535")]
    MaxPacket(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_values_are_refused_by_name() {
        let good = DccpConfig::default();
        assert_eq!(good.check(&[1, 65_535]), Ok(()));
        assert_eq!(good.check(&[7, 0]), Err(DccpConfigError::Port));
        let bad = DccpConfig { min_checksum_coverage: 16, ..good.clone() };
        let error = bad.check(&[1]).unwrap_err();
        assert_eq!(error.to_string(), "`min-checksum-coverage` is 16; expected 0 to 15");
        for window in [31, 1 << 46] {
            let bad = DccpConfig { sequence_window: window, ..good.clone() };
            assert_eq!(bad.check(&[1]), Err(DccpConfigError::SequenceWindow(window)));
        }
        let bad = DccpConfig { max_packet: 575, ..good };
        assert_eq!(bad.check(&[1]), Err(DccpConfigError::MaxPacket(575)));
    }

    #[test]
    fn words_name_what_they_say() {
        for ccid in Ccid::ALL {
            assert_eq!((ccid.name().parse(), Ccid::of_number(ccid.number().into())), (Ok(ccid), ccid));
        }
        for policy in WhenFull::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
        }
        let error = "ccid-5".parse::<Ccid>().unwrap_err();
        assert_eq!(error.to_string(), "`ccid-5` is not one of `ccid-2`, `ccid-3` and `ccid-4`");
    }

    #[test]
    fn headers_are_taken_from_the_message() {
        let native = DccpConfig::default();
        let udp = DccpConfig { encapsulation: Encapsulation::Udp, ..DccpConfig::default() };
        assert_eq!([native.max_message(), udp.max_message()], [1440, 1432]);
    }
}
