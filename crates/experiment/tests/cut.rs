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
    Experiment::parse(&text, "cut.toml", &()).unwrap().points.first().scenario.cut_by(0)
}

/// Headers of UDP and IP.
const HEADERS: u64 = 28;

#[test]
fn a_trunk_whose_memory_holds_fewer_chunks_than_a_packet_has_cuts_it() {
    let link = "medium = \"t1\"\noutput = \"0 B\"\nqueue = { kind = \"fifo\", limit = \"4 packets\" }\nloss = \"50 %\"";
    let found = cut(link, "\"udp\"", 1400).unwrap();
    assert_eq!((found.option.as_str(), found.limit.as_str()), ("link.trunk.queue.limit", "4 packets"));
    assert_eq!((found.chunk, found.packet), (Some(Bytes(64)), Bytes(1400 + HEADERS)));
    // While it comes off the backplane some of it leaves.
    let largest = found.largest.count();
    assert!((4 * 64..1400 + HEADERS).contains(&largest), "{largest}");
    let message = (largest - HEADERS) as u32;
    assert_eq!(cut(link, "\"udp\"", message), None);
    assert_eq!(cut(link, "\"udp\"", message + 1), Some(CutBy { packet: Bytes(largest + 1), ..found }));
    assert_eq!(cut("medium = \"t1\"", "\"udp\"", 1400), None);
}

/// Messages of a kilobyte would pass one by one, but a stream that always has more to send fills its packets.
#[test]
fn the_full_packets_of_a_stream_are_cut() {
    let of = |source: &str| {
        let text = format!(
            "name = \"cut\"\nduration = \"1 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\nbetween = [\"a\", \"b\"]\n\
             medium = \"t1\"\n[flow.data]\nfrom = \"a\"\nto = \"b\"\ntransport = \"tcp\"\nsource = {source}\n"
        );
        Experiment::parse(&text, "cut.toml", &()).unwrap().points.first().scenario.cut_by(0)
    };
    let found = of("{ kind = \"bulk\", message = \"1000 B\" }").unwrap();
    assert_eq!((found.option.as_str(), found.limit.as_str()), ("link.trunk.input", "4000 B"));
    assert!(found.packet > Bytes(60_000) && found.largest < Bytes(60_000), "{found:?}");
    assert_eq!(of("{ kind = \"load\", message = \"1000 B\", interval = \"20 ms\" }"), None);
    assert_eq!(of("{ kind = \"bulk\", message = \"1000 B\", messages = 1 }"), None);
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
    // The message alone would fit.
    let found = cut("rate = \"1 Mbit/s\"\nqueue = { kind = \"fifo\", limit = \"1010 B\" }", "\"udp\"", 1000);
    assert_eq!(found.map(|found| (found.packet, found.largest)), Some((Bytes(1028), Bytes(1010))));
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
fn a_threshold_for_tagged_cells_is_told_from_the_buffer() {
    let link = "medium = \"atm\"\nrate = \"1 Mbit/s\"\nscr = \"424 kbit/s\"\nmbs = 1\npolicing = \"tag\"\nbuffer = 20\n\
                clp-threshold = 5";
    let found = cut(link, "\"udp\"", 452).unwrap();
    assert_eq!((found.option.as_str(), found.limit.as_str()), ("link.trunk.clp-threshold", "5 cells"));
    assert_eq!(cut(&link.replace("clp-threshold = 5", "clp-threshold = 20"), "\"udp\"", 452), None);
    let found = cut(&link.replace("buffer = 20", "buffer = 8"), "\"udp\"", 452).unwrap();
    assert_eq!((found.option.as_str(), found.limit.as_str()), ("link.trunk.buffer", "8 cells"));
}

#[test]
fn the_buffer_of_a_switch_cuts_too() {
    let found = cut("medium = \"ethernet\"\nswitch-buffer = \"900 B\"", "\"udp\"", 1000).unwrap();
    assert_eq!((found.option.as_str(), found.limit.as_str()), ("link.trunk.switch-buffer", "900 B"));
    assert_eq!(found.largest, Bytes(900));
    assert_eq!(cut("medium = \"ethernet\"", "\"udp\"", 1000), None);
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
    let limit = experiment.points.first().scenario.flows[0].meta.send_limit.clone().unwrap();
    assert_eq!((limit.blocks, limit.bytes), (Some(7), Bytes(112)));
}
