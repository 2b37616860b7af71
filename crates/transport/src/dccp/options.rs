//! Options to bytes and back (RFC 4340 section 5.8; the congestion controls' own: RFC 4342 section 8, RFC 5622 section 8).

/// An option. Bytes that are borrowed are the option's data without type and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the sections that the variants name")]
pub enum Opt<'p> {
    /// Makes the next option one that must be understood (section 5.8.2).
    Mandatory,
    /// The receiver has trouble keeping up (section 11.6).
    SlowReceiver,
    /// Change or Confirm of a feature's value (section 6).
    Feature { option: FeatureOption, number: u8, values: &'p [u8] },
    /// To be echoed by the client until the handshake is done (section 8.1.4).
    InitCookie(&'p [u8]),
    /// How many packets without data were sent just before this one (section 7.7).
    NdpCount(u64),
    /// What has arrived, run-length encoded (section 11.4); the nonce is historic (RFC 8311).
    AckVector { nonce: bool, vector: &'p [u8] },
    /// What arrived and did not reach the application (section 11.7).
    DataDropped(&'p [u8]),
    /// In units of 10 us (section 13.1).
    Timestamp(u32),
    /// A timestamp that was received, and how long ago in units of 10 us (section 13.3).
    TimestampEcho { echo: u32, elapsed: u32 },
    /// Since the acknowledged packet arrived, in units of 10 us (section 13.2).
    ElapsedTime(u32),
    /// CRC-32c of the data (section 9.3).
    DataChecksum(u32),
    /// Data packets per loss interval, rounded up (RFC 4342 section 8.5).
    LossEventRate(u32),
    /// Skip length and loss intervals (RFC 4342 section 8.6).
    LossIntervals(&'p [u8]),
    /// Bytes per second (RFC 4342 section 8.3).
    ReceiveRate(u32),
    /// Lost or marked packets per loss interval (RFC 5622 section 8.7).
    DroppedPackets(&'p [u8]),
    /// One that is not known, or whose length is not one that its type may have.
    Unknown { kind: u8, data: &'p [u8] },
}

/// The four options of feature negotiation. L options come from where the feature is, R options from the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of RFC 4340 section 6")]
pub enum FeatureOption {
    ChangeL,
    ConfirmL,
    ChangeR,
    ConfirmR,
}

const FIRST_FEATURE_OPTION: u8 = 32;
const FEATURE_OPTIONS: [FeatureOption; 4] =
    [FeatureOption::ChangeL, FeatureOption::ConfirmL, FeatureOption::ChangeR, FeatureOption::ConfirmR];
/// The longest data that one option can have.
pub(super) const MAX_OPTION_DATA: usize = 253;

impl Opt<'_> {
    /// The Type field.
    pub const fn kind(&self) -> u8 {
        match self {
            Opt::Mandatory => 1,
            Opt::SlowReceiver => 2,
            Opt::Feature { option, .. } => FIRST_FEATURE_OPTION + *option as u8,
            Opt::InitCookie(_) => 36,
            Opt::NdpCount(_) => 37,
            Opt::AckVector { nonce, .. } => 38 + *nonce as u8,
            Opt::DataDropped(_) => 40,
            Opt::Timestamp(_) => 41,
            Opt::TimestampEcho { .. } => 42,
            Opt::ElapsedTime(_) => 43,
            Opt::DataChecksum(_) => 44,
            Opt::LossEventRate(_) => 192,
            Opt::LossIntervals(_) => 193,
            Opt::ReceiveRate(_) => 194,
            Opt::DroppedPackets(_) => 195,
            Opt::Unknown { kind, .. } => *kind,
        }
    }

    /// Appends the option. Data beyond 253 bytes is cut off: senders of long vectors begin another option themselves.
    pub fn write(&self, into: &mut Vec<u8>) {
        let kind = self.kind();
        into.push(kind);
        if kind < FIRST_FEATURE_OPTION {
            return;
        }
        let length = into.len();
        into.push(0);
        match *self {
            Opt::Mandatory | Opt::SlowReceiver => {}
            Opt::Feature { number, values, .. } => {
                into.push(number);
                into.extend_from_slice(values);
            }
            Opt::NdpCount(count) => {
                let bytes = count.to_be_bytes();
                let zeros = (count.leading_zeros() / 8).clamp(2, 7) as usize;
                into.extend_from_slice(&bytes[zeros..]);
            }
            Opt::InitCookie(data)
            | Opt::AckVector { vector: data, .. }
            | Opt::DataDropped(data)
            | Opt::LossIntervals(data)
            | Opt::DroppedPackets(data)
            | Opt::Unknown { data, .. } => into.extend_from_slice(data),
            Opt::Timestamp(value)
            | Opt::DataChecksum(value)
            | Opt::LossEventRate(value)
            | Opt::ReceiveRate(value) => into.extend_from_slice(&value.to_be_bytes()),
            Opt::TimestampEcho { echo, elapsed } => {
                into.extend_from_slice(&echo.to_be_bytes());
                if elapsed > 0 {
                    write_elapsed(elapsed, into);
                }
            }
            Opt::ElapsedTime(elapsed) => write_elapsed(elapsed, into),
        }
        into.truncate(length + 1 + MAX_OPTION_DATA);
        into[length] = (into.len() - length + 1) as u8;
    }
}

/// In the smallest form that holds it.
fn write_elapsed(elapsed: u32, into: &mut Vec<u8>) {
    match u16::try_from(elapsed) {
        Ok(elapsed) => into.extend_from_slice(&elapsed.to_be_bytes()),
        Err(_) => into.extend_from_slice(&elapsed.to_be_bytes()),
    }
}

/// The options of a packet in order, without the padding between them.
#[derive(Clone, Debug)]
pub struct Options<'p>(&'p [u8]);

impl<'p> Options<'p> {
    /// Reads these bytes.
    pub const fn new(bytes: &'p [u8]) -> Options<'p> {
        Options(bytes)
    }
}

impl<'p> Iterator for Options<'p> {
    type Item = Opt<'p>;

    /// An option with a nonsensical length ends the list (RFC 4340 section 5.8).
    fn next(&mut self) -> Option<Opt<'p>> {
        // Mandatory in front of padding is padding (RFC 4340 section 5.8.2).
        while let [0, rest @ ..] | [1, 0, rest @ ..] = self.0 {
            self.0 = rest;
        }
        let (&kind, rest) = self.0.split_first()?;
        if kind < FIRST_FEATURE_OPTION {
            self.0 = rest;
            return Some(match kind {
                1 => Opt::Mandatory,
                2 => Opt::SlowReceiver,
                _ => Opt::Unknown { kind, data: &[] },
            });
        }
        let length = rest.first().map_or(0, |&length| usize::from(length));
        let split = length.checked_sub(1).filter(|&n| n > 0).and_then(|n| rest.split_at_checked(n));
        let Some((option, rest)) = split else {
            self.0 = &[];
            return None;
        };
        self.0 = rest;
        Some(parse(kind, &option[1..]).unwrap_or(Opt::Unknown { kind, data: &option[1..] }))
    }
}

fn parse(kind: u8, data: &[u8]) -> Option<Opt<'_>> {
    Some(match kind {
        32..=35 => {
            let (&number, values) = data.split_first()?;
            let option = FEATURE_OPTIONS[usize::from(kind - FIRST_FEATURE_OPTION)];
            Opt::Feature { option, number, values }
        }
        36 => Opt::InitCookie(data),
        37 if (1..=6).contains(&data.len()) => Opt::NdpCount(number(data)),
        38 | 39 => Opt::AckVector { nonce: kind == 39, vector: data },
        40 => Opt::DataDropped(data),
        41 => Opt::Timestamp(word(data)?),
        42 => {
            let (echo, elapsed) = data.split_at_checked(4)?;
            Opt::TimestampEcho {
                echo: word(echo)?,
                elapsed: if elapsed.is_empty() { 0 } else { time(elapsed)? },
            }
        }
        43 => Opt::ElapsedTime(time(data)?),
        44 => Opt::DataChecksum(word(data)?),
        192 => Opt::LossEventRate(word(data)?),
        193 => Opt::LossIntervals(data),
        194 => Opt::ReceiveRate(word(data)?),
        195 => Opt::DroppedPackets(data),
        _ => return None,
    })
}

fn number(data: &[u8]) -> u64 {
    data.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn word(data: &[u8]) -> Option<u32> {
    (data.len() == 4).then(|| number(data) as u32)
}

fn time(data: &[u8]) -> Option<u32> {
    matches!(data.len(), 2 | 4).then(|| number(data) as u32)
}
