//! Files below a folder that somebody else can change.
//!
//! A path is looked up anew with every use, and whoever may write to a folder on the way decides where it leads. So a
//! program that may do more than that user must not use paths there. [`Folder`] reads files by descriptor, never outside of
//! the folder (`openat2` with `RESOLVE_BENEATH`; component by component with `O_NOFOLLOW` on systems without it).
//! [`Place`] finds out whose a folder is, by a way that nobody but its owner and root can bend.

mod place;

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags, RawMode, openat};
use rustix::io::Errno;

pub use place::{Owner, Place};

/// A folder whose files are read by their paths within it, and no others, whatever links are in it.
#[derive(Debug)]
pub struct Folder(OwnedFd);

/// Why a file below a folder was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no such file.
    #[error("does not exist")]
    Absent,
    /// The path, or a link on its way, leads out of the folder.
    #[error("is outside the folder")]
    Outside,
    /// A folder, a device, a pipe or a socket.
    #[error("is not a regular file")]
    NotAFile,
    /// More than was allowed.
    #[error("has more than the {most} bytes that are allowed")]
    TooLarge {
        /// The limit, in bytes.
        most: u64,
    },
    /// The system refuses.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl Folder {
    /// Opens the folder that this path leads to now.
    ///
    /// # Errors
    /// If it does not exist, is not a folder, or may not be searched.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Folder(openat(rustix::fs::CWD, path, flags, Mode::empty())?))
    }

    /// Reads a regular file of at most `most` bytes. Never waits for a writer of a pipe.
    ///
    /// # Errors
    /// If it is absent, outside of the folder, not a regular file, larger, or may not be read.
    pub fn read(&self, path: &Path, most: u64) -> Result<Vec<u8>, ReadError> {
        let file = File::from(self.open_file(path)?);
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(ReadError::NotAFile);
        }
        if about.len() > most {
            return Err(ReadError::TooLarge { most });
        }
        let mut bytes = Vec::new();
        // Its length may change meanwhile, and files of the kernel do not tell it.
        file.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most { Err(ReadError::TooLarge { most }) } else { Ok(bytes) }
    }

    fn open_file(&self, path: &Path) -> Result<OwnedFd, ReadError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{ResolveFlags, openat2};
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            match openat2(&self.0, path, flags, Mode::empty(), resolve) {
                // A kernel before 5.6.
                Err(Errno::NOSYS) => {}
                opened => return opened.map_err(refused),
            }
        }
        self.open_by_components(path, flags).map_err(refused)
    }

    /// The portable way: no link is followed, wherever it leads.
    fn open_by_components(&self, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let mut names = path.components().filter(|part| *part != Component::CurDir).peekable();
        let mut folder = self.0.try_clone().map_err(|_| Errno::MFILE)?;
        while let Some(part) = names.next() {
            let Component::Normal(name) = part else { return Err(Errno::XDEV) };
            if names.peek().is_none() {
                return openat(&folder, name, flags | OFlags::NOFOLLOW, Mode::empty());
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            folder = openat(&folder, name, flags, Mode::empty())?;
        }
        Err(Errno::ISDIR)
    }
}

fn refused(error: Errno) -> ReadError {
    match error {
        Errno::NOENT | Errno::NOTDIR => ReadError::Absent,
        // What `openat2` says of a path that leaves the folder, and `O_NOFOLLOW` of a link.
        Errno::XDEV | Errno::LOOP => ReadError::Outside,
        Errno::ISDIR | Errno::NXIO => ReadError::NotAFile,
        error => ReadError::Io(error.into()),
    }
}

fn is_link(mode: RawMode) -> bool {
    FileType::from_raw_mode(mode) == FileType::Symlink
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Ground {
        _home: tempfile::TempDir,
        folder: Folder,
    }

    impl Ground {
        fn new() -> Ground {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join("served");
            std::fs::create_dir_all(path.join("sub")).unwrap();
            std::fs::write(home.path().join("secret"), "no").unwrap();
            std::fs::write(path.join("a"), "yes").unwrap();
            std::fs::write(path.join("sub/b"), "also").unwrap();
            symlink("../secret", path.join("out")).unwrap();
            symlink("sub/b", path.join("in")).unwrap();
            symlink("/etc", path.join("sub/etc")).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, path.join("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
            let folder = Folder::open(&path).unwrap();
            Ground { _home: home, folder }
        }

        fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
            self.folder.read(Path::new(path), 4)
        }
    }

    #[test]
    fn files_below_are_read_and_no_others() {
        let ground = Ground::new();
        assert_eq!(ground.read("a").unwrap(), b"yes");
        assert_eq!(ground.read("./sub/../a").unwrap_or_default(), b"yes");
        assert_eq!(ground.read("sub/b").unwrap(), b"also");
        for outside in ["../secret", "out", "sub/etc/passwd", "/etc/passwd", "sub/../../secret"] {
            assert!(matches!(ground.read(outside), Err(ReadError::Outside)), "{outside}");
        }
        for absent in ["missing", "sub/missing", "a/b"] {
            assert!(matches!(ground.read(absent), Err(ReadError::Absent)), "{absent}");
        }
        for other in ["sub", "pipe", "."] {
            assert!(matches!(ground.read(other), Err(ReadError::NotAFile)), "{other}");
        }
    }

    #[test]
    fn the_portable_way_follows_no_link() {
        let ground = Ground::new();
        let open = |path: &str| {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
            ground.folder.open_by_components(Path::new(path), flags).map_err(refused)
        };
        assert!(open("sub/b").is_ok() && open("./a").is_ok());
        for outside in ["../secret", "out", "in", "/etc/passwd", "sub/../../secret"] {
            assert!(matches!(open(outside), Err(ReadError::Outside)), "{outside}");
        }
        assert!(open("sub/etc/passwd").is_err() && open("").is_err());
    }

    #[test]
    fn what_is_too_large_or_endless_is_refused() {
        let ground = Ground::new();
        std::fs::write(ground._home.path().join("served/large"), "12345").unwrap();
        assert!(matches!(ground.read("large"), Err(ReadError::TooLarge { most: 4 })));
        let devices = Folder::open(Path::new("/dev")).unwrap();
        assert!(matches!(devices.read(Path::new("zero"), 4), Err(ReadError::NotAFile)));
        // It does not say how long it is.
        if let Ok(kernel) = Folder::open(Path::new("/proc/self")) {
            assert!(matches!(kernel.read(Path::new("maps"), 4), Err(ReadError::TooLarge { .. })));
        }
    }

    proptest::proptest! {
        /// Whatever path is asked for: what is read is one of the two files below.
        #[test]
        fn no_path_leads_out(parts in proptest::collection::vec(
            proptest::sample::select(vec!["..", ".", "sub", "in", "out", "a", "b", "etc", "secret", "", "passwd"]), 1..6
        )) {
            let ground = Ground::new();
            let path = parts.join("/");
            if let Ok(bytes) = ground.read(&path) {
                proptest::prop_assert!(bytes == b"yes" || bytes == b"also", "{path}");
            }
        }
    }
}
