use std::process::Command;

use trunkline_core::{PacketId, Port, Time};
use trunkline_testkit::programs::is_installed;

use super::*;

/// A UDP packet over IPv4 from 198.18.0.1 to 198.18.0.2 with 4 bytes of data; its checksums are not looked at.
const PACKET: [u8; 32] = [
    0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2, 0x13, 0x88, 0x13, 0x89, 0, 12, 0,
    0, 1, 2, 3, 4,
];

fn ms(n: u64) -> Time {
    Time::from_nanos(n * 1_000_000)
}

fn link() -> CapturedLink {
    CapturedLink { name: "trunk".into(), hosts: vec!["berlin".into(), "ottawa".into()], layer: Layer::Ip }
}

/// What `tshark` reads there, a line per packet with these fields.
fn read(path: &Path, fields: &[&str]) -> Vec<String> {
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    let output = Command::new("tshark").arg("-r").arg(path).args(["-T", "fields"]).args(fields).output();
    let output = output.expect("it was there before");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn wireshark_reads_both_ends_and_sees_what_was_dropped() {
    if !is_installed("tshark", "the Debian package `tshark`") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let captures = Captures::start(folder.path(), &[link()], MonotonicClock::starting_now()).unwrap();
    let mut tap = captures.of_link(0);
    let (there, back) = (Port(0), Port(1));
    tap.arrived(ms(1), there, PacketId(1), &PACKET);
    tap.arrived(ms(2), there, PacketId(2), &PACKET);
    tap.dropped(ms(2), there, PacketId(2), &PACKET, "queue-full");
    tap.arrived(ms(3), there, PacketId(3), &PACKET[..30]);
    tap.delivered(ms(5), back, PacketId(1), &PACKET);
    tap.arrived(ms(6), back, PacketId(4), &PACKET);
    tap.delivered(ms(7), there, PacketId(4), &PACKET);
    tap.dropped(ms(15), there, PacketId(3), &PACKET, "sojourn");
    // Its fate is never known.
    tap.arrived(ms(20), there, PacketId(5), &PACKET);
    captures.finish().unwrap();

    let fields = [
        "frame.time_relative",
        "frame.len",
        "frame.packet_id",
        "frame.packet_flags_direction",
        "ip.src",
        "frame.comment",
    ];
    let lines = |name: &str| read(&folder.path().join(name), &fields);
    assert_eq!(
        lines("trunk-berlin.pcapng"),
        [
            "0.000000000\t32\t1\t0x00000002\t198.18.0.1\t",
            "0.001000000\t32\t2\t0x00000002\t198.18.0.1\tdropped by the link: queue-full",
            "0.002000000\t30\t3\t0x00000002\t198.18.0.1\tdropped by the link after 12 ms: sojourn",
            "0.006000000\t32\t4\t0x00000001\t198.18.0.1\t",
            "0.019000000\t32\t5\t0x00000002\t198.18.0.1\t",
        ]
    );
    assert_eq!(
        lines("trunk-ottawa.pcapng"),
        ["0.000000000\t32\t1\t0x00000001\t198.18.0.1\t", "0.001000000\t32\t4\t0x00000002\t198.18.0.1\t"]
    );
    let names = read(&folder.path().join("trunk-ottawa.pcapng"), &["frame.interface_name"]);
    assert_eq!(names, ["trunk", "trunk"]);
}

/// The times of the packets of a file in nanoseconds, and their numbers.
fn packets(file: &[u8]) -> Vec<(u64, u64)> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (mut at, mut packets) = (0, Vec::new());
    while at < file.len() {
        let length = word(at + 4) as usize;
        if word(at) == 6 {
            // Type, length, interface, time, captured length, length, data; options end with the packet's number.
            let id = u64::from_le_bytes(file[at + length - 16..at + length - 8].try_into().unwrap());
            packets.push(((u64::from(word(at + 12)) << 32) + u64::from(word(at + 16)), id));
        }
        at += length;
    }
    packets
}

#[test]
fn a_file_is_in_the_order_of_time_whatever_the_relay_sees_first() {
    let folder = tempfile::tempdir().unwrap();
    let captures = Captures::start(folder.path(), &[link()], MonotonicClock::starting_now()).unwrap();
    let mut tap = captures.of_link(0);
    let (there, back) = (Port(0), Port(1));
    let file = || std::fs::read(folder.path().join("trunk-berlin.pcapng")).unwrap();
    let numbers = || packets(&file()).into_iter().map(|(_, id)| id).collect::<Vec<_>>();
    // What enters over a turn of the relay is seen before what leaves over the same turn.
    tap.arrived(ms(1), back, PacketId(1), &PACKET);
    tap.arrived(ms(4), there, PacketId(2), &PACKET);
    tap.arrived(ms(6), there, PacketId(3), &PACKET);
    tap.delivered(ms(5), back, PacketId(2), &PACKET);
    // Longer than the writer waits: nothing may be written before its time has passed.
    thread::sleep(3 * LOOK);
    tap.delivered(ms(3), there, PacketId(1), &PACKET);
    tap.passed(ms(6));
    tap.delivered(ms(8), back, PacketId(3), &PACKET);
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while packets(&file()).len() < 3 {
        assert!(std::time::Instant::now() < until, "what has passed is not written");
        thread::yield_now();
    }
    assert_eq!(numbers(), [1, 2, 3]);
    tap.arrived(ms(9), there, PacketId(4), &PACKET);
    captures.finish().unwrap();
    assert_eq!(numbers(), [1, 2, 3, 4]);
    assert!(packets(&file()).is_sorted());
}

#[test]
fn ethernet_frames_are_said_to_be_such() {
    if !is_installed("tshark", "the Debian package `tshark`") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let links = [CapturedLink { layer: Layer::Ethernet, ..link() }];
    let captures = Captures::start(folder.path(), &links, MonotonicClock::starting_now()).unwrap();
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend(PACKET);
    captures.of_link(0).delivered(ms(1), Port(1), PacketId(1), &frame);
    drop(captures);
    let lines = read(&folder.path().join("trunk-ottawa.pcapng"), &["eth.src", "ip.dst"]);
    assert_eq!(lines, ["02:00:00:00:00:01\t198.18.0.2"]);
}

#[test]
fn a_full_disk_ends_the_capture_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("trunk-ottawa.pcapng")).unwrap();
    let captures = Captures::start(folder.path(), &[link()], MonotonicClock::starting_now()).unwrap();
    let mut tap = captures.of_link(0);
    while captures.failure().is_none() {
        tap.arrived(ms(1), Port(0), PacketId(1), &PACKET);
        tap.delivered(ms(1), Port(1), PacketId(1), &PACKET);
        tap.passed(ms(1));
        thread::yield_now();
    }
    // Whoever goes on is not held up.
    tap.arrived(ms(2), Port(0), PacketId(2), &PACKET);
    let problem = captures.finish().unwrap_err();
    assert!(problem.contains("trunk-ottawa.pcapng: the disk is full; these files"), "{problem}");
    let both = ["trunk-berlin.pcapng", "trunk-ottawa.pcapng"]
        .map(|name| folder.path().join(name).display().to_string());
    assert!(problem.ends_with(&format!(": {}", both.join(", "))), "{problem}");
}

#[test]
fn an_earlier_capture_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let earlier = folder.path().join("trunk-ottawa.pcapng");
    std::fs::write(&earlier, "earlier").unwrap();
    let problem = Captures::start(folder.path(), &[link()], MonotonicClock::starting_now()).unwrap_err();
    assert!(problem.to_string().contains("trunk-ottawa.pcapng` exists already"), "{problem}");
    assert!(problem.is_bad_input());
    assert_eq!(std::fs::read(&earlier).unwrap(), b"earlier");
    assert!(!folder.path().join("trunk-berlin.pcapng").exists());
}

#[test]
fn a_folder_that_cannot_be_made_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x"), "").unwrap();
    let problem = Captures::start(&folder.path().join("x/y"), &[link()], MonotonicClock::starting_now());
    assert!(problem.unwrap_err().to_string().contains("the capture cannot be written"));
}

#[test]
fn two_ends_are_not_written_to_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let ends = [("trunk", "b-c"), ("trunk-b", "c")].map(|(name, host)| CapturedLink {
        name: name.into(),
        hosts: vec!["a".into(), host.into()],
        ..link()
    });
    let problem = Captures::start(folder.path(), &ends, MonotonicClock::starting_now()).unwrap_err();
    assert!(problem.to_string().contains("two ends of links would both be `trunk-b-c.pcapng`"), "{problem}");
}

#[test]
fn what_a_slow_disk_has_no_room_for_is_counted() {
    let log = Arc::new(Log::default());
    let mut tap = Tap(Arc::clone(&log));
    let frame = vec![0; 1 << 20];
    for id in 0..70 {
        tap.arrived(ms(id), Port(1), PacketId(id), &frame);
    }
    let batch = log.swap(Batch::default());
    assert_eq!((batch.seen.len(), batch.missed), (64, vec![0, 6]));
    log.close();
    tap.arrived(ms(99), Port(0), PacketId(99), &frame);
    assert!(log.swap(Batch::default()).seen.is_empty());
}
