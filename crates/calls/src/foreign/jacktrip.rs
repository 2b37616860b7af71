//! JackTrip: as its peer of either kind, and as a client of its hub.
//!
//! A client sends to the server's port; the server answers to where that came from. Both send blocks all the time, and a
//! peer is known by the header of the first. A hub first gives each client a port of its own, over TCP.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::BorrowedFd;

use trunkline_audio::foreign::jacktrip::{
    EXIT, Header, JackTripPacker, JackTripUnpacker, PORT, Resolution, is_exit,
};
use trunkline_audio::format::Encoding;
use trunkline_audio::pipeline::{Block, Codec, Packer as _, Stream};
use trunkline_audio::playout::Origin;
use trunkline_core::{Duration, Time};
use trunkline_io::udp::{self, set_receive_timeout};
use trunkline_io::{Interest, clock, pace};
use trunkline_transport::{Features, features};

use super::socket;
use super::{Foreign, ForeignError};
use crate::line::Ended;
use crate::line::queued::{Carrier, Offer, Queued};
use crate::line::udp::{Peer, UdpCarrier};
use crate::server::Peers;
use crate::settings::Settings;

/// How samples of a codec are written, if JackTrip can.
pub(crate) fn resolution(codec: Codec) -> Option<Resolution> {
    match codec {
        Codec::Pcm(Encoding::I16) => Some(Resolution::Bits16),
        Codec::Pcm(Encoding::I24) => Some(Resolution::Bits24),
        Codec::Pcm(Encoding::F32) => Some(Resolution::Bits32),
        Codec::Pcmu | Codec::Pcma | Codec::Opus { .. } => None,
    }
}

/// Who has not sent anything for so long has gone without a word.
const SILENCE: Duration = Duration::from_secs(10);

/// How this end speaks.
#[derive(Clone, Copy, Debug)]
pub struct JackTripOptions {
    /// How samples are written, by both ends.
    pub resolution: Resolution,
    /// Packets in each datagram: 1 for the newest alone.
    pub redundancy: usize,
    /// How the socket is set up.
    pub settings: Settings,
}

impl Default for JackTripOptions {
    /// JackTrip's own: 16 bits, no redundancy.
    fn default() -> JackTripOptions {
        JackTripOptions { resolution: Resolution::Bits16, redundancy: 1, settings: Settings::default() }
    }
}

/// Calls a `jacktrip -s` at `HOST` or `HOST:PORT`, and sends it `stream`, whose codec does not matter. When it returns,
/// the server has answered.
///
/// # Errors
/// It does not, or not as JackTrip; JackTrip has no such stream; the system refuses the socket.
pub fn call(
    server: &str,
    stream: &Stream,
    options: &JackTripOptions,
    patience: Duration,
) -> Result<Foreign, ForeignError> {
    let peer = socket::resolve(server, PORT)?;
    let socket = open(SocketAddr::new(socket::any(peer.ip()), 0), options)?;
    converse(socket, peer, stream, options, patience)
}

/// The same with a `jacktrip -S`, a hub, which mixes what its clients send; `name` is how it calls this client.
///
/// # Errors
/// As with [`call`]; the hub asks for a password.
pub fn call_hub(
    hub: &str,
    name: &str,
    stream: &Stream,
    options: &JackTripOptions,
    patience: Duration,
) -> Result<Foreign, ForeignError> {
    let hub = socket::resolve(hub, PORT)?;
    let socket = open(SocketAddr::new(socket::any(hub.ip()), 0), options)?;
    let failed = ForeignError::socket(format!("cannot connect to the hub at {hub}"));
    let port = match socket.local_addr().and_then(|local| ask_hub(hub, local.port(), name, patience)) {
        Ok(answer) => u16::try_from(answer).map_err(|_| ForeignError::Refused {
            address: hub,
            // Codes beyond all ports (jacktrip 1.7, `Auth.h`).
            reason: format!("the hub requires a password, or refuses for another reason (code {answer})"),
        })?,
        Err(error) => return Err(failed(error)),
    };
    converse(socket, SocketAddr::new(hub.ip(), port), stream, options, patience)
}

/// Waits at this address for a `jacktrip -c` until `is_stopped`, and answers as it speaks: with its sample rate, blocks and channels, its
/// resolution and its redundancy. Peers that are not served get no answer. `None` if it was stopped before one came.
///
/// Nothing proves that who calls is there, so hardly more is sent than has come from there.
///
/// # Errors
/// It wants other channels than it sends; the system refuses the socket.
pub fn answer(
    local: SocketAddr,
    options: &JackTripOptions,
    peers: &Peers,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<Foreign>, ForeignError> {
    let socket = open(local, options)?;
    let mut datagram = vec![0; MOST_DATAGRAM];
    while !is_stopped() {
        let Some((header, length, peer)) = hear(&socket, &mut datagram) else { continue };
        if !peers.include(peer.ip()) {
            continue;
        }
        let redundancy = (length / header.packet_bytes()).max(1);
        let options = JackTripOptions { resolution: header.resolution, redundancy, ..*options };
        let stream = Stream {
            channels: header.channels.into(),
            sample_rate: header.sample_rate,
            block_frames: header.frames.into(),
            ..Stream::default()
        };
        let packer = packer(&stream, header.channels, &options)?;
        return Met { socket, peer, header }.converse(&stream, packer, &options, Some(length)).map(Some);
    }
    Ok(None)
}

const MOST_DATAGRAM: usize = 65_536;

/// So often a call looks whether it is answered, and an answer whether it is stopped.
const LOOK: Duration = Duration::from_millis(100);

fn open(local: SocketAddr, options: &JackTripOptions) -> Result<UdpSocket, ForeignError> {
    let opened = udp::open(local, None, socket::options(&options.settings)).and_then(|(socket, _)| {
        set_receive_timeout(&socket, LOOK)?;
        Ok(socket)
    });
    opened.map_err(ForeignError::socket(format!("cannot open {local} for JackTrip")))
}

/// Says to a hub at which port this end is, and who; it answers with a port, or with a code beyond all ports.
fn ask_hub(hub: SocketAddr, port: u16, name: &str, patience: Duration) -> io::Result<u32> {
    let mut connection = TcpStream::connect_timeout(&hub, patience.to_std())?;
    connection.set_read_timeout(Some(patience.to_std()))?;
    let mut question = u32::from(port).to_le_bytes().to_vec();
    let end = name.floor_char_boundary(HUB_NAME - 1);
    question.extend_from_slice(&name.as_bytes()[..end]);
    question.resize(4 + HUB_NAME, 0);
    connection.write_all(&question)?;
    let mut answer = [0; 4];
    connection.read_exact(&mut answer)?;
    Ok(u32::from_le_bytes(answer))
}

/// Bytes of a client's name, its final zero among them.
const HUB_NAME: usize = 64;

/// A datagram of JackTrip, whose it is, and how long.
fn hear(socket: &UdpSocket, datagram: &mut [u8]) -> Option<(Header, usize, SocketAddr)> {
    // Errors tell of packets of ours that found nobody.
    let (length, peer) = socket.recv_from(datagram).ok()?;
    let header = Header::decode(&datagram[..length])?;
    let is_whole = header.frames > 0 && header.channels > 0 && length >= header.packet_bytes();
    is_whole.then_some((header, length, peer))
}

/// Sends silence until the peer answers.
fn converse(
    socket: UdpSocket,
    peer: SocketAddr,
    stream: &Stream,
    options: &JackTripOptions,
    patience: Duration,
) -> Result<Foreign, ForeignError> {
    stream.check()?;
    let mut packer = packer(stream, stream.channels.min(255) as u8, options)?;
    let silence = vec![0.0; usize::from(stream.channels) * stream.block_frames as usize];
    let failed = || ForeignError::socket(format!("cannot connect to JackTrip at {peer}"));
    socket.connect(peer).map_err(failed())?;
    socket.set_nonblocking(true).map_err(failed())?;
    let mut datagram = vec![0; MOST_DATAGRAM];
    let began = crate::now();
    let mut sequence = 0u32;
    loop {
        let now = crate::now();
        if let Some((header, _, _)) = hear(&socket, &mut datagram) {
            if header.sample_rate != stream.sample_rate || header.resolution != options.resolution {
                let reason = format!(
                    "it sends {} bits at {} Hz, but this end {} bits at {} Hz: both must be equal",
                    8 * header.resolution.bytes(),
                    header.sample_rate,
                    8 * options.resolution.bytes(),
                    stream.sample_rate
                );
                return Err(ForeignError::Refused { address: peer, reason });
            }
            packer.count_from(sequence as u16);
            return Met { socket, peer, header }.converse(stream, packer, options, None);
        }
        if now.since(began) > patience {
            return Err(ForeignError::NotHeard { address: peer, patience });
        }
        let block = Block {
            sequence,
            captured: now,
            arrived: Time::ZERO,
            first_channel: 0,
            channels: stream.channels,
            samples: &silence,
            origin: Origin::Sent,
        };
        // A server that is not there yet may come.
        packer.pack(&block, &mut |datagram| drop(socket.send(datagram)));
        sequence += 1;
        pace::sleep(stream.block_duration());
    }
}

fn packer(stream: &Stream, wanted: u8, options: &JackTripOptions) -> Result<JackTripPacker, ForeignError> {
    let epoch = (clock::realtime_offset() / 1000).max(0) as u64;
    Ok(JackTripPacker::new(stream, options.resolution, wanted, options.redundancy, epoch)?)
}

/// A peer of which a datagram has come.
struct Met {
    socket: UdpSocket,
    peer: SocketAddr,
    header: Header,
}

impl Met {
    /// Sends it blocks of `stream`, and receives them.
    fn converse(
        self,
        stream: &Stream,
        packer: JackTripPacker,
        options: &JackTripOptions,
        credit: Option<usize>,
    ) -> Result<Foreign, ForeignError> {
        let Met { socket, peer, header } = self;
        stream.check()?;
        if u16::from(header.channels) != stream.channels || header.wanted != header.channels {
            let Header { channels, wanted, .. } = header;
            let expected = stream.channels;
            let reason = format!(
                "it sends {channels} channels and expects {wanted}; both must be {expected}, as with \
                `jacktrip -n {expected}`"
            );
            return Err(ForeignError::Refused { address: peer, reason });
        }
        let set_up = socket.connect(peer).and_then(|()| socket::set_up(&socket, &options.settings));
        let local = set_up.and_then(|()| socket.local_addr());
        let local = local.map_err(ForeignError::socket(format!("cannot set up a socket for {peer}")))?;
        let udp = UdpCarrier::new(socket, Peer::Known(peer), &features::UDP);
        let carrier = JackTripCarrier { udp, heard: crate::now(), credit };
        Ok(Foreign {
            line: Box::new(Queued::new(carrier, options.settings.send_timeout)),
            sends: Some((*stream, Box::new(packer))),
            receives: Some((*stream, Box::new(JackTripUnpacker::new(stream)))),
            local,
            peer,
        })
    }
}

/// UDP with a peer that says when it leaves.
struct JackTripCarrier {
    udp: UdpCarrier,
    heard: Time,
    /// Bytes that may still be sent, if not any number.
    credit: Option<usize>,
}

/// What is kept of it when the peer is heard and has nothing to hear.
const MOST_CREDIT: usize = 1 << 20;

impl Carrier for JackTripCarrier {
    fn descriptors<'l>(&'l self, waits: bool, add: &mut dyn FnMut(BorrowedFd<'l>, Interest)) {
        self.udp.descriptors(waits, add);
    }

    fn offer(&mut self, now: Time, packet: &[u8]) -> Offer {
        match &mut self.credit {
            Some(credit) if *credit < packet.len() => return Offer::Lost,
            Some(credit) => *credit -= packet.len(),
            None => {}
        }
        self.udp.offer(now, packet)
    }

    fn receive(
        &mut self,
        now: Time,
        strays: &mut u64,
        arrived: &mut dyn FnMut(Time, &[u8]),
    ) -> Result<(), Ended> {
        let JackTripCarrier { udp, heard, credit } = self;
        let mut leaves = false;
        udp.receive(now, strays, &mut |at, packet| {
            *heard = at;
            if let Some(credit) = credit {
                // A little more: our clock may be faster than the peer's.
                *credit = (*credit + packet.len() + packet.len() / 16).min(MOST_CREDIT);
            }
            if is_exit(packet) {
                leaves = true;
            } else {
                arrived(at, packet);
            }
        })?;
        if leaves {
            Err(Ended("JackTrip at the other end has disconnected".to_owned()))
        } else if now.since(*heard) > SILENCE {
            Err(Ended(format!("JackTrip at the other end has sent nothing for {SILENCE}")))
        } else {
            Ok(())
        }
    }

    fn next_timeout(&self, waits: bool) -> Option<Time> {
        let silence = self.heard + SILENCE;
        Some(self.udp.next_timeout(waits).map_or(silence, |due| due.min(silence)))
    }

    fn features(&self) -> &'static Features {
        self.udp.features()
    }

    fn largest(&self) -> usize {
        self.udp.largest()
    }

    /// Twice, as JackTrip does: one may be lost.
    fn close(&mut self, now: Time) {
        for _ in 0..2 {
            self.udp.offer(now, &EXIT);
        }
    }
}
