//! Why a connection was reset (RFC 4340 section 5.6).

use super::options::Opt;

/// A reset code with its three bytes of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    /// The code.
    pub code: ResetCode,
    /// What belongs to it.
    pub data: [u8; 3],
}

/// The codes of RFC 4340 section 5.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetCode {
    /// No meaningful code, or one that is not known.
    Unspecified,
    /// The normal end.
    Closed,
    /// The sender gave up for lack of progress, or its application did.
    Aborted,
    /// There is no such connection.
    NoConnection,
    /// A valid packet of an unexpected type; its type is the first byte of the data.
    PacketError,
    /// An erroneous option: its type and the first two bytes of its data.
    OptionError,
    /// An option that had to be understood was not: its type and the first two bytes of its data.
    MandatoryError,
    /// Nobody listens at the port.
    ConnectionRefused,
    /// The port serves another service code.
    BadServiceCode,
    /// The server takes no more connections now.
    TooBusy,
    /// The echoed cookie was wrong or missing.
    BadInitCookie,
    /// The peer seems to cheat on congestion control.
    AggressionPenalty,
}

const CODES: [ResetCode; 12] = [
    ResetCode::Unspecified,
    ResetCode::Closed,
    ResetCode::Aborted,
    ResetCode::NoConnection,
    ResetCode::PacketError,
    ResetCode::OptionError,
    ResetCode::MandatoryError,
    ResetCode::ConnectionRefused,
    ResetCode::BadServiceCode,
    ResetCode::TooBusy,
    ResetCode::BadInitCookie,
    ResetCode::AggressionPenalty,
];

impl ResetCode {
    /// The code that a number stands for; reserved and unknown ones are [`ResetCode::Unspecified`].
    pub fn of_number(number: u8) -> ResetCode {
        CODES.get(usize::from(number)).copied().unwrap_or(ResetCode::Unspecified)
    }
}

impl Reset {
    pub(super) const fn plain(code: ResetCode) -> Reset {
        Reset { code, data: [0; 3] }
    }

    pub(super) const fn packet_error(kind: u8) -> Reset {
        Reset { code: ResetCode::PacketError, data: [kind, 0, 0] }
    }

    pub(super) fn option_error(option: &Opt<'_>) -> Reset {
        Reset { code: ResetCode::OptionError, data: first_bytes(option) }
    }

    pub(super) fn mandatory_error(option: &Opt<'_>) -> Reset {
        Reset { code: ResetCode::MandatoryError, data: first_bytes(option) }
    }
}

/// An option's type and the first two bytes of its data, or zeros.
fn first_bytes(option: &Opt<'_>) -> [u8; 3] {
    let data = match *option {
        Opt::Feature { number, values, .. } => [number, values.first().copied().unwrap_or(0)],
        Opt::InitCookie(data)
        | Opt::AckVector { vector: data, .. }
        | Opt::DataDropped(data)
        | Opt::LossIntervals(data)
        | Opt::DroppedPackets(data)
        | Opt::Unknown { data, .. } => {
            [data.first().copied().unwrap_or(0), data.get(1).copied().unwrap_or(0)]
        }
        _ => [0; 2],
    };
    [option.kind(), data[0], data[1]]
}
