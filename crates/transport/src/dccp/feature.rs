//! The features, their values and how two lists of preferences become one value (RFC 4340 sections 6.3 and 6.4).

use super::config::{MAX_SEQUENCE_WINDOW, MIN_SEQUENCE_WINDOW};

/// The features of RFC 4340 section 6.4 and RFC 4342 section 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feature {
    Ccid = 1,
    AllowShortSequenceNumbers = 2,
    SequenceWindow = 3,
    EcnIncapable = 4,
    AckRatio = 5,
    SendAckVector = 6,
    SendNdpCount = 7,
    MinChecksumCoverage = 8,
    CheckDataChecksum = 9,
    SendLossEventRate = 192,
}

/// Where a feature is: at this end or at the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Local = 0,
    Remote = 1,
}

pub(super) const FEATURES: [Feature; 10] = [
    Feature::Ccid,
    Feature::AllowShortSequenceNumbers,
    Feature::SequenceWindow,
    Feature::EcnIncapable,
    Feature::AckRatio,
    Feature::SendAckVector,
    Feature::SendNdpCount,
    Feature::MinChecksumCoverage,
    Feature::CheckDataChecksum,
    Feature::SendLossEventRate,
];

impl Feature {
    pub(super) const fn initial(self) -> u64 {
        match self {
            Feature::Ccid | Feature::AckRatio => 2,
            Feature::SequenceWindow => 100,
            _ => 0,
        }
    }

    pub(super) fn index(self) -> usize {
        match self {
            Feature::SendLossEventRate => FEATURES.len() - 1,
            other => other as usize - 1,
        }
    }

    /// Whether both ends have a say ("server-priority"); otherwise the feature's end announces its value.
    pub(super) const fn is_negotiable(self) -> bool {
        !matches!(self, Feature::SequenceWindow | Feature::AckRatio)
    }

    /// Bytes of a value.
    pub(super) const fn width(self) -> usize {
        match self {
            Feature::SequenceWindow => 6,
            Feature::AckRatio => 2,
            _ => 1,
        }
    }

    /// The announced value, if it has the right width and range.
    pub(super) fn announced(self, values: &[u8]) -> Option<u64> {
        let value = values.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
        let valid = match self {
            Feature::SequenceWindow => (MIN_SEQUENCE_WINDOW..=MAX_SEQUENCE_WINDOW).contains(&value),
            _ => true,
        };
        (values.len() == self.width() && valid).then_some(value)
    }

    pub(super) fn write_value(self, value: u64, into: &mut Vec<u8>) {
        into.extend_from_slice(&value.to_be_bytes()[8 - self.width()..]);
    }
}

/// A short list of values.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    values: [u8; 16],
    length: usize,
}

/// The first value of the server's list that is in the client's (RFC 4340 section 6.3.1).
pub(super) fn reconcile(is_server: bool, ours: &List, theirs: &[u8]) -> Option<u64> {
    let ours = ours.as_slice();
    let (server, client) = if is_server { (ours, theirs) } else { (theirs, ours) };
    server.iter().find(|value| client.contains(value)).map(|&value| u64::from(value))
}

impl List {
    pub(super) fn of(values: &[u8]) -> List {
        List::collect(values.iter().copied())
    }

    pub(super) fn collect(values: impl Iterator<Item = u8>) -> List {
        let mut list = List { values: [0; 16], length: 0 };
        for (slot, value) in list.values.iter_mut().zip(values) {
            *slot = value;
            list.length += 1;
        }
        list
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.values[..self.length]
    }
}
