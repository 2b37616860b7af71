use super::*;

fn state(name: &str, owner: ProcessId) -> WireState {
    let file = PathBuf::from("links.toml");
    WireState { name: name.into(), file, owner, ready: false, hosts: Vec::new() }
}

fn ourselves() -> ProcessId {
    ProcessId::of(std::process::id()).unwrap()
}

/// A process of our number that has died long ago.
fn dead() -> ProcessId {
    ProcessId { started: 0, ..ourselves() }
}

#[test]
fn a_process_is_told_from_an_earlier_one_of_its_number() {
    assert!(ourselves().is_alive());
    assert!(!dead().is_alive());
    let fields = "1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 77 0";
    assert_eq!(start_of_living(&format!("12 (a) b) (c) S {fields}")), Some(77));
    assert_eq!(start_of_living(&format!("12 (a) Z {fields}")), None);
    assert_eq!(start_of_living("12 (a) S 1"), None);
}

#[test]
fn a_wire_is_written_down_as_long_as_it_is_up() {
    let wires = tempfile::tempdir().unwrap();
    let mut written = state("links", ourselves());
    let folder = StateFolder::claim(wires.path(), &written).unwrap();
    written.ready = true;
    folder.update(&written).unwrap();
    let found = FoundWire::find(wires.path(), None).unwrap();
    assert_eq!(found.state, written);
    assert!(found.is_running());
    drop(folder);
    assert_eq!(fs::read_dir(wires.path()).unwrap().count(), 0);
}

#[test]
fn a_name_is_free_again_when_its_wire_has_died() {
    let wires = tempfile::tempdir().unwrap();
    let left = StateFolder::claim(wires.path(), &state("links", dead())).unwrap();
    core::mem::forget(left);
    assert!(FoundWire::find(wires.path(), Some("links")).is_err());
    let _folder = StateFolder::claim(wires.path(), &state("links", ourselves())).unwrap();
    let again = StateFolder::claim(wires.path(), &state("links", ourselves())).unwrap_err();
    assert!(again.to_string().starts_with("wire `links` is up already"), "{again}");
    assert_eq!(FoundWire::all(wires.path()).unwrap().len(), 1);
}

#[test]
fn what_a_crash_left_is_removed_and_nothing_else() {
    let wires = tempfile::tempdir().unwrap();
    core::mem::forget(StateFolder::claim(wires.path(), &state("left", dead())).unwrap());
    let _running = StateFolder::claim(wires.path(), &state("running", ourselves())).unwrap();
    fs::create_dir(wires.path().join("somebody's")).unwrap();
    for wire in FoundWire::all(wires.path()).unwrap().iter().filter(|wire| !wire.is_running()) {
        wire.take_down().unwrap();
    }
    let mut left: Vec<_> =
        fs::read_dir(wires.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["running", "somebody's"]);
}

#[test]
fn which_wire_is_meant_is_said_if_it_is_not_clear() {
    let wires = tempfile::tempdir().unwrap();
    let message = |name| FoundWire::find(wires.path(), name).unwrap_err().to_string();
    assert!(message(None).starts_with("no wire is running"));
    let _one = StateFolder::claim(wires.path(), &state("one", ourselves())).unwrap();
    let _two = StateFolder::claim(wires.path(), &state("two", ourselves())).unwrap();
    assert_eq!(message(None), "several wires are running (`one`, `two`); select one with `--wire NAME`");
    assert!(message(Some("three")).starts_with("no wire `three` is up"));
    assert_eq!(FoundWire::find(wires.path(), Some("two")).unwrap().state.name, "two");
}

#[test]
fn a_wire_whose_process_is_out_of_sight_is_left_alone_while_it_answers() {
    let wires = tempfile::tempdir().unwrap();
    let elsewhere = ProcessId { namespace: 1, ..ourselves() };
    let folder = StateFolder::claim(wires.path(), &state("links", elsewhere)).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(socket(folder.path())).unwrap();
    let found = FoundWire::find(wires.path(), None).unwrap();
    assert!(found.is_running());
    assert!(found.take_down().unwrap_err().is_bad_input());
    let again = StateFolder::claim(wires.path(), &state("links", ourselves())).unwrap_err();
    assert!(again.to_string().starts_with("wire `links` is up already"), "{again}");
    drop(listener);
    assert!(!found.is_running());
    found.take_down().unwrap();
    assert!(!folder.path().exists());
}
