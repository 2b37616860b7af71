//! What must hold of TCP for any bytes: run by the fuzzer, by its corpus in the tests, and by proptest.

use trunkline_core::{Address, Duration, Ecn, Time};

use super::segment::{Header, Options};
use super::{BufferConfig, Nagle, TcpConfig, TcpEndpoint};
use crate::{Close, Conversation as _, Endpoint as _, Message};

const ENDS: [Address; 2] = [Address { host: 0, port: 1 }, Address { host: 1, port: 2 }];

/// Checks TCP on arbitrary bytes and panics where it breaks its contract: two ends, of which at least one has a
/// connection, survive any segments, near enough to the sequence numbers in use and with a right checksum so that they get
/// that far, and keep to the contract: they come to rest, and their next timeout is later than their last input.
///
/// The bytes are steps one after the other, each behind six: what is done, flags, how far the segment's numbers lie from those
/// that were sent last, its window, and the length of its data.
#[doc(hidden)]
pub fn fuzz_tcp(data: &[u8]) {
    let buffer = BufferConfig { initial: 4 << 10, max: 16 << 10 };
    let config = TcpConfig {
        receive_buffer: buffer,
        send_buffer: buffer,
        mss: 536,
        nagle: Nagle::Minshall,
        ..TcpConfig::default()
    };
    let [near, far] = ENDS;
    let mut ends = [TcpEndpoint::connect(near, far, config.clone(), 1), TcpEndpoint::listen(far, config, 2)]
        .map(|end| end.expect("the configuration is in range"));
    let (mut now, mut last, mut rest) = (Time::ZERO, [Header::default(); 2], data);
    exchange(&mut ends, now, &mut last, u32::MAX);
    while let Some((&[what, flags, sequence, acknowledgement, window, length], behind)) =
        rest.split_first_chunk()
    {
        let (data, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        let to = usize::from(what & 1);
        now += Duration::from_millis(u64::from(what >> 4) * u64::from(what >> 4));
        match what >> 1 & 7 {
            0 => drop(ends[to].send(now, Message::new(data))),
            1 => drop(ends[to].send(now, Message::new(&[what; 3000]))),
            2 if length == 0 => ends[to].close(now, if flags == 0 { Close::Abort } else { Close::Graceful }),
            _ => {
                let near_to = |number: u32, by: u8| number.wrapping_add_signed(i32::from(by as i8) * 40);
                let theirs = last[1 - to];
                let header = Header {
                    sequence: near_to(theirs.sequence, sequence),
                    acknowledgement: near_to(theirs.acknowledgement, acknowledgement),
                    flags: u16::from(flags & 0x3F) | u16::from(window & 7) << 6,
                    window: u16::from(window) << 5,
                    options: options(theirs, flags >> 6, sequence, window),
                };
                let mut packet = Vec::new();
                header.write(ENDS[1 - to], ENDS[to], [data, &[]], &mut packet);
                ends[to].handle_packet(now, ENDS[1 - to], Ecn::NotCapable, &packet);
            }
        }
        // Some of what follows is lost.
        exchange(&mut ends, now, &mut last, if what & 8 == 0 { u32::MAX } else { 1 });
        for end in &mut ends {
            end.handle_timeout(now);
        }
        exchange(&mut ends, now, &mut last, u32::MAX);
    }
}

/// Options of a segment after one with the header `last`: none, those of a SYN, a time stamp near the last one, or a block of
/// a selective acknowledgement near the acknowledged byte.
fn options(last: Header, kind: u8, place: u8, value: u8) -> Options {
    let mut options = Options::default();
    match kind {
        0 => {}
        1 => {
            options.mss = Some(value.into());
            options.window_scale = Some(place);
            options.sack_permitted = value & 1 != 0;
            options.timestamps = Some((value.into(), 0));
        }
        _ => {
            options.timestamps = last.options.timestamps.map(|(stamp, echo)| {
                (
                    stamp.wrapping_add_signed((value as i8).into()),
                    echo.wrapping_add_signed((place as i8).into()),
                )
            });
            let from = last.acknowledgement.wrapping_add_signed(i32::from(place as i8) * 67);
            if kind == 3 {
                options.sacks.push((from, from.wrapping_add_signed(i32::from(value as i8) * 67)));
            }
        }
    }
    options
}

/// Drains both ends, and gives each the first `passing` packets of the other; notes the last headers.
fn exchange(ends: &mut [TcpEndpoint; 2], now: Time, last: &mut [Header; 2], mut passing: u32) {
    let mut packet = Vec::new();
    let (mut is_idle, mut rounds) = (false, 0);
    while !core::mem::replace(&mut is_idle, true) {
        rounds += 1;
        assert!(rounds < 10_000, "the ends never come to rest");
        for side in 0..2 {
            let mut sent = 0;
            while ends[side].poll_transmit(now, &mut packet).is_some() {
                sent += 1;
                assert!(sent < 10_000, "an end sends for ever");
                let (header, _) =
                    Header::read(ENDS[side], ENDS[1 - side], &packet).expect("packets are well-formed");
                last[side] = header;
                if passing > 0 {
                    passing -= 1;
                    is_idle = false;
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
