//! Limits that drop packets on an idle line.
#![allow(clippy::unwrap_used, reason = "helpers of tests too")]

use trunkline_core::Bytes;
use trunkline_experiment::Experiment;
use trunkline_metrics::CutBy;

fn cut(link: &str, transport: &str, samples: u32) -> Option<CutBy> {
    let text = format!(
        "name = \"cut\"\nduration = \"1 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\nbetween = [\"a\", \"b\"]\n{link}\n\
         [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\nsource = {{ kind = \"voice\", samples = {samples} }}\n"
    );
    Experiment::parse(&text, "cut.toml", &()).unwrap().points[0].scenario.cut_by(0)
}

#[test]
fn a_trunk_whose_memory_holds_fewer_chunks_than_a_packet_has_cuts_it() {
    let link = "medium = \"t1\"\noutput = \"0 B\"\nqueue = { kind = \"fifo\", limit = \"4 packets\" }\nloss = \"50 %\"";
    let found = cut(link, "\"udp\"", 1400).unwrap();
    assert_eq!((found.option.as_str(), found.limit.as_str()), ("link.trunk.queue.limit", "4 packets"));
    assert_eq!((found.chunk, found.packet), (Some(Bytes(64)), Bytes(1400)));
    // While it comes off the backplane some of it leaves.
    let largest = found.largest.count();
    assert!((4 * 64..1400).contains(&largest), "{largest}");
    assert_eq!(cut(link, "\"udp\"", largest as u32), None);
    assert_eq!(cut(link, "\"udp\"", largest as u32 + 1), Some(CutBy { packet: Bytes(largest + 1), ..found }));
    assert_eq!(cut("medium = \"t1\"", "\"udp\"", 1400), None);
}

#[test]
fn the_input_of_a_trunk_cuts_too() {
    let found = cut("medium = \"t1\"\ninput = \"128 B\"\ncost-in = \"20 us\"", "\"udp\"", 1400).unwrap();
    assert_eq!((found.option.as_str(), found.limit.as_str()), ("link.trunk.input", "128 B"));
}

#[test]
fn a_queue_of_fewer_bytes_than_a_packet_cuts_it() {
    let found = cut("rate = \"1 Mbit/s\"\nqueue = { kind = \"fifo\", limit = \"500 B\" }", "\"udp\"", 1400);
    assert_eq!(found.map(|found| (found.chunk, found.largest)), Some((None, Bytes(500))));
}

#[test]
fn a_bucket_that_is_smaller_than_a_packet_cuts_it() {
    let found = cut(
        "rate = \"10 Mbit/s\"\ncommitted-rate = \"500 kbit/s\"\ncommitted-burst = \"1000 B\"",
        "\"udp\"",
        1222,
    );
    let found = found.unwrap();
    assert_eq!((found.option.as_str(), found.limit.as_str()), ("link.trunk.committed-burst", "1000 B"));
    assert_eq!(found.largest, Bytes(1000));
    // What the committed bucket tags is discarded by the peak bucket only.
    let tagged = cut(
        "rate = \"10 Mbit/s\"\ncommitted-rate = \"500 kbit/s\"\ncommitted-burst = \"1000 B\"\npeak-rate = \"1 Mbit/s\"\n\
         peak-burst = \"1200 B\"\npolicing = \"tag\"",
        "\"udp\"",
        1222,
    );
    assert_eq!(tagged.unwrap().option, "link.trunk.peak-burst");
}

#[test]
fn a_buffer_of_fewer_cells_than_a_packet_has_cuts_it() {
    let link = "medium = \"atm\"\nline = \"149.76 Mbit/s\"\nrate = \"1 Mbit/s\"\nbuffer = 2";
    let found = cut(link, "\"udp\"", 400).unwrap();
    assert_eq!((found.option.as_str(), found.limit.as_str()), ("link.trunk.buffer", "2 cells"));
}

#[test]
fn what_leaves_at_once_is_not_cut() {
    assert_eq!(
        cut("rate = \"1 Mbit/s\"\nqueue = { kind = \"fifo\", limit = \"1 packet\" }", "\"udp\"", 1400),
        None
    );
    assert_eq!(
        cut("medium = \"t1\"\nqueue = { kind = \"fifo\", limit = \"4 packets\" }", "\"sctp\"", 1400),
        None
    );
}

#[test]
fn a_window_of_blocks_is_counted_in_blocks() {
    let text = "name = \"blocks\"\nduration = \"1 s\"\n[hosts]\na = {}\nb = {}\n[link.trunk]\nbetween = [\"a\", \"b\"]\n\
                rate = \"1 Mbit/s\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\n\
                transport = { kind = \"urp\", window = 7, block = \"16 B\" }\nsource = { kind = \"voice\", samples = 16 }\n";
    let experiment = Experiment::parse(text, "blocks.toml", &()).unwrap();
    let limit = experiment.points[0].scenario.flows[0].meta.send_limit.clone().unwrap();
    assert_eq!((limit.blocks, limit.bytes), (Some(7), Bytes(112)));
}
