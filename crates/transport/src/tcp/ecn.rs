//! Explicit congestion notification: RFC 3168's, DCTCP's exact echo of each mark (RFC 8257), and accurate feedback (RFC 9768).

use trunkline_core::Ecn as Codepoint;

use super::config::{EcnConfig, TcpConfig};
use super::segment::{ACK, AE, CWR, ECE, SYN};

/// What both ends have agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Off,
    /// One bit, repeated until the sender says that it has reacted (RFC 3168).
    Classic,
    /// Marks are counted (RFC 9768).
    Accurate,
}

/// What a mark leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reaction {
    /// So many of the next segments are acknowledged at once.
    pub(super) hurries: u32,
    /// This one is.
    pub(super) acknowledges: bool,
    /// An acknowledgement that waits has to be sent before, with the echo as it was.
    pub(super) sends_delayed: bool,
}

/// The counter begins here, so that a middlebox that clears the bits is found (RFC 9768 section 3.2.1).
const FIRST_COUNT: u32 = 5;

/// The state of both halves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ecn {
    mode: Mode,
    wish: EcnConfig,
    /// The congestion control echoes every mark by itself (DCTCP).
    is_exact: bool,
    is_l4s: bool,
    /// The echo is on.
    echo: bool,
    /// The last segment with data had a mark (DCTCP).
    was_marked: bool,
    /// A packet of the peer was ECN-capable.
    seen: bool,
    /// Packets with marks that came, and those that the peer has reported.
    marked: u32,
    reported: u32,
    /// Marked packets since the last acknowledgement.
    unreported: u32,
    /// The field of the peer's SYN.
    syn_field: Codepoint,
    /// The next segment is the third of the handshake.
    is_third: bool,
}

impl Ecn {
    pub(super) fn new(config: &TcpConfig) -> Ecn {
        let kind = config.congestion_control.kind();
        let wish = match config.ecn {
            EcnConfig::Accept if kind.is_l4s => EcnConfig::Accurate,
            EcnConfig::Accept if kind.needs_ecn => EcnConfig::On,
            wish => wish,
        };
        Ecn {
            mode: Mode::Off,
            wish,
            is_exact: kind.needs_ecn && !kind.is_l4s,
            is_l4s: kind.is_l4s,
            echo: false,
            was_marked: false,
            seen: false,
            marked: FIRST_COUNT,
            reported: FIRST_COUNT,
            unreported: 0,
            syn_field: Codepoint::NotCapable,
            is_third: false,
        }
    }

    pub(super) fn is_accurate(&self) -> bool {
        self.mode == Mode::Accurate
    }

    /// Bits of the first SYN. A SYN that is repeated asks for nothing: something on the path may drop those that do (RFC 3168
    /// section 6.1.1.1).
    pub(super) fn syn_flags(&self, is_repeated: bool) -> u16 {
        match self.wish {
            EcnConfig::Accurate if !is_repeated => AE | CWR | ECE,
            EcnConfig::On if !is_repeated => CWR | ECE,
            _ => 0,
        }
    }

    /// Takes the bits of a SYN that asks for a connection, and what the answer has to say (RFC 9768 section 3.1.1).
    pub(super) fn take_syn(&mut self, flags: u16, field: Codepoint) {
        self.syn_field = field;
        let asked = flags & (AE | CWR | ECE);
        self.mode = match (self.wish, asked) {
            (EcnConfig::Off, _) | (_, 0) => Mode::Off,
            (EcnConfig::Accurate, bits) if bits == AE | CWR | ECE => Mode::Accurate,
            (_, bits) if bits & (CWR | ECE) == CWR | ECE => Mode::Classic,
            _ => Mode::Off,
        };
    }

    /// Bits of a SYN that acknowledges another.
    pub(super) fn syn_ack_flags(&self) -> u16 {
        match self.mode {
            Mode::Off => 0,
            Mode::Classic => ECE,
            Mode::Accurate => field_bits(self.syn_field),
        }
    }

    /// Takes the bits of a SYN that acknowledges ours (RFC 3168 section 6.1.1, RFC 9768 section 3.1.2).
    pub(super) fn take_syn_ack(&mut self, flags: u16, field: Codepoint, was_repeated: bool) {
        (self.syn_field, self.is_third) = (field, true);
        let bits = flags & (AE | CWR | ECE);
        self.mode = match self.wish {
            _ if was_repeated || bits == 0 => Mode::Off,
            EcnConfig::Accurate if bits != ECE && bits != AE | CWR | ECE => Mode::Accurate,
            EcnConfig::On | EcnConfig::Accurate if bits & ECE != 0 && bits & CWR == 0 => Mode::Classic,
            _ => Mode::Off,
        };
    }

    /// Bits of any other segment. The acknowledgement that completes the handshake says what became of the peer's SYN (RFC 9768
    /// section 3.2.2.1).
    pub(super) fn flags(&self) -> u16 {
        match self.mode {
            Mode::Off => 0,
            Mode::Classic => {
                if self.echo {
                    ECE
                } else {
                    0
                }
            }
            Mode::Accurate if self.is_third => field_bits(self.syn_field),
            Mode::Accurate => count_bits(self.marked),
        }
    }

    /// An acknowledgement of everything was sent.
    pub(super) fn ack_sent(&mut self) {
        self.unreported = 0;
        self.is_third = false;
    }

    /// The field of the IP header. Repetitions and acknowledgements are not ECN-capable, but for congestion controls that
    /// depend on marks.
    pub(super) fn field(&self, is_new_data: bool) -> Codepoint {
        match self.mode {
            Mode::Off => Codepoint::NotCapable,
            // Low-latency queues need a sender that knows how many packets were marked (RFC 9331 section 4.2).
            Mode::Accurate if self.is_l4s => Codepoint::Ect1,
            _ if is_new_data || self.is_exact => Codepoint::Ect0,
            _ => Codepoint::NotCapable,
        }
    }

    /// Whether the window was reduced is said in a segment with new data.
    pub(super) fn says_reduced(&self) -> bool {
        self.mode == Mode::Classic
    }

    /// Takes the field and the bits of a packet after the handshake.
    pub(super) fn take(&mut self, field: Codepoint, flags: u16, has_data: bool) -> Reaction {
        match self.mode {
            Mode::Off => Reaction::default(),
            Mode::Accurate => self.count(field),
            Mode::Classic => self.take_classic(field, flags, has_data),
        }
    }

    /// RFC 9768 section 3.2.2.5: at least every second mark is reported at once.
    fn count(&mut self, field: Codepoint) -> Reaction {
        if field != Codepoint::CongestionExperienced {
            return Reaction::default();
        }
        self.marked = self.marked.wrapping_add(1);
        self.unreported += 1;
        Reaction { acknowledges: self.unreported >= 2, ..Reaction::default() }
    }

    fn take_classic(&mut self, field: Codepoint, flags: u16, has_data: bool) -> Reaction {
        let mut reaction = Reaction::default();
        if flags & CWR != 0 && flags & SYN == 0 {
            self.echo &= self.is_exact;
            // The window may be so small that the sender waits for this.
            reaction.acknowledges = has_data;
        }
        if !has_data {
            return reaction;
        }
        let is_marked = field == Codepoint::CongestionExperienced;
        if self.is_exact {
            reaction.sends_delayed = self.was_marked != is_marked;
            reaction.acknowledges |= self.was_marked != is_marked;
            (self.was_marked, self.echo) = (is_marked, is_marked);
        } else if is_marked && !self.echo {
            self.echo = true;
            reaction.hurries = 2;
        } else if field == Codepoint::NotCapable && self.seen {
            // Probably a repetition.
            reaction.hurries = 2;
        }
        self.seen |= field != Codepoint::NotCapable;
        reaction
    }

    /// The echo of a segment (RFC 3168).
    pub(super) fn has_echo(&self, flags: u16) -> bool {
        self.mode == Mode::Classic && flags & (ECE | SYN) == ECE
    }

    /// How many more marks than before a segment reports that acknowledges so many segments anew (RFC 9768 appendix A.1).
    pub(super) fn take_report(&mut self, flags: u16, acked: u32) -> Option<u32> {
        if !self.is_accurate() || flags & (SYN | ACK) != ACK {
            return None;
        }
        let behind = count_of(flags).wrapping_sub(self.reported) & 7;
        // With eight or more segments the counter may have gone round: as many marks as there can have been.
        let more = if acked >= 8 { acked - (acked.wrapping_sub(behind) & 7) } else { behind };
        self.reported = self.reported.wrapping_add(more);
        Some(more)
    }

    /// Takes the third segment of the handshake: its bits say what became of our SYN.
    pub(super) fn take_third(&mut self, flags: u16) {
        // A mark on the SYN is the first that is counted.
        if self.is_accurate() && count_of(flags) == 0b110 {
            self.reported = FIRST_COUNT + 1;
        }
    }
}

/// The counter in the bits AE, CWR and ECE.
fn count_of(flags: u16) -> u32 {
    u32::from(flags & AE != 0) << 2 | u32::from(flags & CWR != 0) << 1 | u32::from(flags & ECE != 0)
}

fn count_bits(count: u32) -> u16 {
    let bit = |bit: u32, flag: u16| if count & bit != 0 { flag } else { 0 };
    bit(4, AE) | bit(2, CWR) | bit(1, ECE)
}

/// The code of a SYN's field (RFC 9768 table 3).
fn field_bits(field: Codepoint) -> u16 {
    count_bits(match field {
        Codepoint::NotCapable => 0b010,
        Codepoint::Ect1 => 0b011,
        Codepoint::Ect0 => 0b100,
        Codepoint::CongestionExperienced => 0b110,
    })
}
