//! What can go wrong between two hosts.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};
use trunkline_core::Duration;

use crate::fingerprint::Fingerprint;
use crate::service::Service;
use crate::wire::WireError;

/// A text that is no pairing code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseCodeError {
    /// It holds a character that cannot be in one.
    #[error("a code has only letters and digits, not `{0}`")]
    Character(char),
    /// It is too short or too long.
    #[error("a code has {expected} letters and digits, but this one has {0}", expected = CODE_LENGTH)]
    Length(usize),
    /// The check digit does not fit.
    #[error("the code contains a typing error (its check digit is wrong): compare it again")]
    Check,
}

/// Letters and digits of a pairing code: those of the agent's fingerprint, those of the secret, and the check digit.
pub(crate) const CODE_LENGTH: usize = 33;

/// What can go wrong between two hosts.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// No address can be made of this: the user's to change.
    #[error("`{address}` is not the address of {} {}: {reason}; expected `host:port` or `host`", article(service), service.what)]
    Address {
        /// What should listen there.
        service: &'static Service,
        /// What was given.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The address cannot be listened at: the user's to change.
    #[error("the agent cannot listen on {address}: {error}")]
    Listen {
        /// Where.
        address: String,
        /// What the system said.
        error: io::Error,
    },
    /// Nothing can be sent there.
    #[error("cannot connect to {address}: {error}")]
    Unreachable {
        /// Where.
        address: String,
        /// What the system said.
        error: io::Error,
    },
    /// The host is there, and nothing listens.
    #[error("nothing listens on {address}; is {} running there, on this port?", service.run)]
    NothingListens {
        /// What should listen there.
        service: &'static Service,
        /// Where.
        address: String,
    },
    /// Somebody does not answer.
    #[error("{who} timed out after {patience} while {step}")]
    TimedOut {
        /// Who.
        who: String,
        /// How long we waited.
        patience: Duration,
        /// What was going on.
        step: &'static str,
    },
    /// Somebody has not even shown that they live.
    #[error("{who} has sent nothing for {patience}: the network is interrupted, or the host is down")]
    Silent {
        /// Who.
        who: String,
        /// How long.
        patience: Duration,
    },
    /// The connection ended in the middle.
    #[error("the connection to {who} was lost: {reason}")]
    CutOff {
        /// With whom.
        who: String,
        /// What happened.
        reason: String,
    },
    /// This end has closed the connection.
    #[error("the connection to {who} is closed")]
    Closed {
        /// With whom.
        who: String,
    },
    /// The other end holds another key than expected.
    #[error(
        "{address} presented a different key than the enrolled one ({found} instead of {expected}); this may \
        be a man-in-the-middle attack, or the {} was reinstalled: in that case, run {} and enrol it again",
        service.what, service.forget
    )]
    WrongKey {
        /// What listens there.
        service: &'static Service,
        /// Where.
        address: String,
        /// The key that is known.
        expected: Fingerprint,
        /// The key that answered.
        found: Fingerprint,
    },
    /// The other end is not the one that made the pairing code.
    #[error(
        "this code is not from the {} at {address}, whose key is {found}; check the address, and that the \
        code was printed by {} on that host", service.what, service.pair
    )]
    OtherHost {
        /// What listens there.
        service: &'static Service,
        /// Where.
        address: String,
        /// The key that answered.
        found: Fingerprint,
    },
    /// The other end speaks something else, or an older TLS.
    #[error("{who} does not speak the protocol (TLS 1.3 with a certificate): {reason}")]
    NotSpoken {
        /// Who.
        who: String,
        /// What TLS found.
        reason: String,
    },
    /// The other end speaks another version.
    #[error(
        "{who} runs Trunkline {their_program} (protocol {theirs}), this is {our_program} (protocol {ours}); update {}", if theirs < ours { "the other end" } else { "this one" }
    )]
    Version {
        /// Who.
        who: String,
        /// The protocol of this end.
        ours: u32,
        /// Trunkline's version at this end.
        our_program: String,
        /// The protocol of the other end.
        theirs: u32,
        /// Trunkline's version at the other end.
        their_program: String,
    },
    /// What came is not our protocol.
    #[error("{who} violates the protocol: {reason}")]
    Protocol {
        /// Who.
        who: String,
        /// What is wrong.
        reason: String,
    },
    /// What the other end sends needs more memory than it may have here. The connection can be used on.
    #[error("{who} sent {reason}")]
    Memory {
        /// Who.
        who: String,
        /// What is lacking.
        reason: String,
    },
    /// The other end does not do what it was asked for.
    #[error("{who} refused: {}", refusal.why)]
    Refused {
        /// Who.
        who: String,
        /// Why.
        refusal: Refusal,
    },
    /// A pairing code with a typing error: the user's to change.
    #[error("not a pairing code: {0}")]
    Code(#[from] ParseCodeError),
    /// A peer cannot have this name: the user's to change.
    #[error(
        "invalid name `{name}`: a name has 1 to 64 letters, digits, `.`, `_` or `-`, and starts with a letter \
        or digit"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// The name belongs to another key.
    #[error(
        "the name `{name}` already belongs to the key {known}, but this key is {found}; forget \
        the other key first"
    )]
    DuplicateName {
        /// The name.
        name: String,
        /// The key that has it.
        known: Fingerprint,
        /// The key that wants it.
        found: Fingerprint,
    },
    /// Nobody of this name is known: the user's to change.
    #[error("no peer named `{name}` in {}; its files are named after the peers that it has", folder.display())]
    Unknown {
        /// The name.
        name: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// A file is not what it should be.
    #[error("{} is damaged: {reason}; {advice}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
        /// What to do.
        advice: String,
    },
    /// A file or folder cannot be used.
    #[error("{} cannot be {what}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What was being done: `read`, `written`.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// The cryptography refuses, which no input is known to cause.
    #[error("cannot create a key or certificate: {0}")]
    Cryptography(String),
    /// The system does not let us.
    #[error("{what}: {error}")]
    System {
        /// What was being done.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

impl PeerError {
    /// Whether the user's input is wrong, rather than the environment.
    pub fn is_bad_input(&self) -> bool {
        match self {
            PeerError::Address { .. }
            | PeerError::Code(_)
            | PeerError::Name { .. }
            | PeerError::DuplicateName { .. }
            | PeerError::Unknown { .. }
            | PeerError::OtherHost { .. } => true,
            PeerError::Refused { refusal, .. } => refusal.kind.is_bad_input(),
            _ => false,
        }
    }

    /// The other end has sent something that this end does not understand.
    pub(crate) fn not_understood(who: &str, error: &WireError) -> PeerError {
        PeerError::Protocol { who: who.to_owned(), reason: format!("it sends {error}") }
    }

    /// A message of this end is larger than any may be.
    pub(crate) fn unsendable(error: &WireError) -> PeerError {
        PeerError::Protocol { who: "this end".to_owned(), reason: format!("it cannot send {error}") }
    }

    pub(crate) fn file(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> PeerError {
        move |error| PeerError::File { path: path.to_owned(), what, error }
    }
}

fn article(service: &Service) -> &'static str {
    if service.what.starts_with('a') { "an" } else { "a" }
}

/// Why an agent does not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// For programs.
    pub kind: RefusalKind,
    /// For people: one sentence that can stand alone. What comes from another host holds nothing that a terminal obeys.
    #[serde(deserialize_with = "printable")]
    pub why: String,
}

/// A text of another host, as far as it can be shown.
///
/// # Errors
/// If it is not a text.
pub fn printable<'d, D: Deserializer<'d>>(from: D) -> Result<String, D::Error> {
    Ok(crate::wire::printable(&String::deserialize(from)?, 2_000))
}

impl Refusal {
    /// A refusal of a kind, in one sentence.
    pub fn new(kind: RefusalKind, why: impl Into<String>) -> Refusal {
        Refusal { kind, why: why.into() }
    }
}

/// Why an agent does not do what it was asked for, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// The controller's key is not among those that are enrolled.
    NotEnrolled,
    /// There is no pairing code at the moment.
    NoCode,
    /// The proof does not fit the pairing code.
    WrongCode,
    /// The pairing code was valid once.
    ExpiredCode,
    /// The pairing code has enrolled a controller already.
    CodeUsed,
    /// Wrong codes have closed the pairing.
    TooManyTries,
    /// The controller's name belongs to another key, or cannot be a name.
    Name,
    /// The token is not, or no longer, one that was given out for this.
    Token,
    /// The owner does not let this controller do that.
    Permission,
    /// The owner does not let anybody do that, or somebody else has it now.
    Limit,
    /// There is no such part, or it is not in a state for that.
    Part,
    /// The experiment is wrong, or cannot be measured here.
    Input,
    /// There is no space for what would be recorded.
    DiskFull,
    /// The clock of a host has stepped.
    Clock,
    /// The far end cannot be reached, or refuses.
    FarEnd,
    /// The agent is being stopped: it may be back in a moment.
    Stopping,
    /// Anything else about the host.
    Environment,
    /// What a later version says.
    #[serde(other)]
    Other,
}

impl RefusalKind {
    /// Whether the user's input is wrong, rather than the environment.
    pub fn is_bad_input(self) -> bool {
        matches!(
            self,
            RefusalKind::NoCode
                | RefusalKind::WrongCode
                | RefusalKind::ExpiredCode
                | RefusalKind::CodeUsed
                | RefusalKind::Name
                | RefusalKind::Permission
                | RefusalKind::Limit
                | RefusalKind::Input
        )
    }
}
