//! The bodies of the fuzz targets: what must hold for any bytes. The targets give them to libFuzzer, the tests replay the
//! corpora through them.

use trunkline_audio::fec::{BlockDecoder, Code, RepeatDecoder};
use trunkline_audio::packet::Header;
use trunkline_audio::pipeline::{
    Block, Codec, DeviceFormat, NativeUnpacker, Packing, Player, PlayerSettings, Protection, Stream, Unpacker,
};
use trunkline_core::delivery_trace::{DeliveryTrace, Moment};
use trunkline_core::{Duration, Time};
use trunkline_experiment::{Experiment, NamedFiles};
use trunkline_learn::Way;
use trunkline_learn::import::capture::Source;
use trunkline_learn::import::{self, Clocks, ImportError, Learned};

/// A target: its corpus folder and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    #[cfg(target_os = "linux")]
    ("agent", agent),
    ("audio_packets", audio_packets),
    ("capture", capture),
    #[cfg(target_os = "linux")]
    ("control", control),
    ("dccp", dccp),
    ("delivery_trace", delivery_trace),
    ("experiment", experiment),
    ("fec", fec),
    ("foreign", foreign),
    #[cfg(target_os = "linux")]
    ("frames", frames),
    ("framing", framing),
    ("quic", quic),
    ("recording", recording),
    ("rtp", rtp),
    ("sctp", sctp),
    ("sdp", sdp),
    #[cfg(target_os = "linux")]
    ("session", session),
    ("tcp", tcp),
    ("urp", urp),
    ("wav", wav),
    ("xtp", xtp),
];

/// What agents and controllers say to each other, and pairing codes as people type them: no bytes panic or take memory ahead
/// of what comes, and what is read can be said again.
#[cfg(target_os = "linux")]
pub fn agent(data: &[u8]) {
    trunkline_control::fuzz_agent(data);
}

/// Packets of audio: no packets in any order, whole or in pieces, make their reader or the player behind it panic, or
/// play anything but bounded samples; every block that is handed over has the length that was agreed on.
pub fn audio_packets(data: &[u8]) {
    let opus = Codec::Opus { bitrate: 64_000, fec: false };
    let whole = Stream { channels: 2, sample_rate: 48_000, block_frames: 120, ..Stream::default() };
    let in_pieces = Stream { packing: Packing { fragment: Some(64), ..Packing::default() }, ..whole };
    let streams = [
        whole,
        in_pieces,
        Stream { protection: Protection::Repeat(1), ..whole },
        Stream { protection: Protection::Xor { data: 2 }, ..whole },
        Stream { protection: Protection::Xor { data: 3 }, ..in_pieces },
        Stream { codec: opus, ..whole },
        Stream { codec: opus, ..in_pieces },
    ];
    streams.iter().for_each(|stream| audio_packets_of(stream, data));
}

fn audio_packets_of(stream: &Stream, data: &[u8]) {
    let device = DeviceFormat { channels: 2, sample_rate: 44_100, block_frames: 64 };
    let mut unpacker = NativeUnpacker::new(stream).expect("the stream is a common one");
    let mut player =
        Player::new(stream, device, PlayerSettings::default()).expect("the stream is a common one");
    let (mut rest, mut now, mut delivered) = (data, Time::ZERO, 0);
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length)) % 1500;
        let (packet, others) = after.split_at(after.len().min(length));
        rest = others;
        now += Duration::from_micros(1_451);
        // Whose sender knows how to write a header, and its check.
        let (sequence, data) =
            packet.split_first_chunk().map_or((0, packet), |(s, d)| (u32::from_be_bytes(*s), d));
        let codec = if stream.codec == Codec::default() { 0 } else { 5 };
        let header = Header { sequence, captured: now, first_channel: 0, channels: 2, frames: 120, codec };
        let mut well_made = Vec::new();
        header.append(&mut well_made, |bytes| bytes.extend_from_slice(data));
        let mut deliver = |block: Block<'_>| {
            delivered += 1;
            assert_eq!(block.samples.len(), usize::from(block.channels) * stream.block_frames as usize);
            player.insert(block.arrived, block);
        };
        for packet in [packet, &well_made] {
            // What is malformed is said, and that is all that happens.
            let _ = unpacker.unpack(now, packet, &mut deliver);
        }
        if let Some(missing) = unpacker.missing().filter(|_| length % 3 == 0) {
            unpacker.release(missing.wrapping_add(1), &mut deliver);
        }
        let mut played = [0.0; 128];
        player.pull(now, &mut played);
        assert!(played.iter().all(|sample| sample.abs() < 100.0), "{played:?}");
    }
    assert_eq!(unpacker.counters().delivered, delivered);
}

/// Captures at one end and at both: any bytes are either a description that can be read, or refused in one line.
pub fn capture(data: &[u8]) {
    let learned = import::capture::one_end(Source { name: "a", from: &mut &*data });
    described(learned);
    // The same packets at both ends, and a part of them; and two different files.
    let parts = data.split_at(data.len() / 2);
    for (mut first, mut second) in [(data, data), (data, parts.0), parts] {
        let sources = [Source { name: "a", from: &mut first }, Source { name: "b", from: &mut second }];
        described(import::capture::both_ends(sources, Clocks::Apart));
    }
}

/// A description that was learned is TOML, and a refusal has one line.
fn described(learned: Result<Learned, ImportError>) {
    match learned {
        Ok(learned) => {
            let text = learned.to_toml("a", "now");
            let link =
                text.replace("[forward]", "[link.l.forward]").replace("[backward]", "[link.l.backward]");
            let file = format!(
                "name = \"a\"\nduration = \"1 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\nbetween = [\"a\", \"b\"]\n{}",
                link.replace("doc = ", "# doc = ")
            );
            let files: std::collections::BTreeMap<String, Vec<u8>> = learned
                .attachments
                .iter()
                .map(|attachment| (Learned::file_name("a", attachment), attachment.text.clone().into_bytes()))
                .collect();
            let read = Experiment::parse(&file, "a", &NamedFiles::from(files));
            assert!(
                read.is_ok(),
                "{}\n{file}",
                read.err().map_or_else(String::new, |problems| problems.to_string())
            );
        }
        Err(problem) => assert!(!problem.to_string().contains('\n'), "{problem}"),
    }
}

/// The control socket of a wire: no bytes bring it down, go unanswered, or set what loses packets uncounted.
#[cfg(target_os = "linux")]
pub fn control(data: &[u8]) {
    trunkline_wire::control::fuzz_control(data);
}

/// DCCP: no packets in any order make its codec or its state machine panic, deliver what was not sent, or deliver twice.
pub fn dccp(data: &[u8]) {
    trunkline_transport::dccp::fuzz_dccp(data);
}

/// Packet-delivery traces: any text is either a trace, which can be written and read again, or refused in one line.
pub fn delivery_trace(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match text.parse::<DeliveryTrace>() {
        Ok(trace) => {
            let moments = trace.moments();
            let times = core::iter::once(Duration::ZERO).chain(moments.iter().map(|moment| moment.at));
            assert!(times.clone().is_sorted_by(|before, at| before < at), "{moments:?}");
            assert_eq!(times.last(), Some(trace.period()));
            let lines = |moment: &Moment| {
                format!("{}\n", moment.at.as_nanos() / 1_000_000).repeat(moment.opportunities as usize)
            };
            let written: String = moments.iter().map(lines).collect();
            assert!(written.lines().count() <= text.lines().count(), "opportunities were invented");
            assert_eq!(written.parse(), Ok(trace));
        }
        Err(problem) => assert!(!problem.to_string().contains('\n'), "{problem}"),
    }
}

/// The experiment file: any text is either an experiment or a list of problems, each with its position in the text.
pub fn experiment(data: &[u8]) {
    trunkline_experiment::fuzz_parse(data);
}

/// Redundancy of audio packets: no packets in any order make a decoder panic, or hand out more than they can hold.
pub fn fec(data: &[u8]) {
    const MOST: usize = 64;
    let mut repeated = RepeatDecoder::new();
    let codes = [Code::Xor { data: 3 }, Code::ReedSolomon { data: 3, parity: 2 }];
    let mut blocks = codes.map(|code| BlockDecoder::new(code, MOST).expect("the code is a small one"));
    let mut rest = data;
    while let Some((length, after)) = rest.split_first() {
        let (packet, others) = after.split_at(after.len().min(usize::from(*length)));
        rest = others;
        let mut held = 0;
        // What is malformed is said, and that is all that happens.
        let _ = repeated.decode(packet, |delivered| held += delivered.payload.len());
        assert!(held <= packet.len(), "{held} of {}", packet.len());
        for decoder in &mut blocks {
            let _ = decoder.decode(packet, |delivered| assert!(delivered.payload.len() <= MOST));
        }
    }
}

/// Packets of other programs that carry audio: no packets in any order make an unpacker panic, or hand out blocks that
/// they do not hold.
pub fn foreign(data: &[u8]) {
    trunkline_audio::foreign::fuzz_foreign(data);
}

/// A link of a wire: no frames make its relay panic, lose them uncounted, or change more of them than their mark.
#[cfg(target_os = "linux")]
pub fn frames(data: &[u8]) {
    trunkline_wire::relay::fuzz_frames(data);
}

/// Message framing: no bytes make the reader of a stream panic, grow, or invent messages.
pub fn framing(data: &[u8]) {
    trunkline_transport::framing::fuzz_deframer(data);
}

/// QUIC: whatever becomes of its packets, neither end panics, breaks the contract of endpoints, or hands over what was not
/// sent.
pub fn quic(data: &[u8]) {
    trunkline_adapters::quic::fuzz_quic(data);
}

/// Recordings that are not captures (iBoxNet's profiles, traces and logs of mahimahi and Pantheon): as for captures.
pub fn recording(data: &[u8]) {
    let _ = import::recognise(data);
    described(import::iboxnet::read("a", data));
    described(import::delivery::read_log("a", Way::Forward, data));
    let text = String::from_utf8_lossy(data);
    described(import::delivery::read_traces(&["a"], &[&text]).map_err(|(_, problem)| problem));
}

/// RTP: no datagrams make its codecs or a session panic or break the contract, and what the codecs read they write again.
pub fn rtp(data: &[u8]) {
    trunkline_transport::rtp::fuzz_rtp(data);
}

/// SCTP: no chunks, even of somebody who knows the tags, make an end panic or break the contract of endpoints.
pub fn sctp(data: &[u8]) {
    trunkline_transport::sctp::fuzz_sctp(data);
}

/// Session descriptions: any text is either audio, which can be written and read again, or refused with the place of a
/// mistake.
pub fn sdp(data: &[u8]) {
    trunkline_audio::sdp::fuzz_sdp(&String::from_utf8_lossy(data));
}

/// The control connection of a session: no bytes make either end's reader panic or take memory ahead of what comes, and a
/// message that is read is read again after it was written.
#[cfg(target_os = "linux")]
pub fn session(data: &[u8]) {
    trunkline_calls::fuzz_control(data);
}

/// TCP: no segments, even of somebody who knows the sequence numbers, make an end panic or break the contract of endpoints.
pub fn tcp(data: &[u8]) {
    trunkline_transport::tcp::fuzz_tcp(data);
}

/// URP: no packets make an endpoint panic or break the contract of endpoints, and what the codec reads it writes again.
pub fn urp(data: &[u8]) {
    trunkline_transport::urp::fuzz_urp(data);
}

/// WAV: any bytes are either samples or a sentence that says why not.
pub fn wav(data: &[u8]) {
    if let Ok(pcm) = trunkline_audio::wav::read_pcm(data) {
        let lengths: Vec<usize> = pcm.channels.iter().map(Vec::len).collect();
        assert!(lengths.windows(2).all(|pair| pair[0] == pair[1]), "channels differ in length: {lengths:?}");
        // More samples than bytes would mean that they were invented.
        assert!(lengths.iter().sum::<usize>() <= data.len());
    }
}

/// XTP: no packets in any order make its codec or the state machine of any service panic or break the contract of
/// endpoints.
pub fn xtp(data: &[u8]) {
    trunkline_transport::xtp::fuzz_xtp(data);
}
