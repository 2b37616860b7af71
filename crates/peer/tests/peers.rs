//! The folder of known peers.

use std::fs;
use std::os::unix::fs::MetadataExt;

use proptest::prelude::*;
use trunkline_peer::{Identity, Peer, PeerError, Peers, check_name};

fn peer(name: &str) -> Peer {
    Peer {
        name: name.to_owned(),
        fingerprint: Identity::generate().expect("there is entropy").fingerprint(),
        address: Some("host:4781".to_owned()),
        enrolled: "2024-05-06T07:08:09Z".parse().expect("it is a time"),
    }
}

#[test]
fn peers_are_kept_found_and_forgotten() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("agents");
    let peers = Peers::open(&folder).unwrap();
    assert_eq!(peers.list().unwrap(), []);
    let (ottawa, berlin) = (peer("ottawa"), Peer { address: None, ..peer("berlin") });
    peers.add(&ottawa).unwrap();
    peers.add(&berlin).unwrap();
    // Somebody else sees them at once.
    let others = Peers::open(&folder).unwrap();
    assert_eq!(others.list().unwrap(), [berlin.clone(), ottawa.clone()]);
    assert_eq!(others.find(&ottawa.fingerprint).unwrap(), Some(ottawa.clone()));
    assert_eq!(others.named("berlin").unwrap(), Some(berlin.clone()));
    assert_eq!(fs::metadata(folder.join("berlin.toml")).unwrap().mode() & 0o777, 0o600);
    others.remove("berlin").unwrap();
    assert_eq!(peers.find(&berlin.fingerprint).unwrap(), None);
    assert_eq!(peers.named("berlin").unwrap(), None);
    let error = peers.remove("berlin").unwrap_err();
    assert!(error.is_bad_input());
    assert_eq!(
        error.to_string(),
        format!(
            "no peer named `berlin` in {}; its files are named after the peers that it has",
            folder.display()
        )
    );
}

#[test]
fn a_name_has_one_key_and_a_key_one_name() {
    let home = tempfile::tempdir().unwrap();
    let peers = Peers::open(home.path()).unwrap();
    let (ottawa, other) = (peer("ottawa"), peer("ottawa"));
    peers.add(&ottawa).unwrap();
    let error = peers.add(&other).unwrap_err();
    let said =
        format!("already belongs to the key {}, but this key is {}", ottawa.fingerprint, other.fingerprint);
    assert!(error.to_string().contains(&said), "{error}");
    assert_eq!(peers.list().unwrap(), std::slice::from_ref(&ottawa));
    // Enrolled again, elsewhere.
    let moved = Peer { address: Some("elsewhere:1".to_owned()), ..ottawa.clone() };
    peers.add(&moved).unwrap();
    assert_eq!(peers.list().unwrap(), [moved]);
    let renamed = Peer { name: "toronto".to_owned(), ..ottawa };
    peers.add(&renamed).unwrap();
    assert_eq!(peers.list().unwrap(), [renamed]);
}

#[test]
fn a_damaged_file_is_told_of_and_hides_nobody_else() {
    let home = tempfile::tempdir().unwrap();
    let peers = Peers::open(home.path()).unwrap();
    let (ottawa, berlin) = (peer("ottawa"), peer("berlin"));
    peers.add(&ottawa).unwrap();
    peers.add(&berlin).unwrap();
    let path = home.path().join("berlin.toml");
    let whole = fs::read_to_string(&path).unwrap();
    for text in
        ["", "name = 7", &whole[..30], &whole.replace("berlin", "ottawa"), &format!("{whole}more = 1\n")]
    {
        fs::write(&path, text).unwrap();
        let error = peers.named("berlin").unwrap_err().to_string();
        assert!(error.starts_with(&format!("{} is damaged: ", path.display())), "{error}");
        assert!(error.ends_with("; delete it and enrol again"), "{error}");
        assert_eq!(peers.find(&ottawa.fingerprint).unwrap(), Some(ottawa.clone()));
        assert!(matches!(peers.find(&berlin.fingerprint), Err(PeerError::Damaged { .. })));
        assert!(peers.list().is_err());
    }
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(peers.named("berlin").unwrap_err().to_string().contains("it is not valid UTF-8"));
    peers.remove("berlin").unwrap();
    assert_eq!(peers.list().unwrap(), [ottawa]);
}

#[test]
fn other_files_are_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let peers = Peers::open(home.path()).unwrap();
    for name in ["README", ".ottawa.toml.1-0.new", ".hidden.toml", "notes.txt", "ottawa.toml~"] {
        fs::write(home.path().join(name), "?").unwrap();
    }
    assert_eq!(peers.list().unwrap(), []);
}

#[test]
fn names_are_those_of_hosts() {
    for name in ["ottawa", "a", "studio-2.example.org", "7", "A_b"] {
        check_name(name).unwrap();
    }
    for name in ["", ".", "..", "../x", "a/b", "-a", "a b", "é", "a\0", "a\n", &"x".repeat(65)] {
        assert!(check_name(name).unwrap_err().is_bad_input(), "{name:?}");
    }
}

proptest! {
    #[test]
    fn no_name_leaves_the_folder(name: String) {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("peers");
        let peers = Peers::open(&folder).unwrap();
        if peers.add(&Peer { name: name.clone(), ..peer("x") }).is_ok() {
            prop_assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        }
        prop_assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }
}
