//! Reports beside the RTP of another program (RFC 3550 section 6), on the port above its own (section 11).

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};

use trunkline_audio::pipeline::{Codec, Stream};
use trunkline_audio::sdp::Media;
use trunkline_core::{Rate, Seed, Time};
use trunkline_io::multicast::Group;
use trunkline_io::udp::SocketOptions;
use trunkline_io::{Interest, clock, udp};
use trunkline_transport::Features;
use trunkline_transport::rtp::{PayloadFormat, PeerReport, Reporting, RtpConfig, RtpSession, is_rtcp};

use super::{ForeignError, socket};
use crate::line::queued::{Carrier, Offer};
use crate::line::{Ended, Packets};

/// Maximum number of reports that one call takes from the kernel.
const BATCH: usize = 32;
/// Longer reports are cut, and then refused as malformed.
const MOST_REPORT: usize = 2048;
/// Seconds from the beginning of NTP's time to that of Unix's.
const NTP_TO_UNIX: u64 = 2_208_988_800;

/// A carrier of RTP with its reports. Without a port for them there are none, which RTP allows.
pub(super) struct Reported<C> {
    carrier: C,
    control: Option<Control>,
    buffer: Vec<u8>,
}

/// The sockets of the reports, and what is said in them.
struct Control {
    session: RtpSession,
    listens: UdpSocket,
    /// In a group, the socket that sends.
    speaks: Option<UdpSocket>,
    /// Destination of reports. A receiver outside a group learns it from the sender's reports.
    to: Option<SocketAddr>,
    /// The hosts whose reports are heard; everybody if there are none.
    sources: Vec<IpAddr>,
}

impl<C> Reported<C> {
    /// The reports of a sender at `local` to the address of `media`.
    pub(super) fn sender(
        carrier: C,
        media: &Media,
        stream: &Stream,
        local: SocketAddr,
        group: Option<Group>,
        options: SocketOptions,
    ) -> Result<Reported<C>, ForeignError> {
        let to = control_port(SocketAddr::new(media.address, media.port));
        let beside = control_port(local);
        let any = SocketAddr::new(local.ip(), 0);
        let open = || match group {
            Some(group) => in_group(&group, to, local.ip(), options),
            None => udp::open(beside, None, options)
                .or_else(|_| udp::open(any, None, options))
                .map(|(socket, _)| (socket, None)),
        };
        let sources = if group.is_some() { Vec::new() } else { vec![media.address] };
        Reported::new(carrier, media, stream, open, Some(to), sources)
    }

    /// The reports of a receiver at `local`, or in a group.
    pub(super) fn receiver(
        carrier: C,
        media: &Media,
        local: SocketAddr,
        on: IpAddr,
        group: Option<Group>,
        options: SocketOptions,
    ) -> Result<Reported<C>, ForeignError> {
        let of_group = control_port(SocketAddr::new(media.address, media.port));
        let open = || match group {
            Some(group) => in_group(&group, of_group, on, options),
            None => udp::open(control_port(local), None, options).map(|(socket, _)| (socket, None)),
        };
        let (to, sources) = match group {
            // Other receivers report too.
            Some(_) => (Some(of_group), Vec::new()),
            None => (None, media.sources.clone()),
        };
        Reported::new(carrier, media, &media.stream(), open, to, sources)
    }

    fn new(
        carrier: C,
        media: &Media,
        stream: &Stream,
        open: impl FnOnce() -> io::Result<(UdpSocket, Option<UdpSocket>)>,
        to: Option<SocketAddr>,
        sources: Vec<IpAddr>,
    ) -> Result<Reported<C>, ForeignError> {
        let config = config(media, stream)?;
        // An odd port has none for reports: the one above may be that of other data.
        let has_reports = media.port.is_multiple_of(2);
        let control = RtpSession::new(config).ok().filter(|_| has_reports).and_then(|session| {
            let (listens, speaks) = open().ok()?;
            listens.set_nonblocking(true).ok()?;
            speaks.as_ref().map_or(Ok(()), |speaks| speaks.set_nonblocking(true)).ok()?;
            Some(Control { session, listens, speaks, to, sources })
        });
        Ok(Reported { carrier, control, buffer: vec![0; MOST_REPORT] })
    }
}

/// The port of the reports (RFC 3550 section 11).
fn control_port(of_data: SocketAddr) -> SocketAddr {
    SocketAddr::new(of_data.ip(), of_data.port().wrapping_add(1))
}

/// Sockets that hear and speak to the reports of a group.
fn in_group(
    group: &Group,
    address: SocketAddr,
    from: IpAddr,
    options: SocketOptions,
) -> io::Result<(UdpSocket, Option<UdpSocket>)> {
    let group = Group { address, ..*group };
    let (listens, _) = group.listen(options)?;
    let (speaks, _) = group.speak(from, options)?;
    // So that its own reports are known when they come back.
    speaks.connect(address)?;
    Ok((listens, Some(speaks)))
}

fn config(media: &Media, stream: &Stream) -> Result<RtpConfig, ForeignError> {
    let [seed, name] = [socket::random::<8>()?, socket::random::<8>()?].map(u64::from_be_bytes);
    let [more]: [u32; 1] = [u32::from_be_bytes(socket::random()?)];
    let channels = usize::from(stream.channels);
    let bits = match stream.codec {
        Codec::Opus { bitrate, .. } => u64::from(bitrate),
        codec => codec.bytes(channels, stream.sample_rate as usize) as u64 * 8,
    };
    let unix = clock::realtime_offset().unsigned_abs();
    let (seconds, nanos) = (unix / 1_000_000_000, unix % 1_000_000_000);
    let format =
        PayloadFormat { payload_type: media.payload_type, clock: media.clock, channels: 1, sample_bytes: 1 };
    Ok(RtpConfig {
        reporting: Some(Reporting::with_bandwidth(Rate::from_bits_per_second(bits.max(1000)))),
        // 96 random bits, which say nothing of the user or the host (RFC 7022 section 4.2).
        cname: format!("{name:016x}{more:08x}"),
        is_group: media.address.is_multicast(),
        wall_clock: ((seconds + NTP_TO_UNIX) << 32) | ((nanos << 32) / 1_000_000_000),
        ..RtpConfig::new(format, Seed::new(seed, 0).stream("rtcp"))
    })
}

impl Control {
    /// Takes the reports that have come.
    fn receive(&mut self, buffer: &mut [u8]) {
        let own = self.speaks.as_ref().and_then(|speaks| speaks.local_addr().ok());
        for _ in 0..BATCH {
            // Errors tell of reports of ours that found nobody.
            let Ok((length, source)) = self.listens.recv_from(buffer) else { break };
            let report = &buffer[..length];
            let is_heard = self.sources.is_empty() || self.sources.contains(&source.ip());
            if !is_heard || own == Some(source) || !is_rtcp(report) {
                continue;
            }
            self.session.handle(crate::now(), report);
            // Of the sender whose data is heard, and of nobody else.
            let ssrc = report.get(4..).and_then(|rest| rest.first_chunk()).copied().map(u32::from_be_bytes);
            let is_sender = self.session.reception().is_some_and(|heard| Some(heard.ssrc) == ssrc);
            if self.to.is_none() && is_sender {
                self.to = Some(source);
            }
        }
    }

    /// Sends the reports that are due.
    fn send(&mut self, now: Time) {
        self.session.handle_timeout(now);
        let mut report = Vec::new();
        while self.session.poll_control(now, &mut report) {
            // A report that finds no room or nobody is lost, as on the way.
            let _ = match (&self.speaks, self.to) {
                (Some(speaks), _) => speaks.send(&report),
                (None, Some(to)) => self.listens.send_to(&report, to),
                (None, None) => Ok(0),
            };
            report.clear();
        }
    }
}

impl<C: Carrier> Carrier for Reported<C> {
    fn descriptors<'l>(&'l self, waits: bool, add: &mut dyn FnMut(BorrowedFd<'l>, Interest)) {
        self.carrier.descriptors(waits, add);
        if let Some(control) = &self.control {
            add(control.listens.as_fd(), Interest::Read);
        }
    }

    fn offer(&mut self, now: Time, packet: &[u8]) -> Offer {
        let offer = self.carrier.offer(now, packet);
        if let (Some(control), Offer::Taken) = (&mut self.control, &offer) {
            control.session.observe(now, packet);
        }
        offer
    }

    fn offer_many(&mut self, now: Time, packets: &Packets, from: usize) -> usize {
        let taken = self.carrier.offer_many(now, packets, from);
        if let Some(control) = &mut self.control {
            packets.iter().skip(from).take(taken).for_each(|packet| control.session.observe(now, packet));
        }
        taken
    }

    fn receive(
        &mut self,
        now: Time,
        strays: &mut u64,
        arrived: &mut dyn FnMut(Time, &[u8]),
    ) -> Result<(), Ended> {
        let control = &mut self.control;
        let result = self.carrier.receive(now, strays, &mut |at, packet| {
            if let Some(control) = control {
                control.session.handle(at, packet);
            }
            arrived(at, packet);
        });
        if let Some(control) = &mut self.control {
            control.receive(&mut self.buffer);
            control.send(crate::now());
        }
        result
    }

    fn next_timeout(&self, waits: bool) -> Option<Time> {
        let reports = self.control.as_ref().and_then(|control| control.session.next_timeout());
        reports.into_iter().chain(self.carrier.next_timeout(waits)).min()
    }

    fn peer_report(&self) -> Option<PeerReport> {
        self.control.as_ref().and_then(|control| control.session.peer_report())
    }

    fn features(&self) -> &'static Features {
        self.carrier.features()
    }

    fn largest(&self) -> usize {
        self.carrier.largest()
    }

    fn close(&mut self, now: Time) {
        if let Some(control) = &mut self.control {
            control.session.leave();
            control.send(crate::now());
        }
        self.carrier.close(now);
    }
}
