//! What the file says of a transport, as its endpoints want it.

use core::net::IpAddr;

use trunkline_adapters::quic::{self, Mode, QuicConfig};
use trunkline_core::{Address, Bytes, Stream};
use trunkline_experiment::{
    ClassicTcpOptions, DccpOptions, QuicOptions, RtpOptions, SctpOptions, TcpOptions, UdpLiteOptions,
    UdpOptions, UrpOptions, XtpOptions, XtpService,
};
use trunkline_transport::classic_tcp;
use trunkline_transport::dccp::DccpConfig;
use trunkline_transport::framing::HEADER_LENGTH;
use trunkline_transport::rtp::RtpConfig;
use trunkline_transport::sctp::SctpConfig;
use trunkline_transport::tcp::{MAX_MSS, TcpConfig, UnknownAlgorithm};
use trunkline_transport::udp::{MAX_MESSAGE, UdpConfig, Variant};
use trunkline_transport::urp::UrpConfig;
use trunkline_transport::xtp::{self, RateLimit, XtpConfig, XtpGroupConfig};

/// IPv4 and TCP headers, without options.
const TCP_HEADERS: u64 = 40;

pub(crate) fn udp(options: &UdpOptions) -> UdpConfig {
    let mut config = UdpConfig { ecn: options.ecn, ..UdpConfig::default() };
    if let Some(buffer) = options.buffer {
        config.send_buffer = buffer.count() as usize;
        config.receive_buffer = buffer.count() as usize;
    }
    config
}

pub(crate) fn udp_lite(options: &UdpLiteOptions) -> UdpConfig {
    let as_udp = UdpOptions { buffer: options.buffer, ..UdpOptions::default() };
    UdpConfig {
        variant: Variant::Lite { coverage: coverage(options) },
        encapsulation: options.encapsulation,
        ..udp(&as_udp)
    }
}

/// How much of a message UDP-Lite's checksum covers.
pub(crate) fn coverage(options: &UdpLiteOptions) -> Option<u16> {
    options.checksum_coverage.map(|bytes| bytes.count().min(MAX_MESSAGE as u64) as u16)
}

/// The engine's options for a path; a congestion control that it does not have is refused.
pub(crate) fn tcp(
    options: &TcpOptions,
    config: &TcpConfig,
    mtu: Option<Bytes>,
) -> Result<TcpConfig, UnknownAlgorithm> {
    let mut config = config.clone();
    if let Some(mss) = largest_segment(options, mtu) {
        config.mss = mss.count() as usize;
    }
    if let Some(name) = &options.congestion_control {
        config.congestion_control = name.parse()?;
    }
    Ok(config)
}

/// A classic TCP for the same path.
pub(crate) fn classic_tcp(
    options: &TcpOptions,
    classic: &ClassicTcpOptions,
    mtu: Option<Bytes>,
) -> classic_tcp::TcpConfig {
    let defaults = classic_tcp::TcpConfig::default();
    classic_tcp::TcpConfig {
        window: options.window.map_or(defaults.window, |window| window.count() as usize),
        mss: largest_segment(options, mtu).map_or(defaults.mss, |mss| mss.count() as usize),
        delayed_ack: classic.delayed_ack,
        ack_every: classic.ack_every,
        ack_unpushed: classic.ack_unpushed,
        window_updates: classic.window_updates,
        nagle: classic.nagle.count() as usize,
        initial_window: classic.initial_window,
        timer: classic.timer,
        fast_retransmit: classic.fast_retransmit,
        ..defaults
    }
}

/// Without a word on it, segments are as large as the path carries, as path MTU discovery (RFC 1191) would find.
fn largest_segment(options: &TcpOptions, mtu: Option<Bytes>) -> Option<Bytes> {
    let by_mtu = |mtu: Bytes| Bytes(mtu.count().saturating_sub(TCP_HEADERS).min(MAX_MSS as u64));
    options.mss.or(mtu.map(by_mtu))
}

pub(crate) fn urp(options: &UrpOptions) -> UrpConfig {
    UrpConfig {
        block: options.block.count() as usize,
        window: options.window,
        packet: options.packet.count() as usize,
        low_water: options.low_water,
        // What is under way, and as much to follow it: more would only add delay before the network.
        send_buffer: (options.block.count() as usize).saturating_mul(2 * usize::from(options.window)),
        timeout: options.timeout,
        ..UrpConfig::default()
    }
}

/// Packets are as large as the path carries.
pub(crate) fn dccp(options: &DccpOptions, mtu: Option<Bytes>, addresses: Option<[IpAddr; 2]>) -> DccpConfig {
    // A coverage of n stands for 4 (n - 1) bytes.
    let coverage = options.checksum_coverage.map_or(0, |bytes| 1 + bytes.count().div_ceil(4).min(14) as u8);
    let largest = mtu.map_or(1500, |mtu| mtu.count().clamp(576, 65_535) as usize);
    DccpConfig {
        ccid: options.ccid,
        send_queue: options.send_queue,
        when_full: options.when_full,
        lifetime: options.lifetime,
        max_packet: largest,
        encapsulation: options.encapsulation,
        addresses,
        checksum_coverage: coverage,
        min_checksum_coverage: coverage,
        data_checksum: options.data_checksum,
        short_sequence_numbers: options.short_sequence_numbers,
        ecn: options.ecn,
        ..DccpConfig::default()
    }
}

/// Packets are as large as the path carries, if nothing is said of them.
pub(crate) fn xtp(options: &XtpOptions, mtu: Option<Bytes>, priority: u16) -> XtpConfig {
    let defaults = XtpConfig::default();
    let by_mtu = mtu.map_or(defaults.max_packet, |mtu| {
        (mtu.count() as usize).saturating_sub(options.encapsulation.headers()).clamp(128, 65_507)
    });
    let by_file = options.max_data.map(|data| data.count() as usize + xtp::wire::HEADER_LENGTH);
    let max_packet = by_file.unwrap_or(by_mtu);
    let bytes = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let send_rate = options.rate.map(|rate| RateLimit {
        rate: bytes(rate.bits_per_second() / 8).max(1),
        burst: options
            .burst
            .map_or((10 * (max_packet - xtp::wire::HEADER_LENGTH)) as u32, |burst| bytes(burst.count())),
    });
    XtpConfig {
        encapsulation: options.encapsulation,
        max_packet,
        open: options.open,
        error_control: options.error_control,
        fast_nak: options.fast_nak,
        flow_control: options.flow_control,
        send_rate,
        checksum: options.checksum,
        acknowledge: options.acknowledge,
        meaning: options.meaning,
        withhold: options.withhold,
        sort: options.sort.then_some(priority),
        // A sender that can just fill its peer's window: more would only add delay before the network.
        send_buffer: options.window.count() as usize,
        receive_buffer: options.window.count() as usize,
        initial_wait: options.wait,
        patience: Some(options.patience),
        ..defaults
    }
}

/// A reliable multicast waits for those that listen from the beginning, if nothing is said of its quorum.
pub(crate) fn xtp_group(
    options: &XtpOptions,
    mtu: Option<Bytes>,
    priority: u16,
    group: Address,
    prompt: u32,
) -> XtpGroupConfig {
    let stream = xtp(options, mtu, priority);
    if options.service == XtpService::Multicast {
        let defaults = XtpGroupConfig::unacknowledged(group);
        let XtpConfig { error_control, flow_control, acknowledge, .. } = defaults.stream;
        return XtpGroupConfig {
            stream: XtpConfig { error_control, flow_control, acknowledge, ..stream },
            ..defaults
        };
    }
    let defaults = XtpGroupConfig::reliable(group);
    XtpGroupConfig {
        stream,
        quorum: options.quorum.unwrap_or(prompt).max(1) as usize,
        max_receivers: usize::from(u16::MAX),
        slot: options.slot,
        slots: options.slots,
        repair_wait: options.repair_wait,
        ..defaults
    }
}

/// A name that has too many bytes is cut: it only has to be another one at each end.
pub(crate) fn rtp(options: &RtpOptions, mut cname: String, stream: Stream) -> RtpConfig {
    cname.truncate(cname.floor_char_boundary(255));
    RtpConfig {
        // Every message begins with the header by which it is measured.
        preamble: HEADER_LENGTH,
        reporting: options.reporting,
        udp: UdpConfig { encapsulation: options.encapsulation, ..UdpConfig::default() },
        cname,
        ..RtpConfig::new(options.format, stream)
    }
}

/// Packets are as large as the path carries. Paths that carry too little are refused when the file is read.
pub(crate) fn sctp(options: &SctpOptions, mtu: Option<Bytes>) -> SctpConfig {
    let defaults = SctpConfig::default();
    SctpConfig {
        streams: options.streams,
        ordered: options.ordered,
        reliability: options.reliability,
        window: options.window.count() as usize,
        // A sender that can just fill its peer's window: more would only add delay before the network.
        send_buffer: options.send_buffer.unwrap_or(options.window).count() as usize,
        max_packet: mtu.map_or(defaults.max_packet, |mtu| mtu.count().clamp(576, 65_535) as usize),
        encapsulation: options.encapsulation,
        ..defaults
    }
}

/// Packets are as large as the path carries. Paths that carry too little for QUIC are refused when the file is read.
pub(crate) fn quic(options: &QuicOptions, mtu: Option<Bytes>) -> QuicConfig {
    let defaults = QuicConfig::default();
    let window = options.window.count() as usize;
    // A sender that can just fill its peer's window: more would only add delay before the network.
    let send_buffer = if options.mode == Mode::Datagrams { 64 << 10 } else { window };
    QuicConfig {
        mode: options.mode,
        congestion_control: options.congestion_control,
        window,
        encapsulation: options.encapsulation,
        send_buffer: options.send_buffer.map_or(send_buffer, |bytes| bytes.count() as usize),
        mtu: mtu.map_or(defaults.mtu, |mtu| {
            (mtu.count() as usize).clamp(*quic::PACKET.start(), *quic::PACKET.end())
        }),
        ..defaults
    }
}
