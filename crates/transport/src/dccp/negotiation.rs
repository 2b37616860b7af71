//! Feature negotiation (RFC 4340 section 6).

use trunkline_core::{Duration, Time};

use super::config::{Ccid, DccpConfig};
use super::feature::{FEATURES, List, reconcile};
pub(super) use super::feature::{Feature, Place};
use super::options::{FeatureOption, Opt};
use super::reset::Reset;
use super::seq::Seq;

/// Unsent Confirms: a peer that asks for more at once asks again.
const MOST_CONFIRMS: usize = 24;
const FIRST_RETRANSMISSION: Duration = Duration::from_secs(1);
const LAST_RETRANSMISSION: Duration = Duration::from_secs(64);

/// The values of all features and the negotiations under way.
#[derive(Clone, Debug)]
pub(super) struct Negotiation {
    is_server: bool,
    slots: [[Slot; FEATURES.len()]; 2],
    confirms: Vec<Confirm>,
    /// FGSR: the greatest number of a packet whose feature options were processed.
    received: Option<Seq>,
    /// FGSS: the greatest number of a packet with a new Change.
    sent: Option<Seq>,
    retransmit: Option<(Time, Duration)>,
    /// Changes that have had no answer are to be sent again.
    again: bool,
    /// Whether any feature is not stable.
    unsettled: bool,
}

/// One feature at one place.
#[derive(Clone, Copy, Debug)]
struct Slot {
    value: u64,
    state: State,
    /// What this end accepts, best first.
    preferences: List,
    /// For features that are not negotiable: the value to announce.
    announced: u64,
    mandatory: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Stable,
    /// To be changed; the Change was not sent yet.
    Wanted,
    /// The Change was sent.
    Changing,
}

/// An answer to a Change.
#[derive(Clone, Copy, Debug)]
struct Confirm {
    place: Place,
    number: u8,
    is_empty: bool,
}

impl Negotiation {
    /// Before the handshake, with what `config` wishes for.
    pub(super) fn new(config: &DccpConfig, is_server: bool) -> Negotiation {
        let slots = FEATURES.map(|feature| Slot {
            value: feature.initial(),
            state: State::Stable,
            preferences: List::of(&[0]),
            announced: feature.initial(),
            mandatory: false,
        });
        let mut negotiation = Negotiation {
            is_server,
            slots: [slots; 2],
            confirms: Vec::new(),
            received: None,
            sent: None,
            retransmit: None,
            again: false,
            unsettled: false,
        };
        negotiation.wish(config);
        negotiation
    }

    fn wish(&mut self, config: &DccpConfig) {
        use Feature as F;
        use Place::{Local, Remote};
        const UNWILLING: &[u8] = &[0];
        const WILLING: &[u8] = &[0, 1];
        // Also what to give a peer that asks: where the server decides, its list must begin with what was asked for.
        const WANTING: &[u8] = &[1, 0];
        const INSISTING: &[u8] = &[1];
        let wanting = |wanted: bool, else_: &'static [u8]| if wanted { WANTING } else { else_ };

        let others = Ccid::ALL.into_iter().filter(|&ccid| ccid != config.ccid);
        let ccids = List::collect([config.ccid].into_iter().chain(others).map(|ccid| ccid.number()));
        let is_tcp_like = config.ccid == Ccid::TcpLike;
        for place in [Local, Remote] {
            self.prefer(place, F::Ccid, ccids);
            if is_tcp_like {
                self.prefer_values(place, F::SendAckVector, INSISTING);
            } else {
                self.accept(place, F::SendAckVector, WANTING);
            }
        }
        self.prefer_values(
            Local,
            F::AllowShortSequenceNumbers,
            wanting(config.short_sequence_numbers, UNWILLING),
        );
        self.accept(Remote, F::AllowShortSequenceNumbers, wanting(config.short_sequence_numbers, UNWILLING));
        self.announce(F::SequenceWindow, config.sequence_window);
        self.prefer_values(Local, F::EcnIncapable, if config.ecn { UNWILLING } else { INSISTING });
        self.slot(Local, F::EcnIncapable).mandatory = true;
        self.accept(Remote, F::EcnIncapable, WILLING);
        self.accept(Local, F::SendNdpCount, WANTING);
        self.prefer_values(Remote, F::SendNdpCount, wanting(config.ndp_count, WILLING));
        // At this end any coverage from the configured one on is acceptable, and full coverage always is; of the peer
        // we ask for a minimum that lets our coverage pass.
        let least = config.min_checksum_coverage;
        let acceptable = List::collect((least..=15).filter(|_| least > 0).chain([0]));
        self.slot(Local, F::MinChecksumCoverage).preferences = acceptable;
        let ours = config.checksum_coverage;
        if ours > 0 {
            self.prefer(Remote, F::MinChecksumCoverage, List::collect((1..=ours).rev()));
        } else {
            self.slot(Remote, F::MinChecksumCoverage).preferences = List::collect(0..=15);
        }
        self.accept(Local, F::CheckDataChecksum, WANTING);
        self.prefer_values(
            Remote,
            F::CheckDataChecksum,
            if config.data_checksum { INSISTING } else { WILLING },
        );
        self.slot(Remote, F::CheckDataChecksum).mandatory = true;
        self.accept(Local, F::SendLossEventRate, WANTING);
        self.accept(Remote, F::SendLossEventRate, WILLING);
    }

    /// The value of a feature.
    pub(super) fn value(&self, place: Place, feature: Feature) -> u64 {
        self.slots[place as usize][feature.index()].value
    }

    /// Whether a feature that is on or off is on.
    pub(super) fn is_on(&self, place: Place, feature: Feature) -> bool {
        self.value(place, feature) == 1
    }

    /// The congestion control of the half-connection whose sender is there.
    pub(super) fn ccid(&self, place: Place) -> Ccid {
        Ccid::of_number(self.value(place, Feature::Ccid))
    }

    /// Announces a new value of a feature that is not negotiable, unless the last one is still under way.
    pub(super) fn announce(&mut self, feature: Feature, value: u64) {
        let slot = self.slot(Place::Local, feature);
        if slot.state == State::Stable && slot.value != value {
            slot.announced = value;
            slot.state = State::Wanted;
            self.unsettled = true;
        }
    }

    /// Demands that a feature be turned on, unless that is under way: a peer that cannot ends the connection.
    pub(super) fn insist(&mut self, place: Place, feature: Feature) {
        if self.slot(place, feature).state == State::Stable {
            self.slot(place, feature).mandatory = true;
            self.prefer_values(place, feature, &[1]);
        }
    }

    /// Whether something is to be said now: a packet must be sent for it if none goes anyway.
    pub(super) fn is_pressing(&self) -> bool {
        !self.confirms.is_empty()
            || self.unsettled && (self.any(State::Wanted) || self.again && self.any(State::Changing))
    }

    /// Appends what is to be said, as far as `room` bytes hold it, to packet `number`. Confirms need a packet with an
    /// acknowledgement number. `repeat` adds every Change that has had no answer.
    pub(super) fn write(
        &mut self,
        now: Time,
        number: Seq,
        has_ack: bool,
        repeat: bool,
        room: usize,
        into: &mut Vec<u8>,
    ) {
        let end = into.len() + room;
        if has_ack {
            let slots = &self.slots;
            let mut fits = true;
            self.confirms.retain(|confirm| {
                fits &= into.len() + confirm.length(slots) <= end;
                if fits {
                    confirm.write(slots, into);
                }
                !fits
            });
        }
        if !self.unsettled {
            return;
        }
        let repeat = repeat || self.again;
        for place in [Place::Local, Place::Remote] {
            for feature in FEATURES {
                let slot = &mut self.slots[place as usize][feature.index()];
                let due = slot.state == State::Wanted || repeat && slot.state == State::Changing;
                if !due || into.len() + slot.change_length(feature) > end {
                    continue;
                }
                slot.write_change(place, feature, into);
                if slot.state == State::Wanted {
                    slot.state = State::Changing;
                    self.sent = Some(number);
                    self.retransmit = Some((now + FIRST_RETRANSMISSION, FIRST_RETRANSMISSION));
                }
            }
        }
        self.again = false;
    }

    /// When unanswered Changes are to be sent again.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        Some(self.retransmit?.0)
    }

    /// Does what is due.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        if let Some((at, interval)) = self.retransmit
            && at <= now
        {
            let interval = (interval * 2).min(LAST_RETRANSMISSION);
            self.again = self.any(State::Changing);
            self.unsettled = self.again || self.any(State::Wanted);
            self.retransmit = self.again.then(|| (now + interval, interval));
        }
    }

    /// Takes an option of packet `number`, which acknowledges `ack`.
    ///
    /// # Errors
    /// With the reset that it demands.
    pub(super) fn receive(
        &mut self,
        number: Seq,
        ack: Option<Seq>,
        option: FeatureOption,
        feature_number: u8,
        values: &[u8],
        mandatory: bool,
    ) -> Result<(), Reset> {
        let is_change = matches!(option, FeatureOption::ChangeL | FeatureOption::ChangeR);
        let place = match option {
            FeatureOption::ChangeL | FeatureOption::ConfirmL => Place::Remote,
            FeatureOption::ChangeR | FeatureOption::ConfirmR => Place::Local,
        };
        let whole = Opt::Feature { option, number: feature_number, values };
        let is_old = self.received.is_some_and(|last| !number.is_after(last));
        if is_old {
            return Ok(());
        }
        let Some(feature) = self.known(place, feature_number) else {
            return if is_change { self.refuse(place, feature_number, mandatory, whole) } else { Ok(()) };
        };
        if is_change {
            if !self.change(place, feature, values, mandatory) {
                return self.refuse(place, feature_number, mandatory, whole);
            }
            self.confirm(Confirm { place, number: feature_number, is_empty: false });
            return Ok(());
        }
        let is_current = ack.is_some_and(|ack| self.sent.is_some_and(|sent| !sent.is_after(ack)));
        if !is_current || self.slot(place, feature).state != State::Changing {
            return Ok(());
        }
        self.confirmed(place, feature, values).ok_or_else(|| Reset::option_error(&whole))
    }

    /// All options of packet `number` have been taken, of which some were of features.
    pub(super) fn processed(&mut self, number: Seq) {
        if self.received.is_none_or(|last| number.is_after(last)) {
            self.received = Some(number);
        }
        let waits = self.any(State::Changing);
        self.unsettled = waits || self.any(State::Wanted);
        self.retransmit = self.retransmit.filter(|_| waits);
    }

    /// Takes a Change; false if its value is invalid.
    fn change(&mut self, place: Place, feature: Feature, values: &[u8], mandatory: bool) -> bool {
        let is_server = self.is_server;
        let slot = self.slot(place, feature);
        if feature.is_negotiable() {
            if values.is_empty() {
                return false;
            }
            match reconcile(is_server, &slot.preferences, values) {
                Some(value) => slot.value = value,
                None if mandatory => return false,
                None => {}
            }
            slot.state = State::Stable;
            return true;
        }
        match feature.announced(values) {
            Some(value) if place == Place::Remote => {
                slot.value = value;
                true
            }
            _ => false,
        }
    }

    /// Takes the Confirm of a Change of ours; `None` if it is wrong.
    fn confirmed(&mut self, place: Place, feature: Feature, values: &[u8]) -> Option<()> {
        let is_server = self.is_server;
        let slot = self.slot(place, feature);
        if values.is_empty() {
            // The peer does not know it: the value stays. Some it must know.
            slot.state = State::Stable;
            let required = matches!(
                feature,
                Feature::Ccid | Feature::AllowShortSequenceNumbers | Feature::SequenceWindow
            );
            return (!required && !slot.mandatory).then_some(());
        }
        let value = if feature.is_negotiable() {
            let (&value, list) = values.split_first()?;
            let expected = reconcile(is_server, &slot.preferences, list).unwrap_or(slot.value);
            Some(u64::from(value)).filter(|&value| value == expected)?
        } else {
            feature.announced(values).filter(|&value| value == slot.announced)?
        };
        slot.value = value;
        slot.state = State::Stable;
        Some(())
    }

    fn refuse(&mut self, place: Place, number: u8, mandatory: bool, whole: Opt<'_>) -> Result<(), Reset> {
        if mandatory {
            return Err(Reset::mandatory_error(&whole));
        }
        self.confirm(Confirm { place, number, is_empty: true });
        Ok(())
    }

    fn confirm(&mut self, confirm: Confirm) {
        self.confirms.retain(|other| (other.place, other.number) != (confirm.place, confirm.number));
        if self.confirms.len() < MOST_CONFIRMS {
            self.confirms.push(confirm);
        }
    }

    /// The feature of that number, if this end knows it under the present congestion control.
    fn known(&self, place: Place, number: u8) -> Option<Feature> {
        let feature = FEATURES.into_iter().find(|&feature| feature as u8 == number)?;
        // It is at the receiver of a half-connection, so the sender is at the other end.
        let sender = if place == Place::Local { Place::Remote } else { Place::Local };
        let is_known = feature != Feature::SendLossEventRate || self.ccid(sender) != Ccid::TcpLike;
        is_known.then_some(feature)
    }

    fn accept(&mut self, place: Place, feature: Feature, values: &[u8]) {
        self.slot(place, feature).preferences = List::of(values);
    }

    fn prefer_values(&mut self, place: Place, feature: Feature, values: &[u8]) {
        self.prefer(place, feature, List::of(values));
    }

    /// Sets a list of preferences, and wants a change if the best is not the value already.
    fn prefer(&mut self, place: Place, feature: Feature, list: List) {
        let slot = self.slot(place, feature);
        slot.preferences = list;
        if u64::from(list.as_slice()[0]) != slot.value {
            slot.state = State::Wanted;
            self.unsettled = true;
        }
    }

    fn slot(&mut self, place: Place, feature: Feature) -> &mut Slot {
        &mut self.slots[place as usize][feature.index()]
    }

    fn any(&self, state: State) -> bool {
        self.slots.iter().flatten().any(|slot| slot.state == state)
    }
}

impl Slot {
    fn change_length(&self, feature: Feature) -> usize {
        let values =
            if feature.is_negotiable() { self.preferences.as_slice().len() } else { feature.width() };
        usize::from(self.mandatory) + 3 + values
    }

    fn write_change(&self, place: Place, feature: Feature, into: &mut Vec<u8>) {
        if self.mandatory {
            Opt::Mandatory.write(into);
        }
        let option = if place == Place::Local { FeatureOption::ChangeL } else { FeatureOption::ChangeR };
        write_option(option, feature as u8, into, |into| {
            if feature.is_negotiable() {
                into.extend_from_slice(self.preferences.as_slice());
            } else {
                feature.write_value(self.announced, into);
            }
        });
    }
}

impl Confirm {
    /// At most.
    fn length(&self, slots: &[[Slot; FEATURES.len()]; 2]) -> usize {
        match FEATURES.into_iter().find(|&feature| feature as u8 == self.number) {
            Some(feature) if !self.is_empty => {
                3 + slots[self.place as usize][feature.index()].preferences.as_slice().len() + feature.width()
            }
            _ => 3,
        }
    }

    fn write(&self, slots: &[[Slot; FEATURES.len()]; 2], into: &mut Vec<u8>) {
        let option =
            if self.place == Place::Local { FeatureOption::ConfirmL } else { FeatureOption::ConfirmR };
        write_option(option, self.number, into, |into| {
            let feature = FEATURES.into_iter().find(|&feature| feature as u8 == self.number);
            if let Some(feature) = feature.filter(|_| !self.is_empty) {
                let slot = &slots[self.place as usize][feature.index()];
                feature.write_value(slot.value, into);
                if feature.is_negotiable() {
                    into.extend_from_slice(slot.preferences.as_slice());
                }
            }
        });
    }
}

fn write_option(option: FeatureOption, number: u8, into: &mut Vec<u8>, values: impl FnOnce(&mut Vec<u8>)) {
    let start = into.len();
    Opt::Feature { option, number, values: &[] }.write(into);
    values(into);
    into[start + 1] = (into.len() - start) as u8;
}
