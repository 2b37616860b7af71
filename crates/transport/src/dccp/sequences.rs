//! Which packets belong to the connection (RFC 4340 section 7).

use super::seq::Seq;
use super::wire::Body;

/// The sequence number variables of a connection, named as in RFC 4340 section 7.1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sequences {
    pub(super) iss: Seq,
    pub(super) isr: Seq,
    pub(super) gss: Seq,
    pub(super) gsr: Seq,
    pub(super) gar: Seq,
    /// The first received in OPEN.
    pub(super) osr: Option<Seq>,
    /// As long as nothing older than the initial numbers can be meant.
    young: Young,
}

/// Whether the windows still reach back before the initial numbers.
#[derive(Clone, Copy, Debug)]
struct Young {
    sent: bool,
    received: bool,
}

/// What to do with a packet after its numbers were checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validity {
    Valid,
    /// Answer with a Sync that acknowledges this number, and forget the packet.
    Sync(Seq),
    /// Forget the packet.
    Ignore,
}

/// What validity depends on besides the numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    /// Sequence Window of this end.
    pub(super) local: u64,
    /// Sequence Window of the peer.
    pub(super) remote: u64,
    /// Whether a valid packet has come within the last three round-trip times.
    pub(super) active: bool,
    /// The Sync of this end that has not been answered.
    pub(super) challenge: Option<Seq>,
}

impl Sequences {
    /// Before anything was sent: the first packet gets the number `iss`.
    pub(super) fn new(iss: Seq) -> Sequences {
        Sequences {
            iss,
            isr: Seq::default(),
            gss: iss.minus(1),
            gsr: Seq::default(),
            gar: iss,
            osr: None,
            young: Young { sent: true, received: true },
        }
    }

    /// The number for the next packet that is sent.
    pub(super) fn advance(&mut self) -> Seq {
        self.gss = self.gss.next();
        self.gss
    }

    /// The first packet of the peer has come.
    pub(super) fn begin(&mut self, received: Seq) {
        (self.isr, self.gsr) = (received, received);
        self.young.received = true;
    }

    /// Checks a packet's full numbers as section 7.5.3 says, and moves on if it is valid.
    pub(super) fn check(
        &mut self,
        body: &Body,
        number: Seq,
        ack: Option<Seq>,
        windows: &Windows,
    ) -> Validity {
        let (swl, swh) = self.window(windows.remote);
        let (awl, awh) = self.ack_window(windows.local);
        match body {
            Body::Sync { .. } | Body::SyncAck { .. } => {
                // While packets keep coming there is no need for leniency, except towards the answer to a challenge of
                // our own, whose number nobody can guess.
                let answer =
                    matches!(body, Body::SyncAck { .. }) && ack.is_some() && ack == windows.challenge;
                let high = if windows.active && !answer { swh } else { swl.plus((1 << 47) - 1) };
                if !number.within(swl, high) || !ack.is_some_and(|ack| ack.within(awl, awh)) {
                    return Validity::Ignore;
                }
            }
            Body::CloseReq { .. } | Body::Close { .. } | Body::Reset { .. } => {
                let is_new = number.is_after(self.gsr) && number.within(swl, swh);
                if !is_new || !ack.is_some_and(|ack| ack.within(self.gar, awh)) {
                    let is_reset = matches!(body, Body::Reset { .. });
                    return Validity::Sync(if is_reset { self.gsr } else { number });
                }
            }
            _ => {
                if !number.within(swl, swh) || ack.is_some_and(|ack| !ack.within(awl, awh)) {
                    return Validity::Sync(number);
                }
            }
        }
        if number.is_after(self.gsr) {
            self.gsr = number;
        }
        if let Some(ack) = ack.filter(|ack| !matches!(body, Body::Sync { .. }) && ack.is_after(self.gar)) {
            self.gar = ack;
        }
        Validity::Valid
    }

    /// Whether an acknowledgement number lies in its window: all that can be checked before the peer's numbers are known.
    pub(super) fn acks_us(&mut self, ack: Seq, local_window: u64) -> bool {
        let (awl, awh) = self.ack_window(local_window);
        ack.within(awl, awh)
    }

    /// SWL and SWH.
    fn window(&mut self, width: u64) -> (Seq, Seq) {
        let behind = width / 4;
        self.young.received &= self.gsr.distance(self.isr).unsigned_abs() < behind;
        let low = if self.young.received { self.isr } else { self.gsr.plus(1).minus(behind) };
        (low, self.gsr.plus((3 * width).div_ceil(4)))
    }

    /// AWL and AWH.
    fn ack_window(&mut self, width: u64) -> (Seq, Seq) {
        self.young.sent &= self.gss.distance(self.iss).unsigned_abs() < width;
        let low = if self.young.sent { self.iss } else { self.gss.plus(1).minus(width) };
        (low, self.gss)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trunkline_testkit::cases::cases;

    use super::*;

    const WINDOWS: Windows = Windows { local: 100, remote: 100, active: false, challenge: None };

    /// GSS = 1 and GSR = 10, as in the examples of section 7.5.6.
    fn example(gss: u64, gsr: u64) -> Sequences {
        let mut sequences = Sequences::new(Seq::new(gss));
        sequences.advance();
        sequences.begin(Seq::new(gsr));
        sequences
    }

    fn check(sequences: &mut Sequences, body: Body, number: u64) -> Validity {
        let ack = body.ack().map(Seq::new);
        sequences.check(&body, Seq::new(number), ack, &WINDOWS)
    }

    #[test]
    fn a_burst_of_loss_is_recovered_from_by_sync() {
        let (mut a, mut b) = (example(1, 10), example(10, 1));
        for _ in 2..=101 {
            a.advance();
        }
        assert_eq!(check(&mut b, Body::Data, 101), Validity::Sync(Seq::new(101)));
        let sync = b.advance();
        assert_eq!(sync, Seq::new(11));
        assert_eq!(check(&mut a, Body::Sync { ack: 101 }, 11), Validity::Valid);
        let sync_ack = a.advance();
        assert_eq!(sync_ack, Seq::new(102));
        assert_eq!(check(&mut b, Body::SyncAck { ack: 11 }, 102), Validity::Valid);
        assert_eq!((a.gss, a.gsr), (Seq::new(102), Seq::new(11)));
        assert_eq!((b.gss, b.gsr), (Seq::new(11), Seq::new(102)));
    }

    #[test]
    fn a_blind_attack_is_answered_by_a_sync_that_the_peer_ignores() {
        let (mut a, mut b) = (example(1, 10), example(10, 1));
        assert_eq!(check(&mut b, Body::Data, 1_000_000), Validity::Sync(Seq::new(1_000_000)));
        assert_eq!(check(&mut a, Body::Sync { ack: 1_000_000 }, 11), Validity::Ignore);
        assert_eq!(a.gsr, Seq::new(10));
    }

    #[test]
    fn windows_reach_a_quarter_back_and_three_quarters_forward() {
        let mut sequences = example(1000, 1000);
        for number in [1075, 1150, 1225] {
            assert_eq!(check(&mut sequences, Body::Data, number), Validity::Valid);
        }
        assert_eq!(check(&mut sequences, Body::Data, 1301), Validity::Sync(Seq::new(1301)));
        assert_eq!(check(&mut sequences, Body::Data, 1201), Validity::Valid);
        assert_eq!(check(&mut sequences, Body::Data, 1200), Validity::Sync(Seq::new(1200)));
        assert_eq!(check(&mut sequences, Body::Data, 1300), Validity::Valid);
    }

    #[test]
    fn nothing_before_the_initial_numbers_is_valid() {
        let mut sequences = example(1000, 1000);
        assert_eq!(check(&mut sequences, Body::Data, 999), Validity::Sync(Seq::new(999)));
        assert_eq!(check(&mut sequences, Body::Ack { ack: 999 }, 1001), Validity::Sync(Seq::new(1001)));
        assert_eq!(check(&mut sequences, Body::Ack { ack: 1000 }, 1001), Validity::Valid);
    }

    #[test]
    fn what_ends_a_connection_must_be_new() {
        let mut sequences = example(50, 50);
        for _ in 0..10 {
            sequences.advance();
        }
        assert_eq!(check(&mut sequences, Body::Ack { ack: 55 }, 60), Validity::Valid);
        let close = |ack| Body::Close { ack };
        assert_eq!(check(&mut sequences, close(55), 60), Validity::Sync(Seq::new(60)));
        assert_eq!(check(&mut sequences, close(54), 61), Validity::Sync(Seq::new(61)));
        let reset = Body::Reset { ack: 54, code: 1, data: [0; 3] };
        assert_eq!(check(&mut sequences, reset, 61), Validity::Sync(Seq::new(60)));
        assert_eq!(check(&mut sequences, close(55), 61), Validity::Valid);
    }

    #[test]
    fn an_active_connection_takes_only_near_syncs_and_answers_to_its_own() {
        let mut sequences = example(50, 50);
        let active = Windows { active: true, ..WINDOWS };
        let far = Seq::new(5000);
        let sync = Body::Sync { ack: 50 };
        assert_eq!(sequences.check(&sync, far, Some(Seq::new(50)), &active), Validity::Ignore);
        let answer = Body::SyncAck { ack: 50 };
        assert_eq!(sequences.check(&answer, far, Some(Seq::new(50)), &active), Validity::Ignore);
        let challenged = Windows { challenge: Some(Seq::new(50)), ..active };
        assert_eq!(sequences.check(&answer, far, Some(Seq::new(50)), &challenged), Validity::Valid);
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn numbers_may_wrap_anywhere(start: u64, steps in prop::collection::vec(1u64..75, 1..60)) {
            let mut sequences = Sequences::new(Seq::new(start));
            let mut number = Seq::new(!start);
            sequences.begin(number);
            for step in steps {
                number = number.plus(step);
                sequences.advance();
                let ack = sequences.gss;
                prop_assert_eq!(
                    sequences.check(&Body::Ack { ack: ack.value() }, number, Some(ack), &WINDOWS),
                    Validity::Valid
                );
                prop_assert_eq!((sequences.gsr, sequences.gar), (number, ack));
            }
        }
    }
}
