//! The listening side of pairing: a code that is valid for a while, once, for a few tries.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use trunkline_core::Duration;

use super::code::PairingCode;
use super::proof::{self, Side};
use crate::connection::{Channel, Connection};
use crate::error::{PeerError, Refusal, RefusalKind};
use crate::files;
use crate::fingerprint::Fingerprint;
use crate::message::{Enrolment, Reply};
use crate::peers::{Peer, Peers, check_name};
use crate::service::Service;
use crate::wire::printable;

/// The listening side of pairing. The code lies in the file `pairing` (0600) of a folder, so that one process can make it
/// and another one, which listens, answers to it.
#[derive(Clone, Debug)]
pub struct Pairing {
    service: &'static Service,
    folder: PathBuf,
}

const FILE: &str = "pairing";
const LOCK: &str = "pairing.lock";

impl Pairing {
    /// How long a code is valid.
    pub const VALID: SignedDuration = SignedDuration::from_mins(10);

    /// How many wrong tries make it void.
    pub const TRIES: u32 = 5;

    /// The pairing of a service that keeps its state in this folder, which is made if there is none.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn open(service: &'static Service, folder: &Path) -> Result<Pairing, PeerError> {
        files::make_folder(folder)?;
        Ok(Pairing { service, folder: folder.to_owned() })
    }

    /// Makes a code for the host with this key, valid for ten minutes from `now`; the one before is void. With a name, only
    /// a peer of this name can use it.
    ///
    /// # Errors
    /// If nobody can have that name, or the code cannot be written down.
    pub fn begin(
        &self,
        agent: &Fingerprint,
        name: Option<&str>,
        now: Timestamp,
    ) -> Result<PairingCode, PeerError> {
        name.map_or(Ok(()), check_name)?;
        let code = PairingCode::make(agent)?;
        let _lock = self.lock()?;
        self.write(&Pending {
            key: code.key(),
            made: now,
            tries_left: Pairing::TRIES,
            state: State::Open,
            name: name.map(str::to_owned),
        })?;
        Ok(code)
    }

    /// Makes the code void, if there is one.
    ///
    /// # Errors
    /// If its file cannot be removed.
    pub fn cancel(&self) -> Result<(), PeerError> {
        let _lock = self.lock()?;
        let path = self.folder.join(FILE);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(PeerError::file(&path, "removed")(error))
            }
            _ => Ok(()),
        }
    }

    /// Hears the proof of somebody who wants to pair ([`Purpose::Pair`](crate::message::Purpose::Pair), already welcomed),
    /// and keeps them among `peers` if it is right. They are told the outcome, and what of it is new is on disk before.
    ///
    /// # Errors
    /// [`PeerError::Refused`] with what they were told if it is not right; what is wrong here, of which they learn only
    /// that something is; otherwise as a connection fails.
    pub fn admit(
        &self,
        mut connection: Connection,
        peers: &Peers,
        now: Timestamp,
        patience: Duration,
    ) -> Result<Peer, PeerError> {
        let request = connection.expect(patience, "proving that it knows the code")?;
        let material = proof::material(&connection)?;
        match self.judge(&material, request, connection.peer_fingerprint(), peers, now) {
            Ok((peer, reply)) => {
                connection.send(&reply)?;
                Ok(peer)
            }
            Err(denied) => {
                let who = connection.who().to_owned();
                let refusal = denied.refusal();
                // That the other end has left already changes nothing here.
                let _ = connection.refuse(refusal.clone());
                Err(denied.error(&who, refusal))
            }
        }
    }

    /// As [`admit`](Pairing::admit), for a request that has come over a channel.
    ///
    /// # Errors
    /// As there.
    pub fn admit_on(
        &self,
        channel: &mut Channel,
        request: Enrolment,
        fingerprint: Fingerprint,
        peers: &Peers,
        now: Timestamp,
    ) -> Result<Peer, PeerError> {
        let material = channel.export(proof::LABEL)?;
        match self.judge(&material, request, fingerprint, peers, now) {
            Ok((peer, reply)) => {
                channel.send(&reply)?;
                Ok(peer)
            }
            Err(denied) => {
                let refusal = denied.refusal();
                // That the other end has left already changes nothing here.
                let _ = channel.refuse(refusal.clone());
                Err(denied.error(channel.who(), refusal))
            }
        }
    }

    /// Judges the request of a peer that holds the key of this fingerprint, over a connection with this material, and keeps
    /// the peer among `peers` if its proof is right. The reply is for the peer; what of it is new is on disk before.
    ///
    /// # Errors
    /// The reason.
    fn judge(
        &self,
        material: &[u8; 32],
        Enrolment::Pair { proof, name }: Enrolment,
        fingerprint: Fingerprint,
        peers: &Peers,
        now: Timestamp,
    ) -> Result<(Peer, Reply), Denied> {
        let name = name.chars().take(80).collect();
        let peer = Peer { name, fingerprint, address: None, enrolled: now };
        let (peer, proof) = self.decide(material, &proof, peer, peers)?;
        Ok((peer, Reply::Paired { proof }))
    }

    /// The peer under the name that it has here, and this end's own proof; or why not.
    fn decide(
        &self,
        material: &[u8; 32],
        proof: &[u8],
        peer: Peer,
        peers: &Peers,
    ) -> Result<(Peer, Vec<u8>), Denied> {
        let unable = |error| Denied::Unable { error, log: self.service.log };
        let _lock = self.lock().map_err(unable)?;
        let Some(mut pending) = self.read().map_err(unable)? else {
            return Err(no_code(self.service).into());
        };
        let (key, before) = (pending.key, pending.clone());
        let verdict = pending.judge(
            self.service,
            proof::is_right(&key, Side::Connecting, material, &peer.name, proof),
            &peer,
        );
        let verdict = verdict.map_err(Denied::from).and_then(|()| {
            let named = peers.with_free_name(&peer).map_err(|error| match error {
                PeerError::Name { .. } => Refusal::new(RefusalKind::Name, error.to_string()).into(),
                error => unable(error),
            })?;
            pending.state = State::Used;
            Ok(named)
        });
        // Who may ask as often as they like has nothing written to the disk by it.
        if pending != before {
            self.write(&pending).map_err(unable)?;
        }
        let named = verdict?;
        peers.add(&named).map_err(unable)?;
        Ok((named, proof::make(&key, Side::Listening, material, &peer.name)))
    }

    /// Only one process or thread at a time changes the code.
    fn lock(&self) -> Result<File, PeerError> {
        let path = self.folder.join(LOCK);
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        file.and_then(|file| file.lock().map(|()| file)).map_err(PeerError::file(&path, "locked"))
    }

    pub(super) fn read(&self) -> Result<Option<Pending>, PeerError> {
        let path = self.folder.join(FILE);
        let Some(text) = files::read(&path)? else { return Ok(None) };
        files::require_private(&path)?;
        toml::from_str(&text).map(Some).map_err(|error| PeerError::Damaged {
            path,
            reason: error.message().to_owned(),
            advice: format!("delete it and make a new code with {}", self.service.pair),
        })
    }

    fn write(&self, pending: &Pending) -> Result<(), PeerError> {
        let text = toml::to_string(pending).map_err(|error| PeerError::Cryptography(error.to_string()))?;
        files::write(&self.folder.join(FILE), &text)
    }
}

/// Why somebody is not enrolled.
#[derive(Debug)]
enum Denied {
    /// The request is refused.
    Refused(Refusal),
    /// An error of this host, which strangers do not learn.
    Unable {
        error: PeerError,
        /// The place in which the owner finds it.
        log: &'static str,
    },
}

impl Denied {
    /// What they are told.
    fn refusal(&self) -> Refusal {
        match self {
            Denied::Refused(refusal) => refusal.clone(),
            Denied::Unable { log, .. } => {
                Refusal::new(RefusalKind::Environment, format!("it cannot pair now; {log} says why"))
            }
        }
    }
}

impl Denied {
    /// What this end makes of it.
    fn error(self, who: &str, refusal: Refusal) -> PeerError {
        match self {
            Denied::Refused(_) => PeerError::Refused { who: who.to_owned(), refusal },
            Denied::Unable { error, .. } => error,
        }
    }
}

impl From<Refusal> for Denied {
    fn from(refusal: Refusal) -> Denied {
        Denied::Refused(refusal)
    }
}

/// A code as the agent keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pending {
    /// What is proved; the code itself is not kept.
    #[serde(with = "base32_key")]
    key: [u8; 32],
    made: Timestamp,
    pub(super) tries_left: u32,
    state: State,
    /// Who may use it, if not anybody.
    name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Open,
    Used,
    /// By wrong tries.
    Closed,
}

impl Pending {
    /// Whether this peer, whose proof is right or not, may be enrolled. Counts wrong tries.
    fn judge(&mut self, service: &Service, is_right: bool, peer: &Peer) -> Result<(), Refusal> {
        let again = service.pair;
        let refuse = |kind, why: &str| Err(Refusal::new(kind, format!("{why}; make a new one with {again}")));
        if self.state == State::Closed {
            return refuse(RefusalKind::TooManyTries, "the code is void after too many failed attempts");
        }
        let is_valid = self.made <= peer.enrolled && peer.enrolled < self.made + Pairing::VALID;
        match (self.state, is_right) {
            (State::Used, true) => refuse(RefusalKind::CodeUsed, "the code has already been used"),
            (State::Used, false) => Err(no_code(service)),
            _ if !is_valid => refuse(
                RefusalKind::ExpiredCode,
                "the code has expired: it is more than 10 min old (or the clock of that host was set)",
            ),
            (_, false) => {
                self.tries_left = self.tries_left.saturating_sub(1);
                if self.tries_left == 0 {
                    self.state = State::Closed;
                }
                Err(Refusal::new(
                    RefusalKind::WrongCode,
                    match self.tries_left {
                        0 => format!("wrong code, and no attempts left; make a new one with {again}"),
                        left => {
                            format!("this is not the latest code that {again} printed; attempts left: {left}")
                        }
                    },
                ))
            }
            (_, true) => match &self.name {
                Some(name) if *name != peer.name => Err(Refusal::new(
                    RefusalKind::Name,
                    format!("the code is for a peer named `{name}`, not `{}`", printable(&peer.name, 80)),
                )),
                _ => Ok(()),
            },
        }
    }
}

fn no_code(service: &Service) -> Refusal {
    let why = format!("no pairing code is open; make one with {} on that host", service.pair);
    Refusal::new(RefusalKind::NoCode, why)
}

/// A key in a text file.
mod base32_key {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::base32;

    pub(super) fn serialize<S: Serializer>(key: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&base32::write(&base32::symbols(key)))
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(from)?;
        let symbols =
            base32::read(&text).map_err(|c| D::Error::custom(format!("invalid character `{c}` in a key")))?;
        base32::bytes(&symbols).try_into().map_err(|_| D::Error::custom("a key of another length"))
    }
}
