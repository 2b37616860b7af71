//! The kernel's TCP, MPTCP and SCTP as streams: options that the standard library has not, and its own account of a connection.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

use serde::{Deserialize, Serialize};
use socket2::{Domain, Protocol, Socket, Type};
use trunkline_core::Duration;
pub use trunkline_transport::kind::StreamProtocol;

/// How a connection is made. Options that shape the handshake (window, segment size) are set before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpSetup {
    /// What the connection is made of.
    pub protocol: StreamProtocol,
    /// Send and receive buffer in bytes (`SO_SNDBUF`, `SO_RCVBUF`): what the window can grow to.
    pub window: Option<usize>,
    /// Another send buffer.
    pub send_buffer: Option<usize>,
    /// Largest segment payload in bytes (`TCP_MAXSEG`).
    pub mss: Option<u32>,
    /// Send small messages at once (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Congestion control by the kernel's name (`TCP_CONGESTION`). Linux only.
    pub congestion_control: Option<String>,
    /// Send full segments only (`TCP_CORK`). Linux only.
    pub cork: bool,
    /// Departures are paced, at this number of bytes a second of payload at most (`SO_MAX_PACING_RATE`). Linux only.
    pub max_pacing_rate: Option<u64>,
    /// Probes of an idle connection.
    pub keepalive: Option<Keepalive>,
    /// The longest time that sent data may stay unacknowledged (`TCP_USER_TIMEOUT`). Linux only.
    pub user_timeout: Option<Duration>,
}

/// Probes of an idle connection (`SO_KEEPALIVE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keepalive {
    /// Idle for this long before the first probe (`TCP_KEEPIDLE`, in whole seconds, at least one).
    pub time: Duration,
    /// Between probes (`TCP_KEEPINTVL`, likewise).
    pub interval: Duration,
    /// The number of unanswered probes that end the connection (`TCP_KEEPCNT`).
    pub probes: u32,
}

/// Why a socket could not be set up as asked.
#[derive(Debug, thiserror::Error)]
pub enum TcpError {
    /// The kernel does not offer this congestion control.
    #[error("the kernel does not offer the congestion control `{wanted}`; it offers {}", list(.offered))]
    CongestionControl {
        /// What was asked for.
        wanted: String,
        /// What there is.
        offered: Vec<String>,
    },
    /// The kernel has no MPTCP, or does not offer it.
    #[error(
        "the kernel offers no MPTCP: on Linux it needs `CONFIG_MPTCP` and `sysctl net.mptcp.enabled=1`; or use transport `tcp`"
    )]
    NoMultipath,
    /// The kernel has no SCTP, or has not loaded it.
    #[error(
        "the kernel offers no SCTP: on Linux it needs `CONFIG_IP_SCTP`, or `modprobe sctp`; or leave `engine = \"kernel\"` out"
    )]
    NoSctp,
    /// The segment size was refused.
    #[error("the kernel refuses segments of {0} bytes (`mss`): {1}")]
    SegmentSize(u32, io::Error),
    /// Nobody answered for so long.
    #[error("no reply within {0}")]
    NoAnswer(Duration),
    /// Anything else.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The congestion control of connections that choose none, by the kernel's name; `None` where the system does not say.
pub fn default_congestion_control() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Opens a connection, giving up after `patience`.
pub fn connect(
    local: std::net::IpAddr,
    peer: SocketAddr,
    setup: &TcpSetup,
    patience: Duration,
) -> Result<TcpStream, TcpError> {
    let socket = stream_socket(peer, setup)?;
    apply(&socket, setup)?;
    socket.bind(&SocketAddr::new(local, 0).into())?;
    socket.connect_timeout(&peer.into(), patience.to_std()).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => TcpError::NoAnswer(patience),
        _ => error.into(),
    })?;
    Ok(socket.into())
}

/// Opens a listener at `local`; accepted connections inherit what is set on it. With MPTCP it takes those of TCP too.
pub fn listen(local: SocketAddr, setup: &TcpSetup) -> Result<TcpListener, TcpError> {
    let socket = stream_socket(local, setup)?;
    // Closed connections of the run before must not keep the port from this one; a second listener still cannot have
    // it.
    socket.set_reuse_address(true)?;
    socket.bind(&local.into())?;
    apply(&socket, setup)?;
    socket.listen(1024)?;
    Ok(socket.into())
}

fn stream_socket(address: SocketAddr, setup: &TcpSetup) -> Result<Socket, TcpError> {
    let (protocol, missing) = match setup.protocol {
        StreamProtocol::Tcp => return Ok(stream_of(address, Protocol::TCP)?),
        #[cfg(target_os = "linux")]
        StreamProtocol::Mptcp => (Protocol::MPTCP, TcpError::NoMultipath),
        #[cfg(not(target_os = "linux"))]
        StreamProtocol::Mptcp => return Err(TcpError::NoMultipath),
        StreamProtocol::Sctp => (Protocol::from(IPPROTO_SCTP), TcpError::NoSctp),
    };
    stream_of(address, protocol).map_err(|error| match error.kind() {
        io::ErrorKind::Unsupported => missing,
        _ => error.into(),
    })
}

/// As IANA has it, on every system.
const IPPROTO_SCTP: i32 = 132;

fn stream_of(address: SocketAddr, protocol: Protocol) -> io::Result<Socket> {
    Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))
        .map_err(crate::unsupported_protocol)
}

fn apply(socket: &Socket, setup: &TcpSetup) -> Result<(), TcpError> {
    if let Some(window) = setup.window {
        socket.set_send_buffer_size(window)?;
        socket.set_recv_buffer_size(window)?;
    }
    if let Some(buffer) = setup.send_buffer {
        socket.set_send_buffer_size(buffer)?;
    }
    if let Some(mss) = setup.mss {
        socket.set_tcp_mss(mss).map_err(|error| TcpError::SegmentSize(mss, error))?;
    }
    match setup.protocol {
        StreamProtocol::Tcp | StreamProtocol::Mptcp => socket.set_tcp_nodelay(setup.nodelay)?,
        StreamProtocol::Sctp => set_sctp_nodelay(socket, setup.nodelay)?,
    }
    if let Some(wanted) = &setup.congestion_control {
        set_congestion_control(socket, wanted)?;
    }
    if let Some(keepalive) = &setup.keepalive {
        set_keepalive(socket, keepalive)?;
    }
    set_for_linux(socket, setup)?;
    Ok(())
}

/// The kernel counts whole seconds.
fn set_keepalive(socket: &Socket, keepalive: &Keepalive) -> io::Result<()> {
    let seconds = |duration: Duration| {
        std::time::Duration::from_secs(duration.as_nanos().div_ceil(1_000_000_000).max(1))
    };
    let probes = socket2::TcpKeepalive::new()
        .with_time(seconds(keepalive.time))
        .with_interval(seconds(keepalive.interval))
        .with_retries(keepalive.probes);
    socket.set_tcp_keepalive(&probes)
}

#[cfg(target_os = "linux")]
fn set_for_linux(socket: &Socket, setup: &TcpSetup) -> io::Result<()> {
    use std::os::fd::AsFd as _;

    if setup.cork {
        socket.set_tcp_cork(true)?;
    }
    if let Some(timeout) = setup.user_timeout {
        socket.set_tcp_user_timeout(Some(timeout.to_std()))?;
    }
    setup.max_pacing_rate.map_or(Ok(()), |rate| pace(socket.as_fd(), rate))
}

#[cfg(not(target_os = "linux"))]
fn set_for_linux(_: &Socket, setup: &TcpSetup) -> io::Result<()> {
    if setup.cork || setup.user_timeout.is_some() || setup.max_pacing_rate.is_some() {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "only Linux has `cork`, `user-timeout` and `max-pacing-rate`; leave them out",
        ));
    }
    Ok(())
}

/// `SCTP_NODELAY` (RFC 6458 section 8.1.5).
fn set_sctp_nodelay(socket: &Socket, nodelay: bool) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;

    // linux/sctp.h
    const SCTP_NODELAY: libc::c_int = 3;
    let value = libc::c_int::from(nodelay);
    // SAFETY: the kernel reads an integer of the length that it is told.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            IPPROTO_SCTP,
            SCTP_NODELAY,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(target_os = "linux")]
fn set_congestion_control(socket: &Socket, wanted: &str) -> Result<(), TcpError> {
    let refused =
        |_| TcpError::CongestionControl { wanted: wanted.to_owned(), offered: offered_congestion_controls() };
    socket.set_tcp_congestion(wanted.as_bytes()).map_err(refused)
}

#[cfg(not(target_os = "linux"))]
fn set_congestion_control(_: &Socket, wanted: &str) -> Result<(), TcpError> {
    Err(TcpError::CongestionControl { wanted: wanted.to_owned(), offered: offered_congestion_controls() })
}

/// The congestion controls that the kernel has loaded; empty where it does not tell.
pub fn offered_congestion_controls() -> Vec<String> {
    let text =
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

fn list(offered: &[String]) -> String {
    if offered.is_empty() { "its default only".to_owned() } else { offered.join(", ") }
}

/// What the kernel counted on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounters {
    /// Segments sent again.
    pub retransmitted_segments: u64,
    /// Segments sent, those sent again included.
    pub segments_sent: u64,
    /// Segments received.
    pub segments_received: u64,
    /// The smoothed round-trip time at the moment, in microseconds.
    pub smoothed_rtt_micros: u64,
}

/// What the kernel believes of the network, in segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpWindow {
    /// The congestion window.
    pub congestion_window: u32,
    /// The slow-start threshold; `None` before there is one.
    pub slow_start_threshold: Option<u32>,
    /// Segments in flight.
    pub in_flight: u32,
}

/// The state of a connection's sending end, as the kernel has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpState {
    /// The congestion window in bytes.
    pub congestion_window: u64,
    /// The slow-start threshold in bytes; `None` before there is one.
    pub slow_start_threshold: Option<u64>,
    /// Bytes in flight.
    pub in_flight: u64,
    /// The smoothed round trip; `None` before the first sample of it.
    pub smoothed_round_trip: Option<Duration>,
    /// The pacing rate in bytes a second; `None` before there is one.
    pub pacing_rate: Option<u64>,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Segments sent again that the peer had already (D-SACK, RFC 2883); `None` if the kernel does not count them.
    pub spurious: Option<u64>,
}

/// Reads the state of a connection (`TCP_INFO`); `None` if the kernel does not report it.
#[cfg(target_os = "linux")]
pub fn state(stream: &TcpStream) -> Option<TcpState> {
    use std::os::fd::AsFd as _;

    let (info, length) = info_and_length(stream.as_fd())?;
    let window = TcpWindow::of(&info);
    let bytes = |segments: u32| u64::from(segments) * u64::from(info.snd_mss);
    Some(TcpState {
        congestion_window: bytes(window.congestion_window),
        slow_start_threshold: window.slow_start_threshold.map(bytes),
        in_flight: bytes(window.in_flight),
        smoothed_round_trip: Some(info.rtt)
            .filter(|rtt| *rtt > 0)
            .map(|rtt| Duration::from_micros(u64::from(rtt))),
        // The kernel's "no limit".
        pacing_rate: Some(info.pacing_rate).filter(|rate| (1..u64::MAX).contains(rate)),
        retransmissions: u64::from(info.total_retrans),
        spurious: (length >= core::mem::offset_of!(TcpInfo, dsack_dups) + size_of::<u32>())
            .then_some(u64::from(info.dsack_dups)),
    })
}

/// Returns `None`: this system does not report the state of a connection.
#[cfg(not(target_os = "linux"))]
pub fn state(_: &TcpStream) -> Option<TcpState> {
    None
}

/// Reads the kernel's counters (`TCP_INFO`); `None` if it does not report them.
#[cfg(target_os = "linux")]
pub fn counters(stream: &TcpStream) -> Option<TcpCounters> {
    use std::os::fd::AsFd as _;

    info(stream.as_fd()).map(|info| TcpCounters {
        retransmitted_segments: u64::from(info.total_retrans),
        segments_sent: u64::from(info.segs_out),
        segments_received: u64::from(info.segs_in),
        smoothed_rtt_micros: u64::from(info.rtt),
    })
}

/// Reads the kernel's congestion window and what is in flight (`TCP_INFO`); `None` if the kernel does not report them.
#[cfg(target_os = "linux")]
pub fn window(socket: std::os::fd::BorrowedFd<'_>) -> Option<TcpWindow> {
    info(socket).map(|info| TcpWindow::of(&info))
}

#[cfg(target_os = "linux")]
impl TcpWindow {
    fn of(info: &TcpInfo) -> TcpWindow {
        // The kernel's "none yet".
        const NO_THRESHOLD: u32 = 0x7fff_ffff;
        let gone = info.sacked + info.lost;
        TcpWindow {
            congestion_window: info.snd_cwnd,
            slow_start_threshold: Some(info.snd_ssthresh).filter(|threshold| *threshold < NO_THRESHOLD),
            in_flight: (info.unacked + info.retrans).saturating_sub(gone),
        }
    }
}

/// The fields of `struct tcp_info` up to those that are read here (linux/tcp.h; grows at its end only).
#[cfg(target_os = "linux")]
#[repr(C)]
struct TcpInfo {
    states: [u8; 8],
    timeouts: [u32; 2],
    snd_mss: u32,
    rcv_mss: u32,
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    before_rtt: [u32; 7],
    rtt: u32,
    rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    before_rcv_space: [u32; 3],
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    before_segs_out: [u64; 3],
    segs_out: u32,
    segs_in: u32,
    before_delivery_rate: [u32; 4],
    before_delivered: [u64; 4],
    delivered: [u32; 2],
    bytes: [u64; 2],
    dsack_dups: u32,
    reord_seen: u32,
}

#[cfg(target_os = "linux")]
fn info(socket: std::os::fd::BorrowedFd<'_>) -> Option<TcpInfo> {
    info_and_length(socket).map(|(info, _)| info)
}

/// The structure, and how many bytes of it this kernel knows. The others are zero.
#[cfg(target_os = "linux")]
fn info_and_length(socket: std::os::fd::BorrowedFd<'_>) -> Option<(TcpInfo, usize)> {
    use std::os::fd::AsRawFd as _;

    // SAFETY: the structure is plain integers, for which all-zero bytes are valid.
    let mut info: TcpInfo = unsafe { core::mem::zeroed() };
    let mut length = size_of::<TcpInfo>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into a structure of that length.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &mut length,
        )
    };
    (result == 0).then_some((info, length as usize))
}

/// Has the kernel space a connection's departures itself, whatever queue the interface has (`SO_MAX_PACING_RATE`), at this
/// many bytes a second at most.
///
/// # Errors
/// If the kernel refuses it.
#[cfg(target_os = "linux")]
pub fn pace(socket: std::os::fd::BorrowedFd<'_>, most: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;

    // SAFETY: the kernel reads an integer of the length that it is told.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const most).cast(),
            size_of::<u64>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads the kernel's counters (`TCP_INFO`); `None` if it does not report them.
#[cfg(not(target_os = "linux"))]
pub fn counters(_: &TcpStream) -> Option<TcpCounters> {
    None
}

/// Whether a connection that was opened with [`StreamProtocol::Mptcp`] is one of MPTCP, and has not fallen back to TCP.
#[cfg(target_os = "linux")]
pub fn is_multipath(stream: &TcpStream) -> bool {
    use std::os::fd::AsRawFd as _;

    // linux/mptcp.h
    const SOL_MPTCP: libc::c_int = 284;
    const MPTCP_INFO: libc::c_int = 1;
    const FALLBACK: u32 = 1;
    /// The fields of `struct mptcp_info` up to the one that is read here (it grows at its end only).
    #[repr(C)]
    struct MptcpInfo {
        counts: [u8; 6],
        flags: u32,
    }
    // SAFETY: the structure is plain integers, for which all-zero bytes are valid.
    let mut info: MptcpInfo = unsafe { core::mem::zeroed() };
    let mut length = size_of::<MptcpInfo>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into a structure of that length.
    let result = unsafe {
        libc::getsockopt(stream.as_raw_fd(), SOL_MPTCP, MPTCP_INFO, (&raw mut info).cast(), &mut length)
    };
    // After a fallback options go to the TCP below, which knows no such option.
    result == 0 && info.flags & FALLBACK == 0
}

/// Whether a connection that was opened with [`StreamProtocol::Mptcp`] is one of MPTCP, and has not fallen back to TCP.
#[cfg(not(target_os = "linux"))]
pub fn is_multipath(_: &TcpStream) -> bool {
    false
}

/// Closes the connection at once when it is dropped, throwing away what is still to be sent (RST).
pub fn abort_on_close(stream: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(stream).set_linger(Some(core::time::Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;
    use trunkline_testkit::skips::{Missing, skip_without};

    fn connected(setup: &TcpSetup) -> (TcpStream, TcpStream) {
        connected_with(setup, &TcpSetup::default())
    }

    fn connected_with(setup: &TcpSetup, listening: &TcpSetup) -> (TcpStream, TcpStream) {
        let listener = listen("127.0.0.1:0".parse().unwrap(), listening).unwrap();
        let address = listener.local_addr().unwrap();
        let near = connect(address.ip(), address, setup, Duration::from_secs(5)).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn a_connection_counts_what_it_sends() {
        let setup = TcpSetup { window: Some(64 << 10), nodelay: true, ..TcpSetup::default() };
        let (mut near, mut far) = connected(&setup);
        assert!(near.nodelay().unwrap());
        near.write_all(&[1; 5_000]).unwrap();
        let mut bytes = [0; 5_000];
        far.read_exact(&mut bytes).unwrap();
        if cfg!(target_os = "linux") {
            let (sent, received) = (counters(&near).unwrap(), counters(&far).unwrap());
            assert!(sent.segments_sent >= 2, "{sent:?}");
            assert!(received.segments_received >= 2, "{received:?}");
            assert_eq!(sent.retransmitted_segments, 0);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_state_of_a_connection_is_the_kernels() {
        use std::os::fd::AsFd as _;

        let setup = TcpSetup { max_pacing_rate: Some(123_456_789), ..TcpSetup::default() };
        let (mut near, mut far) = connected(&setup);
        near.write_all(&[1; 50_000]).unwrap();
        far.read_exact(&mut [0; 50_000]).unwrap();
        let state = state(&near).unwrap();
        let (info, length) = info_and_length(near.as_fd()).unwrap();
        let mss = u64::from(info.snd_mss);
        // Of loopback: 64 KiB less the headers, or half the peer's window.
        assert!((500..=65_535).contains(&mss), "{mss}");
        assert_eq!(state.congestion_window % mss, 0, "{state:?}");
        assert!(state.congestion_window >= 2 * mss, "{state:?}");
        assert!(state.smoothed_round_trip.is_some_and(|rtt| rtt < Duration::from_secs(10)), "{state:?}");
        assert!(state.pacing_rate.is_some_and(|rate| rate <= 123_456_789), "{state:?}");
        assert_eq!(state.retransmissions, counters(&near).unwrap().retransmitted_segments);
        // Linux has counted them since 4.19.
        assert_eq!(state.spurious, (length >= 220).then_some(0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn options_are_set_on_both_ends() {
        let keepalive =
            Keepalive { time: Duration::from_secs(30), interval: Duration::from_millis(2500), probes: 4 };
        let setup = TcpSetup {
            cork: true,
            max_pacing_rate: Some(123_456),
            keepalive: Some(keepalive),
            user_timeout: Some(Duration::from_millis(7500)),
            send_buffer: Some(30_000),
            ..TcpSetup::default()
        };
        let listener = listen("127.0.0.1:0".parse().unwrap(), &setup).unwrap();
        let to = listener.local_addr().unwrap();
        let near = connect(to.ip(), to, &setup, Duration::from_secs(10)).unwrap();
        let (far, _) = listener.accept().unwrap();
        for end in [&near, &far] {
            let socket = socket2::SockRef::from(end);
            assert!(socket.tcp_cork().unwrap() && socket.keepalive().unwrap());
            assert_eq!(socket.tcp_keepalive_time().unwrap().as_secs(), 30);
            assert_eq!(socket.tcp_keepalive_interval().unwrap().as_secs(), 3);
            assert_eq!(socket.tcp_keepalive_retries().unwrap(), 4);
            assert_eq!(socket.tcp_user_timeout().unwrap().map(|time| time.as_millis()), Some(7500));
            assert_eq!(max_pacing_rate(end), 123_456);
            // Linux doubles it.
            assert_eq!(socket.send_buffer_size().unwrap(), 60_000);
        }
    }

    #[cfg(target_os = "linux")]
    fn max_pacing_rate(stream: &TcpStream) -> u64 {
        use std::os::fd::AsRawFd as _;
        let (mut rate, mut length) = (0u64, size_of::<u64>() as libc::socklen_t);
        // SAFETY: the kernel writes at most `length` bytes into an integer of that length.
        let result = unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MAX_PACING_RATE,
                (&raw mut rate).cast(),
                &mut length,
            )
        };
        assert_eq!(result, 0);
        rate
    }

    #[test]
    fn an_unknown_congestion_control_is_answered_with_those_that_exist() {
        let setup = TcpSetup { congestion_control: Some("warp".to_owned()), ..TcpSetup::default() };
        let error = listen("127.0.0.1:0".parse().unwrap(), &setup).unwrap_err().to_string();
        assert!(
            error.starts_with("the kernel does not offer the congestion control `warp`; it offers "),
            "{error}"
        );
    }

    #[test]
    fn who_does_not_answer_is_told_from_who_refuses() {
        let full = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        full.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        full.listen(0).unwrap();
        let address = full.local_addr().unwrap().as_socket().unwrap();
        let patience = Duration::from_millis(50);
        let mut waiting = Vec::new();
        let reach = || connect(address.ip(), address, &TcpSetup::default(), patience);
        // Those that nobody accepts wait; when the queue is full, the kernel answers nobody.
        let error = (0..10).find_map(|_| reach().map(|stream| waiting.push(stream)).err()).unwrap();
        assert_eq!(error.to_string(), "no reply within 50 ms");
        drop(full);
        let error = reach().unwrap_err();
        assert!(matches!(error, TcpError::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused));
    }

    #[test]
    fn without_the_kernel_s_sctp_it_is_said_what_to_do() {
        let setup = TcpSetup { protocol: StreamProtocol::Sctp, nodelay: true, ..TcpSetup::default() };
        match listen("127.0.0.1:0".parse().unwrap(), &setup) {
            Err(error) => assert!(error.to_string().starts_with("the kernel offers no SCTP: "), "{error}"),
            Ok(_) => {
                let (mut near, mut far) = connected_with(&setup, &setup);
                near.write_all(b"x").unwrap();
                far.read_exact(&mut [0]).unwrap();
            }
        }
    }

    #[test]
    fn a_port_is_not_shared() {
        let setup = TcpSetup::default();
        let listener = listen("127.0.0.1:0".parse().unwrap(), &setup).unwrap();
        let error = listen(listener.local_addr().unwrap(), &setup).unwrap_err();
        assert!(matches!(error, TcpError::Io(error) if error.kind() == io::ErrorKind::AddrInUse));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_connection_with_a_peer_without_mptcp_is_told_from_one_with_it() {
        let tcp = TcpSetup::default();
        let multipath = TcpSetup { protocol: StreamProtocol::Mptcp, ..TcpSetup::default() };
        if let Err(error) = listen("127.0.0.1:0".parse().unwrap(), &multipath) {
            assert!(matches!(error, TcpError::NoMultipath), "{error}");
            return skip_without(Missing::KernelMptcp, &error.to_string());
        }
        for (listening, expected) in [(&multipath, true), (&tcp, false)] {
            let (mut near, mut far) = connected_with(&multipath, listening);
            near.write_all(b"x").unwrap();
            far.read_exact(&mut [0]).unwrap();
            assert_eq!(is_multipath(&near), expected);
            drop(far);
            // Also when the peer has gone.
            assert_eq!(near.read(&mut [0]).unwrap(), 0);
            assert_eq!(is_multipath(&near), expected);
            assert!(counters(&near).unwrap().segments_sent > 0);
        }
        let (near, _) = connected_with(&tcp, &multipath);
        assert!(!is_multipath(&near));
    }
}
