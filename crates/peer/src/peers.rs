//! Who is known: agents to a controller, controllers to an agent.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::PeerError;
use crate::files;
use crate::fingerprint::Fingerprint;

/// An agent or a controller that is known by its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Its name, also that of its file.
    pub name: String,
    /// Its key.
    #[schema(value_type = String)]
    pub fingerprint: Fingerprint,
    /// Its address at enrolment, if it listens: `host:port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The time of its enrolment, in UTC.
    pub enrolled: Timestamp,
}

/// Known peers: a folder with a TOML file for each. Every question looks at the files, so that what another process adds
/// or removes counts at once.
#[derive(Clone, Debug)]
pub struct Peers {
    folder: PathBuf,
}

const ENDING: &str = "toml";

const ADVICE: &str = "delete it and enrol again";

impl Peers {
    /// The peers of a folder, which is made if there is none.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn open(folder: &Path) -> Result<Peers, PeerError> {
        files::make_folder(folder)?;
        Ok(Peers { folder: folder.to_owned() })
    }

    /// All of them, by name.
    ///
    /// # Errors
    /// If the folder cannot be read, or one of its files is damaged.
    pub fn list(&self) -> Result<Vec<Peer>, PeerError> {
        self.paths()?.iter().filter_map(|path| Peers::read(path).transpose()).collect()
    }

    /// The peer with this key. A damaged file hides nobody else.
    ///
    /// # Errors
    /// If the folder cannot be read, or nobody is found and a file is damaged.
    pub fn find(&self, fingerprint: &Fingerprint) -> Result<Option<Peer>, PeerError> {
        let mut damaged = None;
        for path in self.paths()? {
            match Peers::read(&path) {
                Ok(Some(peer)) if peer.fingerprint == *fingerprint => return Ok(Some(peer)),
                Ok(_) => {}
                Err(error) => damaged = Some(error),
            }
        }
        damaged.map_or(Ok(None), Err)
    }

    /// The peer of this name.
    ///
    /// # Errors
    /// If nobody can have this name, or the file is damaged.
    pub fn named(&self, name: &str) -> Result<Option<Peer>, PeerError> {
        Peers::read(&self.path(name)?)
    }

    /// Whether a peer of this name and key could be kept.
    ///
    /// # Errors
    /// If nobody can have this name, or it belongs to another key.
    pub(crate) fn could_add(&self, peer: &Peer) -> Result<(), PeerError> {
        match self.named(&peer.name)? {
            Some(known) if known.fingerprint != peer.fingerprint => Err(PeerError::DuplicateName {
                name: peer.name.clone(),
                known: known.fingerprint,
                found: peer.fingerprint,
            }),
            _ => Ok(()),
        }
    }

    /// Keeps a peer. A key has one name: the one that it had before is given up.
    ///
    /// # Errors
    /// If nobody can have this name, if it belongs to another key, or if the file cannot be written.
    pub fn add(&self, peer: &Peer) -> Result<(), PeerError> {
        let path = self.path(&peer.name)?;
        let text = toml::to_string(peer).map_err(|error| PeerError::Protocol {
            who: peer.name.clone(),
            reason: format!("it cannot be serialised: {error}"),
        })?;
        if !files::write_new(&path, &text)? {
            self.could_add(peer)?;
            files::write(&path, &text)?;
        }
        for other in self.paths()?.into_iter().filter(|other| *other != path) {
            if let Ok(Some(old)) = Peers::read(&other)
                && old.fingerprint == peer.fingerprint
            {
                fs::remove_file(&other).map_err(PeerError::file(&other, "removed"))?;
            }
        }
        Ok(())
    }

    /// The peer under a name that no other key has here: its own, or that with a number. Two hosts may have the same name.
    ///
    /// # Errors
    /// If nobody can have this name, or the folder cannot be read.
    pub(crate) fn with_free_name(&self, peer: &Peer) -> Result<Peer, PeerError> {
        check_name(&peer.name)?;
        // Leaves room for the number within the longest name.
        let stem: String = peer.name.chars().take(56).collect();
        let numbered = (2u32..).map(|number| format!("{stem}-{number}"));
        let tried = core::iter::once(peer.name.clone()).chain(numbered).map(|name| {
            let named = Peer { name, ..peer.clone() };
            self.could_add(&named).map(|()| named)
        });
        let mut free = tried.filter(|tried| !matches!(tried, Err(PeerError::DuplicateName { .. })));
        free.next().unwrap_or_else(|| self.could_add(peer).map(|()| peer.clone()))
    }

    /// Forgets a peer, also one whose file is damaged.
    ///
    /// # Errors
    /// If nobody of this name is known, or the file cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), PeerError> {
        let path = self.path(name)?;
        match fs::remove_file(&path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(PeerError::Unknown { name: name.to_owned(), folder: self.folder.clone() })
            }
            Err(error) => Err(PeerError::file(&path, "removed")(error)),
        }
    }

    fn path(&self, name: &str) -> Result<PathBuf, PeerError> {
        check_name(name)?;
        Ok(self.folder.join(format!("{name}.{ENDING}")))
    }

    /// The files of peers, by name.
    fn paths(&self) -> Result<Vec<PathBuf>, PeerError> {
        let failed = PeerError::file(&self.folder, "read");
        let entries = fs::read_dir(&self.folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut paths: Vec<_> = entries.map_err(failed)?.into_iter().map(|entry| entry.path()).collect();
        // Hidden ones are being written.
        paths.retain(|path| {
            let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            path.extension().is_some_and(|ending| ending == ENDING) && check_name(name).is_ok()
        });
        // The ending is no part of the name: `ottawa` comes before `ottawa-2`.
        paths.sort_by(|one, other| one.file_stem().cmp(&other.file_stem()));
        Ok(paths)
    }

    fn read(path: &Path) -> Result<Option<Peer>, PeerError> {
        let Some(text) = files::read(path)? else { return Ok(None) };
        let damaged =
            |reason| PeerError::Damaged { path: path.to_owned(), reason, advice: ADVICE.to_owned() };
        let peer: Peer = toml::from_str(&text).map_err(|error| damaged(error.message().to_owned()))?;
        if path.file_stem().is_none_or(|stem| *stem != *peer.name) {
            return Err(damaged(format!("it contains the name `{}`", peer.name)));
        }
        Ok(Some(peer))
    }
}

/// Whether somebody can have this name. Names are those of files, too.
///
/// # Errors
/// If not.
pub fn check_name(name: &str) -> Result<(), PeerError> {
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let holds = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if begins && holds && name.len() <= 64 {
        Ok(())
    } else {
        // It may be another host's idea.
        let name = crate::wire::printable(name, 80);
        Err(PeerError::Name { name })
    }
}
