//! Root's commands in the folder of a service user: whatever that user does to the folder meanwhile, nothing of root's
//! becomes the user's.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests are tests, and say why they skip"
)]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, openat, renameat_with, statat};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use rustix::{process::Gid, process::Uid};
use support::Bench;
use trunkline_io::beneath::{Owner, Place};
use trunkline_testkit::skips::skip;

/// `nobody` and `nogroup` on every Linux.
const SERVICE: u32 = 65534;

/// A folder of the service user, and one of root's that the user would like to have.
struct Ground {
    bench: Bench,
    state: PathBuf,
    victim: PathBuf,
}

impl Ground {
    /// `None`, as a skip, if this process is not root's.
    fn new() -> Option<Ground> {
        if !rustix::process::geteuid().is_root() {
            skip("only root can act for another user");
            return None;
        }
        let bench = Bench::new();
        fs::set_permissions(bench.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        let (state, victim) = (bench.path("state"), bench.path("victim"));
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("secret"), "root's").unwrap();
        fs::set_permissions(victim.join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::create_dir(&state).unwrap();
        let ground = Ground { bench, state, victim };
        ground.give(&ground.state);
        Some(ground)
    }

    fn give(&self, path: &Path) {
        chown(path, Some(SERVICE), Some(SERVICE)).unwrap();
    }

    /// Every file below the victim, and the victim itself, still is root's, and none was added.
    fn assert_untouched(&self) {
        let names: Vec<_> = fs::read_dir(&self.victim).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["secret"]);
        for path in [self.victim.clone(), self.victim.join("secret")] {
            let meta = fs::symlink_metadata(&path).unwrap();
            assert_eq!((meta.uid(), meta.gid()), (0, 0), "{}", path.display());
        }
        assert_eq!(fs::read(self.victim.join("secret")).unwrap(), b"root's");
    }
}

/// Becomes the service user in this thread only.
fn become_service_user() {
    let (user, group) = (Uid::from_raw(SERVICE), Gid::from_raw(SERVICE));
    set_thread_groups(&[]).unwrap();
    set_thread_res_gid(group, group, group).unwrap();
    set_thread_res_uid(user, user, user).unwrap();
}

/// Folders that the service user exchanges with links to root's folder, again and again.
struct Race {
    folders: Vec<PathBuf>,
    over: AtomicBool,
    exchanges: AtomicU64,
}

/// Ends the race, whatever fails meanwhile.
struct Over<'r>(&'r Race);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

impl Race {
    /// So many folders below the agent's, in each of which `d`, a folder, and `l`, a link to the victim, change places.
    fn prepare(ground: &Ground, count: usize) -> Race {
        let folder = |number: usize| {
            let folder = ground.state.join(format!("z{number}"));
            fs::create_dir_all(folder.join("d")).unwrap();
            symlink(&ground.victim, folder.join("l")).unwrap();
            ground.give(&folder);
            ground.give(&folder.join("d"));
            folder
        };
        let folders = (0..count).map(folder).collect();
        Race { folders, over: AtomicBool::new(false), exchanges: AtomicU64::new(0) }
    }

    /// Exchanges until the race is over, as the service user, while `root` runs.
    fn run<T>(&self, root: impl FnOnce() -> T) -> T {
        let open = |path| openat(rustix::fs::CWD, path, OFlags::DIRECTORY, Mode::empty()).unwrap();
        let folders: Vec<_> = self.folders.iter().map(open).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                become_service_user();
                for folder in folders.iter().cycle() {
                    if self.over.load(Ordering::Relaxed) {
                        return;
                    }
                    renameat_with(folder, "d", folder, "l", RenameFlags::EXCHANGE).unwrap();
                    self.exchanges.fetch_add(1, Ordering::Relaxed);
                }
            });
            let _over = Over(self);
            root()
        })
    }
}

/// A start of the program takes ten milliseconds, so each of 500 meets 20 folders that are exchanged.
#[test]
fn ten_thousand_races_during_pairings_give_the_service_user_nothing_of_roots() {
    let Some(ground) = Ground::new() else { return };
    let race = Race::prepare(&ground, 20);
    race.run(|| {
        for round in 0..500 {
            let paired = ground.bench.run(&["agent", "pair", "--state", "state"]);
            assert_eq!(paired.code, Some(0), "{paired:#?}");
            let secret = fs::symlink_metadata(ground.victim.join("secret")).unwrap();
            assert_eq!(secret.uid(), 0, "root's file is the service user's in round {round}");
        }
    });
    assert!(race.exchanges.into_inner() > 100_000, "the other side took part");
    ground.assert_untouched();
    // It did its work all the same, as the folder's owner.
    let made = statat(rustix::fs::CWD, ground.state.join("pairing"), AtFlags::SYMLINK_NOFOLLOW).unwrap();
    assert_eq!((made.st_uid, made.st_mode & 0o777), (SERVICE, 0o600));
}

/// Root becomes the owner of the folder that it finds: it must not find its own where the service user decides.
#[test]
fn a_folder_that_is_exchanged_while_root_looks_for_it_is_never_found_to_be_roots() {
    let Some(ground) = Ground::new() else { return };
    let race = Race::prepare(&ground, 1);
    let raced = race.folders[0].join("d");
    let (found, refused) = race.run(|| {
        // A look by the path is led astray: the race can be lost.
        let is_astray = || fs::metadata(&raced).is_ok_and(|about| about.uid() == 0);
        assert!((0..1_000_000).any(|_| is_astray()), "the exchange was never seen");
        let (mut found, mut refused) = (0, 0);
        for _ in 0..10_000 {
            match Place::find(&raced) {
                Ok(Some(place)) => {
                    assert_eq!(place.owner(), Owner { user: SERVICE, group: SERVICE });
                    found += 1;
                }
                Ok(None) => panic!("an exchange leaves something at either name"),
                Err(_) => refused += 1,
            }
        }
        (found, refused)
    });
    assert!(found > 0 && refused > 0, "{found} found, {refused} refused");
    ground.assert_untouched();
}

#[test]
fn links_of_the_service_user_lead_root_nowhere() {
    let Some(ground) = Ground::new() else { return };
    for name in ["pairing.lock", "pairing", "identity", "lock", "address", "controllers"] {
        let _ = fs::remove_file(ground.state.join(name));
        let _ = fs::remove_dir_all(ground.state.join(name));
        symlink(ground.victim.join("made"), ground.state.join(name)).unwrap();
        for command in
            [&["agent", "pair"][..], &["agent", "revoke", "studio"], &["agent", "list"], &["agent", "status"]]
        {
            ground.bench.run(&[command, &["--state", "state"]].concat());
            ground.assert_untouched();
        }
        fs::remove_file(ground.state.join(name)).unwrap();
    }
}

#[test]
fn a_folder_behind_a_path_of_the_service_user_is_refused() {
    let Some(ground) = Ground::new() else { return };
    // The user's folder holds a link to root's, and root's own folder was moved below the user's.
    symlink(&ground.victim, ground.state.join("link")).unwrap();
    fs::create_dir(ground.state.join("moved")).unwrap();
    for path in ["state/link", "state/moved"] {
        let refused = ground.bench.run(&["agent", "pair", "--state", path]);
        assert_eq!(refused.code, Some(1), "{refused:#?}");
        assert!(refused.err.contains("belongs to the user 65534"), "{}", refused.err);
        ground.assert_untouched();
    }
}
