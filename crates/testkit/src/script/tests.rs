use trunkline_core::{Address, Ecn, Time};

use super::segment::{Segment, flag};
use super::{EngineHost, Host, HostFigures, Outcome, Script, play};

const HANDSHAKE: &str = "
    holds RFC 9293 section 3.5
    0     connect
    +0    out SYN 0
    +10ms in  SYN 0 ack 1 options all
    +0    out 1 ack 1
    +0    expect connected
    +0    write 100
    +0    out 1..101 ack 1
    +10ms in  1..201 ack 101
    +0    out 101 ack 201
    +0    read 200
";

fn run(text: &str) -> Result<Vec<String>, super::Failure> {
    let script = Script::parse("test", text).expect("the script is right");
    play(&script, &mut EngineHost::new(&script.settings).expect("the settings are right"))
}

#[test]
fn the_engine_holds_a_script() {
    let transcript = run(HANDSHAKE).unwrap();
    assert_eq!(transcript.len(), 6, "{transcript:#?}");
}

#[test]
fn every_difference_is_found_and_named() {
    for (from, to, expected) in [
        ("out 1..101 ack 1", "out 1..100 ack 1", "it should have 99 bytes of data"),
        ("out 1..101 ack 1", "out 2..102 ack 1", "the sequence number should be 2"),
        ("out 1..101 ack 1", "out 1..101 ack 2", "it should acknowledge 2"),
        ("out 1..101 ack 1", "out FIN 1..101 ack 1", "the flags should be FIN ack"),
        ("out 1..101 ack 1", "out 1..101 ack 1 sack 5..6", "the selective acknowledgements should be 5..6"),
        ("out 1..101 ack 1", "out 1..101 ack 1 no-PSH", "PSH is wrong"),
        ("out 1..101 ack 1", "out 1..101 ack 1 ect0", "its ECN field should be ect0"),
        ("out 1..101 ack 1", "out 1..101 ack 1 win 7", "the window should be 7"),
        ("out SYN 0", "out SYN 0 options mss 1460", "the options should be"),
        ("+0    out 1..101 ack 1", "+50ms out 1..101 ack 1", "this was sent 50.000 ms early"),
        ("+0    out 1..101 ack 1", "", "this was not to be sent before 20.000ms"),
        ("+0    write 100", "", "nothing was sent until 20.000ms"),
        ("read 200", "read 100", "200 bytes were read, not 100"),
        ("expect connected", "expect reset", "the connection is Connected, not Reset"),
    ] {
        let text = HANDSHAKE.replace(from, to);
        assert_ne!(text, HANDSHAKE);
        let failure = run(&text).expect_err(expected);
        assert!(failure.problem.contains(expected), "{failure}");
    }
}

#[test]
fn a_mistake_is_told_with_its_line() {
    for (line, expected) in [
        ("set mss 5", "line 2: unknown setting `mss`; expected one of nodelay"),
        ("+5 out 1", "line 2: `5` has no unit of time; expected us, ms or s"),
        ("0 out 1..x", "line 2: `1..x` is neither a number nor a range such as 1..1001"),
        ("0 out 9..1", "line 2: `9..1` goes backwards"),
        ("0 jump", "line 2: unknown action `jump`"),
        ("0 write 5 now", "line 2: `now` is too much"),
        ("0 in SYN 1 what", "line 2: unknown word `what` of a segment"),
        ("open", "line 2: expected `open active` or `open passive`"),
        ("", "it has no steps"),
    ] {
        let problem = Script::parse("test", &format!("holds RFC 9293\n{line}")).unwrap_err();
        assert!(problem.starts_with(expected), "{problem}");
    }
    assert!(Script::parse("test", "0 connect").unwrap_err().contains("`holds` is missing"));
}

/// A host that sends one segment.
struct Once(Option<Vec<u8>>);

impl Host for Once {
    fn next_sent(&mut self, _until: Time) -> Option<(Time, Vec<u8>, Ecn)> {
        self.0.take().map(|bytes| (Time::ZERO, bytes, Ecn::NotCapable))
    }
    fn deliver(&mut self, _at: Time, _segment: &[u8], _ecn: Ecn) {}
    fn open(&mut self, _at: Time, _passive: bool) {}
    fn write(&mut self, _at: Time, _bytes: &[u8], _more: bool) -> usize {
        0
    }
    fn read(&mut self, _at: Time) -> Vec<u8> {
        Vec::new()
    }
    fn close(&mut self, _at: Time, _abort: bool) {}
    fn outcome(&mut self, _at: Time) -> Outcome {
        Outcome::Pending
    }
    fn figures(&mut self, _segment: u64) -> HostFigures {
        HostFigures::default()
    }
    fn slack(&self) -> trunkline_core::Duration {
        trunkline_core::Duration::ZERO
    }
}

#[test]
fn bytes_and_checksums_are_looked_at() {
    let [host, peer]: [Address; 2] = super::HOST_AND_PEER;
    let script = Script::parse("test", "holds RFC 9293\n0 out SYN 0").unwrap();
    let syn = Segment { flags: flag::SYN, ..Segment::default() }.write(host, peer);
    let mut wrong = syn.clone();
    wrong[4] ^= 1;
    let failure = play(&script, &mut Once(Some(wrong))).unwrap_err();
    assert_eq!(failure.problem, "the checksum is wrong");
    let text = "holds RFC 9293\n0 out 0..2";
    let data = Segment { data: vec![9, 9], ..Segment::default() }.write(host, peer);
    let failure = play(&Script::parse("test", text).unwrap(), &mut Once(Some(data))).unwrap_err();
    assert!(failure.problem.contains("its data is not what was written"), "{failure}");
}

#[test]
fn segments_are_read_as_they_were_written() {
    let [host, peer] = super::HOST_AND_PEER;
    let segment = Segment {
        sequence: 1,
        acknowledgement: 2,
        flags: flag::SYN | flag::ACK | flag::AE,
        window: 3,
        mss: Some(4),
        scale: Some(5),
        sack_permitted: true,
        stamps: Some((6, 7)),
        sacks: Vec::new(),
        data: vec![8; 9],
    };
    assert_eq!(Segment::read(host, peer, &segment.write(host, peer)), Ok(segment.clone()));
    let sacks = Segment { sacks: vec![(1, 2), (3, 4)], sack_permitted: false, mss: None, ..segment };
    assert_eq!(Segment::read(host, peer, &sacks.write(host, peer)), Ok(sacks.clone()));
    assert!(Segment::read(host, peer, &[0; 19]).is_err());
}
