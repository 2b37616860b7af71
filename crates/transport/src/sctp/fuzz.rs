//! What must hold of SCTP for any bytes: run by the fuzzer, by its corpus in the tests, and by proptest.

use trunkline_core::{Address, Duration, Ecn, Time};

use super::wire::{self, Header};
use super::{Reliability, SctpConfig, SctpEndpoint};
use crate::{Close, Conversation as _, Endpoint as _, Message};

const ENDS: [Address; 2] = [Address { host: 0, port: 1 }, Address { host: 1, port: 2 }];

/// Checks SCTP on arbitrary bytes and panics where it breaks its word: two ends, of which at least one has an association,
/// survive any chunks, behind a header with the right ports, tag and checksum so that they get that far, and keep to the
/// contract: their next timeout is later than their last input.
///
/// The bytes are steps one after the other, each behind two bytes: what is done, and the length of the chunks.
#[doc(hidden)]
pub fn fuzz_sctp(data: &[u8]) {
    let config = SctpConfig {
        streams: 2,
        window: 8 << 10,
        max_packet: 600,
        reliability: Reliability::Retransmissions(1),
        ..SctpConfig::default()
    };
    let [near, far] = ENDS;
    let mut ends = [SctpEndpoint::connect(near, far, &config, 1), SctpEndpoint::listen(far, &config, 2)]
        .map(|end| end.expect("the configuration is in range"));
    let (mut now, mut tags, mut rest) = (Time::ZERO, [0; 2], data);
    exchange(&mut ends, now, &mut tags, u32::MAX);
    while let Some((&[what, length], behind)) = rest.split_first_chunk() {
        let (chunks, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        let to = usize::from(what & 1);
        now += Duration::from_millis(u64::from(what >> 4) * u64::from(what >> 4));
        match what >> 1 & 7 {
            0 => drop(ends[to].send(now, Message::new(chunks))),
            1 => drop(ends[to].send(now, Message::new(&[what; 2000]))),
            2 if length == 0 => ends[to].close(now, Close::Graceful),
            _ => {
                let from = ENDS[1 - to];
                let mut packet = Vec::new();
                wire::begin(&mut packet, from.port, ENDS[to].port, tags[to]);
                packet.extend_from_slice(chunks);
                wire::seal(&mut packet);
                ends[to].handle_packet(now, from, Ecn::NotCapable, &packet);
            }
        }
        // Some of what follows is lost.
        exchange(&mut ends, now, &mut tags, if what & 8 == 0 { u32::MAX } else { 1 });
        for end in &mut ends {
            end.handle_timeout(now);
        }
        exchange(&mut ends, now, &mut tags, u32::MAX);
    }
}

/// Drains both ends, and gives each the first `passing` packets of the other; notes the tags that they want.
fn exchange(ends: &mut [SctpEndpoint; 2], now: Time, tags: &mut [u32; 2], mut passing: u32) {
    let mut packet = Vec::new();
    let mut idle = false;
    let mut rounds = 0;
    while !idle {
        idle = true;
        rounds += 1;
        assert!(rounds < 10_000, "the ends never come to rest");
        for side in 0..2 {
            while ends[side].poll_transmit(now, &mut packet).is_some() {
                let (header, _) = Header::verify(&packet).expect("packets are well-formed");
                if header.tag != 0 {
                    tags[1 - side] = header.tag;
                }
                if passing > 0 {
                    passing -= 1;
                    idle = false;
                    ends[1 - side].handle_packet(now, ENDS[side], Ecn::NotCapable, &packet);
                }
            }
            while ends[side].poll_event().is_some() {}
            packet.clear();
            while ends[side].receive(&mut packet).is_some() {}
        }
    }
    for end in ends {
        while end.poll_transmit(now, &mut packet).is_some() {}
        assert!(end.next_timeout().is_none_or(|next| next > now));
    }
}
