//! What must hold of RTP for any bytes: run by the fuzzer, by its corpus in the tests, and by proptest.

use trunkline_core::{Duration, Seed, Time};

use super::rtcp::{RtcpPacket, decode_compound, encode_report};
use super::wire::{RtpPacket, is_rtcp};
use super::{Arrival, PayloadFormat, RtpConfig, RtpSession};

/// Checks RTP on arbitrary bytes and panics where it breaks its word:
/// 1. what the codec of data packets takes, it writes again as the same bytes but for what stands in the padding, and
///    reports keep what they say;
/// 2. a session survives any datagrams and keeps to the contract: its next timeout is later than its last input, and
///    what it sends, it could read;
///
/// The bytes are datagrams one after the other, each behind a byte with its length.
#[doc(hidden)]
pub fn fuzz_rtp(data: &[u8]) {
    let stream = Seed::new(1, 0).stream("fuzz");
    let config = RtpConfig::new(PayloadFormat::PCMU, stream);
    let mut session = RtpSession::new(config).expect("the configuration is in range");
    let mut now = Time::ZERO;
    let mut rest = data;
    while let Some((&length, behind)) = rest.split_first() {
        let (datagram, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        check_codecs(datagram);
        now += Duration::from_millis(u64::from(length) * 7);
        match session.handle(now, datagram) {
            Arrival::Data(packet) => assert_eq!(RtpPacket::decode(datagram), Some(packet)),
            Arrival::Control => assert!(is_rtcp(datagram)),
            Arrival::Dropped => {}
        }
        if length.is_multiple_of(8) {
            let mut packet = Vec::new();
            session.write(now, datagram, &mut packet);
            let sent = RtpPacket::decode(&packet).expect("it can be read");
            assert_eq!(sent.payload, datagram);
            assert!(!is_rtcp(&packet));
        }
        settle(&mut session, now);
        session.handle_timeout(now);
        settle(&mut session, now);
        if length == 255 {
            session.leave();
        }
        settle(&mut session, now);
    }
}

fn check_codecs(datagram: &[u8]) {
    let mut written = Vec::new();
    if let Some(packet) = RtpPacket::decode(datagram) {
        packet.encode(&mut written);
        let same = datagram.len() - usize::from(packet.padding);
        assert_eq!(written[..same], datagram[..same], "{packet:?}");
        assert_eq!(RtpPacket::decode(&written), Some(packet));
    }
    for part in decode_compound(datagram).into_iter().flatten() {
        written.clear();
        let (ssrc, info, blocks) = match part {
            RtcpPacket::SenderReport { ssrc, info, blocks } => (ssrc, Some(info), blocks),
            RtcpPacket::ReceiverReport { ssrc, blocks } => (ssrc, None, blocks),
            RtcpPacket::Description(chunks) => {
                assert!(chunks.count() <= 31);
                continue;
            }
            RtcpPacket::Bye { .. } | RtcpPacket::Other { .. } => continue,
        };
        let blocks: Vec<_> = blocks.collect();
        encode_report(ssrc, info.as_ref(), &blocks, &mut written);
        let mut parts = decode_compound(&written).expect("it was written by us");
        let again = match parts.next() {
            Some(RtcpPacket::SenderReport { ssrc, info, blocks }) => (ssrc, Some(info), blocks.collect()),
            Some(RtcpPacket::ReceiverReport { ssrc, blocks }) => (ssrc, None, blocks.collect()),
            other => panic!("a report became {other:?}"),
        };
        assert_eq!((ssrc, info, blocks), again);
        assert!(parts.next().is_none());
    }
}

/// Drains a session as a driver does.
fn settle(session: &mut RtpSession, now: Time) {
    let mut packet = Vec::new();
    let mut packets = 0;
    while session.poll_control(now, &mut packet) {
        assert!(is_rtcp(&packet) && decode_compound(&packet).is_some());
        packet.clear();
        packets += 1;
        assert!(packets < 3, "sends without end");
    }
    assert!(session.next_timeout().is_none_or(|next| next > now));
}
