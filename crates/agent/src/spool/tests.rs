use std::time::Duration as StdDuration;

use proptest::prelude::*;
use trunkline_control::RefusalKind;

use super::*;

fn id(point: u32) -> PartId {
    PartId { run: "0123456789abcdef0123456789abcdef".into(), point, repetition: 1, pair: 2, attempt: 0 }
}

fn fingerprint() -> Fingerprint {
    "0".repeat(52).parse().unwrap()
}

fn meta(point: u32) -> Meta {
    Meta {
        part: id(point),
        controller: fingerprint(),
        controller_name: "studio".into(),
        experiment: "voice beside bulk".into(),
        began: "2026-11-22T09:30:00Z".parse().unwrap(),
    }
}

fn finished(at: &str) -> End {
    End {
        at: at.parse().unwrap(),
        how: Ending::Finished {
            outcome: "{}".into(),
            clock_errors: vec![None, Some(Duration::from_micros(3))],
        },
    }
}

const AMPLE: Bytes = Bytes(1 << 30);
const KEEP: Duration = Duration::from_secs(24 * 3600);

fn open(folder: &Path) -> Spool {
    let (spool, unreadable) = Spool::open(folder, AMPLE, KEEP).unwrap();
    assert_eq!(unreadable, Vec::<String>::new());
    spool
}

fn chunks(part: &PartSpool) -> Vec<Vec<u8>> {
    (part.kept_from()..part.extent().chunks).map(|number| part.read(number).unwrap()).collect()
}

#[test]
fn what_is_kept_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(folder.path());
    let part = spool.create(meta(0)).unwrap();
    for number in 0..5u8 {
        assert_eq!(part.append(&[number; 100], 10).unwrap(), u64::from(number));
    }
    part.finish(finished("2026-11-22T10:00:00Z")).unwrap();
    assert!(matches!(spool.create(meta(0)), Err(SpoolError::Exists)));
    let bytes = spool.bytes();
    drop((spool, part));

    let spool = open(folder.path());
    assert_eq!(spool.bytes(), bytes);
    let part = spool.find(&id(0)).unwrap();
    assert_eq!(part.meta(), &meta(0));
    assert_eq!(part.end(), Some(finished("2026-11-22T10:00:00Z")));
    assert_eq!(part.observations(), 50);
    assert_eq!(chunks(&part), (0..5u8).map(|number| vec![number; 100]).collect::<Vec<_>>());
    assert!(spool.discard(&id(0)).unwrap());
    assert!(!spool.discard(&id(0)).unwrap());
    assert_eq!(spool.bytes(), Bytes::ZERO);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_process_killed_at_any_byte_loses_only_the_chunk_that_it_was_writing() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(folder.path());
    let part = spool.create(meta(0)).unwrap();
    let sizes = [0usize, 1, 7, 30, 64];
    sizes.iter().for_each(|&size| _ = part.append(&vec![size as u8; size], 1).unwrap());
    let path = folder.path().join(folder_name(&id(0)).unwrap()).join("000000000000.chunks");
    let whole = fs::read(&path).unwrap();
    drop((spool, part));
    let mut end = 0;
    let ends: Vec<usize> = sizes
        .iter()
        .map(|size| {
            end += segment::HEAD + size;
            end
        })
        .collect();
    assert_eq!(whole.len(), end);
    for cut in 0..=whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let part = open(folder.path()).find(&id(0)).unwrap();
        let survived = ends.iter().filter(|&&end| end <= cut).count();
        assert_eq!(part.extent().chunks, survived as u64, "cut at {cut}");
        // And it goes on where it was.
        assert_eq!(part.append(b"next", 1).unwrap(), survived as u64);
        let part = open(folder.path()).find(&id(0)).unwrap();
        let expected = sizes[..survived].iter().map(|&size| vec![size as u8; size]);
        assert_eq!(chunks(&part), expected.chain([b"next".to_vec()]).collect::<Vec<_>>(), "cut at {cut}");
    }
}

#[test]
fn acknowledged_segments_go_and_the_numbers_stay() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(folder.path());
    let part = spool.create(meta(0)).unwrap();
    // Five to a segment.
    (0..12u8).for_each(|number| _ = part.append(&vec![number; 1 << 20], 1).unwrap());
    let before = spool.bytes();
    part.acknowledge(2).unwrap();
    assert_eq!((part.kept_from(), spool.bytes()), (0, before));
    part.acknowledge(100).unwrap();
    let kept_from = part.kept_from();
    assert!(kept_from >= 8 && spool.bytes() < before, "from {kept_from}");
    let error = part.read(kept_from - 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("chunk {} is not stored; available are those from {kept_from} to before 12", kept_from - 1)
    );
    drop((spool, part));
    let part = open(folder.path()).find(&id(0)).unwrap();
    assert_eq!((part.kept_from(), part.extent().chunks), (kept_from, 12));
    assert_eq!(part.append(b"next", 1).unwrap(), 12);
}

#[test]
fn the_owners_limit_ends_a_part_and_keeps_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let (spool, _) = Spool::open(folder.path(), Bytes(100_000), KEEP).unwrap();
    let part = spool.create(meta(0)).unwrap();
    assert!((80_000..85_000).contains(&spool.bytes().count()), "what describes the part is counted");
    let full = loop {
        match part.append(&[1; 1000], 1) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    let told = "the disk limit of 100 KB set by the host's owner is reached (";
    assert!(full.to_string().starts_with(told), "{full}");
    let refusal = Refusal::new(RefusalKind::DiskFull, full.to_string());
    part.finish(End { at: Timestamp::UNIX_EPOCH, how: Ending::Failed { refusal, outcome: None } }).unwrap();
    assert!(chunks(&part).len() > 9);
    assert!(spool.bytes().count() < 40_000, "what was kept free for the end is given back");
    // What is acknowledged makes room, and so does what nobody wants.
    spool.discard(&id(0)).unwrap();
    assert!(part.append(b"late", 1).is_err());
    assert!(part.extent().is_discarded);
    assert_eq!(spool.bytes(), Bytes::ZERO);
    spool.create(meta(1)).unwrap().append(&[1; 9000], 1).unwrap();
}

#[test]
fn nobody_takes_the_share_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let (spool, _) = Spool::open(folder.path(), Bytes(1_000_000), KEEP).unwrap();
    let [one, other]: [Fingerprint; 2] =
        ["1", "2"].map(|digit| format!("{}0", digit.repeat(51)).parse().unwrap());
    spool.set_shared(true);
    // Chunks, and the descriptions of parts without any.
    let part = spool.create(Meta { controller: one, ..meta(0) }).unwrap();
    while part.append(&[1; 10_000], 1).is_ok() {}
    let full = spool.create(Meta { controller: one, ..meta(1) }).unwrap_err().to_string();
    assert!(full.starts_with("this controller's share of the disk limit of 1000 KB"), "{full}");
    assert!(spool.bytes_of(&one).count() <= 500_000);
    let theirs = spool.create(Meta { controller: other, ..meta(2) }).unwrap();
    (0..15).for_each(|_| _ = theirs.append(&[1; 10_000], 1).unwrap());
    assert_eq!(spool.bytes().count(), spool.bytes_of(&one).count() + spool.bytes_of(&other).count());
    // After a restart the same is counted.
    let before = [&one, &other].map(|controller| spool.bytes_of(controller));
    drop((spool, part, theirs));
    let again = open(folder.path());
    assert_eq!([&one, &other].map(|controller| again.bytes_of(controller)), before);
    // Where there is nobody else, everything is for one.
    let (alone, _) = Spool::open(folder.path(), Bytes(1_000_000), KEEP).unwrap();
    let part = alone.find(&id(0)).unwrap();
    (0..30).for_each(|_| _ = part.append(&[1; 5_000], 1).unwrap());
    assert!(alone.bytes_of(&one).count() > 500_000);
}

#[test]
fn only_what_is_old_and_over_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(folder.path());
    for point in 0..3 {
        spool.create(meta(point)).unwrap().append(b"records", 1).unwrap();
    }
    let end = |point: u32, at: &str| spool.find(&id(point)).unwrap().finish(finished(at)).unwrap();
    end(1, "2026-11-22T12:00:00Z");
    end(2, "2026-11-22T11:00:00Z");
    let at = |text: &str| text.parse().unwrap();
    assert_eq!(spool.make_room(at("2026-11-23T10:59:00Z")), None);
    assert_eq!(spool.make_room(at("2026-11-23T12:30:00Z")), Some(meta(2)));
    assert_eq!(spool.make_room(at("2026-11-23T12:30:00Z")), Some(meta(1)));
    assert_eq!(spool.make_room(at("2027-11-23T12:30:00Z")), None, "it is not over");
}

#[test]
fn who_streams_waits_for_chunks_and_for_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(folder.path());
    let part = spool.create(meta(0)).unwrap();
    let patience = StdDuration::from_secs(60);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..3).for_each(|_| _ = part.append(b"records", 1).unwrap());
            part.finish(finished("2026-11-22T10:00:00Z")).unwrap();
        });
        let (mut seen, mut over) = (0, false);
        while !over {
            let extent = part.wait_beyond(seen, patience);
            assert!(extent.chunks > seen || extent.is_over);
            (seen, over) = (extent.chunks, extent.is_over && extent.chunks == 3);
        }
    });
}

#[test]
fn names_from_outside_are_no_paths() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(folder.path());
    for run in ["../../etc", "", "0123456789abcdef0123456789abcdeg", "0123456789abcdef0123456789abcdef0"] {
        let meta = Meta { part: PartId { run: run.into(), ..id(0) }, ..meta(0) };
        assert!(matches!(spool.create(meta), Err(SpoolError::Run(_))), "{run}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_was_only_begun_is_cleared_away_and_what_cannot_be_read_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.new", "b.old", "damaged"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("damaged/part.json"), "{").unwrap();
    let (spool, unreadable) = Spool::open(folder.path(), AMPLE, KEEP).unwrap();
    assert_eq!(spool.list().len(), 0);
    assert_eq!(unreadable.len(), 1, "{unreadable:?}");
    assert!(folder.path().join("damaged").exists());
    assert!(!folder.path().join("a.new").exists() && !folder.path().join("b.old").exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Appends, acknowledgements, restarts and cuts in any order, against a list of what was appended.
    #[test]
    fn nothing_acknowledged_late_is_lost(steps in proptest::collection::vec((0..4u8, any::<u16>()), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let mut part = open(folder.path()).create(meta(0)).unwrap();
        let mut model: Vec<Vec<u8>> = Vec::new();
        let mut acknowledged = 0;
        for (step, what) in steps {
            match step {
                0 | 1 => {
                    let data = vec![what as u8; usize::from(what) * 40];
                    prop_assert_eq!(part.append(&data, 1).unwrap(), model.len() as u64);
                    model.push(data);
                }
                2 if !model.is_empty() => {
                    let through = u64::from(what) % model.len() as u64;
                    acknowledged = acknowledged.max(through + 1);
                    part.acknowledge(through).unwrap();
                }
                _ => part = open(folder.path()).find(&id(0)).unwrap(),
            }
            prop_assert_eq!(part.extent().chunks, model.len() as u64);
            prop_assert!(part.kept_from() <= acknowledged);
            for number in part.kept_from()..model.len() as u64 {
                prop_assert_eq!(&part.read(number).unwrap(), &model[number as usize]);
            }
        }
    }
}
