//! Folders and files that only their owner may read, written as a whole or not at all.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::PeerError;

/// Makes a folder (0700) where there is none, with those above it.
pub(crate) fn make_folder(folder: &Path) -> Result<(), PeerError> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(PeerError::file(folder, "made"))
}

/// The text of a small file, or `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, PeerError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(PeerError::Damaged {
            path: path.to_owned(),
            reason: "it is not valid UTF-8".to_owned(),
            advice: "restore it from a backup, or move it away and start over".to_owned(),
        }),
        Err(error) => Err(PeerError::file(path, "read")(error)),
    }
}

/// Refuses a secret that others may read.
pub(crate) fn require_private(path: &Path) -> Result<(), PeerError> {
    let mode = fs::metadata(path).map_err(PeerError::file(path, "read"))?.mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(PeerError::Damaged {
        path: path.to_owned(),
        reason: format!("it contains a secret, but other users can read or write it (mode {mode:03o})"),
        advice: "if nobody has read it, run `chmod 600` on it; otherwise move it away and enrol again"
            .to_owned(),
    })
}

/// Writes a file (0600) so that another process, or this one after a crash, finds the old text or the new.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), PeerError> {
    replace(path, text, false).map_err(PeerError::file(path, "written"))
}

/// Writes a file (0600) that is not there yet, as a whole; false if somebody else was first.
pub(crate) fn write_new(path: &Path, text: &str) -> Result<bool, PeerError> {
    match replace(path, text, true) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        done => done.map(|()| true).map_err(PeerError::file(path, "written")),
    }
}

fn replace(path: &Path, text: &str, new: bool) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    name.push(format!(".{}-{count}.new", std::process::id()));
    let beside = path.with_file_name(name);
    let done = write_through(&beside, text).and_then(|()| {
        // A link fails where there is a file; a rename would replace it.
        if new { fs::hard_link(&beside, path) } else { fs::rename(&beside, path) }
    });
    if new || done.is_err() {
        let _ = fs::remove_file(&beside);
    }
    done?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn write_through(path: &Path, text: &str) -> io::Result<()> {
    // One of ours that a crash has left behind.
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn what_is_written_is_private_and_whole() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/b");
        make_folder(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
        let path = folder.join("secret");
        assert_eq!(read(&path).unwrap(), None);
        write(&path, "one").unwrap();
        write(&path, "two").unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some("two"));
        assert_eq!(mode(&path), 0o600);
        require_private(&path).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_new_file_replaces_none() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("key");
        assert!(write_new(&path, "one").unwrap());
        assert!(!write_new(&path, "two").unwrap());
        assert_eq!(read(&path).unwrap().as_deref(), Some("one"));
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_secret_that_others_may_read_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("key");
        write(&path, "one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = require_private(&path).unwrap_err();
        assert!(error.to_string().contains("(mode 640)"), "{error}");
    }
}
