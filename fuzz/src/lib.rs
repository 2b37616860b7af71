//! The bodies of the fuzz targets: what must hold for any bytes. The targets give them to libFuzzer, the tests replay the
//! corpora through them.

/// A target: its corpus folder and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("dccp", dccp),
    ("experiment", experiment),
    ("framing", framing),
    ("quic", quic),
    ("rtp", rtp),
    ("sctp", sctp),
    ("tcp", tcp),
    ("urp", urp),
    ("wav", wav),
    ("xtp", xtp),
];

/// DCCP: no packets in any order make its codec or its state machine panic, deliver what was not sent, or deliver twice.
pub fn dccp(data: &[u8]) {
    trunkline_transport::dccp::fuzz_dccp(data);
}

/// The experiment file: any text is either an experiment or a list of problems, each with its position in the text.
pub fn experiment(data: &[u8]) {
    trunkline_experiment::fuzz_parse(data);
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

/// RTP: no datagrams make its codecs or a session panic or break the contract, and what the codecs read they write again.
pub fn rtp(data: &[u8]) {
    trunkline_transport::rtp::fuzz_rtp(data);
}

/// SCTP: no chunks, even of somebody who knows the tags, make an end panic or break the contract of endpoints.
pub fn sctp(data: &[u8]) {
    trunkline_transport::sctp::fuzz_sctp(data);
}

/// Classic TCP: no segments, even of somebody who knows the sequence numbers, make an end panic or break the contract of
/// endpoints.
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
