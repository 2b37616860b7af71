//! Audio over RTP, as a session description says.

use std::io;
use std::net::{IpAddr, SocketAddr};

use trunkline_audio::foreign::rtp::{RtpPacker, RtpStart, RtpUnpacker};
use trunkline_audio::pipeline::Stream;
use trunkline_audio::sdp::Media;
use trunkline_io::multicast::Group;
use trunkline_io::udp;
use trunkline_transport::features;

use super::rtcp::Reported;
use super::socket::{self, Listener};
use super::{Foreign, ForeignError};
use crate::line::queued::Queued;
use crate::line::udp::{Peer, UdpCarrier};
use crate::settings::Settings;

/// Sends a stream to where `media` says, from this address: that of the interface where its group is, or an unspecified one
/// for the system to choose. The stream is one that [`Media::of`] or [`Media::stream`] knows.
///
/// # Errors
/// The stream has no format in RTP, or the system refuses the socket.
pub fn send(
    media: &Media,
    stream: &Stream,
    from: IpAddr,
    settings: &Settings,
) -> Result<Foreign, ForeignError> {
    stream.check()?;
    let peer = SocketAddr::new(media.address, media.port);
    if Media::of(stream, peer).is_none() {
        return Err(ForeignError::NoFormat);
    }
    let options = socket::options(settings);
    let opened = if media.address.is_multicast() {
        spoken(peer, from, media).speak(from, options).and_then(|(socket, _)| {
            socket.connect(peer)?;
            Ok(socket)
        })
    } else {
        udp::open(SocketAddr::new(from, 0), Some(peer), options).map(|(socket, _)| socket)
    };
    let opened = opened.and_then(|socket| socket::set_up(&socket, settings).map(|()| socket));
    let socket = opened.map_err(ForeignError::socket(format!("cannot send RTP to {peer} from {from}")))?;
    let local = socket.local_addr().map_err(ForeignError::socket("a socket has no address"))?;
    let [a, b, c, d, e, f, g, h, i, j] = socket::random()?;
    let start = RtpStart {
        payload_type: media.payload_type,
        ssrc: u32::from_be_bytes([a, b, c, d]),
        sequence: u16::from_be_bytes([e, f]),
        timestamp: u32::from_be_bytes([g, h, i, j]),
    };
    let carrier = UdpCarrier::new(socket, Peer::Known(peer), &features::UDP);
    let in_group = media.address.is_multicast().then(|| spoken(peer, from, media));
    let carrier = Reported::sender(carrier, media, stream, local, in_group, options)?;
    Ok(Foreign {
        line: Box::new(Queued::new(carrier, settings.send_timeout)),
        sends: Some((*stream, Box::new(RtpPacker::new(stream, start)?))),
        receives: None,
        local,
        peer,
    })
}

/// Hears what is sent to the address of `media`; a group is joined on the interface with the address `on`, or where the system
/// chooses if that is unspecified.
///
/// # Errors
/// The stream is out of bounds, or the system refuses the socket.
pub fn receive(media: &Media, on: IpAddr, settings: &Settings) -> Result<Foreign, ForeignError> {
    let stream = media.stream();
    stream.check()?;
    let peer = SocketAddr::new(media.address, media.port);
    let options = socket::options(settings);
    let opened = if media.address.is_multicast() {
        group(peer, on).listen(options)
    } else {
        // What is announced is how the sender sees this host, which may not know itself by that address.
        udp::open(peer, None, options).or_else(|error| match error.kind() {
            io::ErrorKind::AddrNotAvailable => {
                udp::open(SocketAddr::new(socket::any(media.address), media.port), None, options)
            }
            _ => Err(error),
        })
    };
    let opened = opened.and_then(|(socket, _)| socket.set_nonblocking(true).map(|()| socket));
    let socket = opened.map_err(ForeignError::socket(format!("cannot receive RTP for {peer}")))?;
    let local = socket.local_addr().map_err(ForeignError::socket("a socket has no address"))?;
    let unpacker = RtpUnpacker::new(&stream, media.payload_type)?;
    let in_group = media.address.is_multicast().then(|| spoken(peer, on, media));
    let listener = Listener::new(socket, media.sources.clone());
    let carrier = Reported::receiver(listener, media, local, on, in_group, options)?;
    Ok(Foreign {
        line: Box::new(Queued::new(carrier, settings.send_timeout)),
        sends: None,
        receives: Some((stream, Box::new(unpacker))),
        local,
        peer,
    })
}

/// A group to which is sent.
fn spoken(address: SocketAddr, from: IpAddr, media: &Media) -> Group {
    Group { hops: media.ttl.unwrap_or(1), ..group(address, from) }
}

fn group(address: SocketAddr, on: IpAddr) -> Group {
    match on {
        IpAddr::V4(interface) => Group::new(address).on(interface),
        IpAddr::V6(_) => Group::new(address),
    }
}
