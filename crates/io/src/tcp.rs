//! The kernel's TCP: options that the standard library has not, and its own account of a connection.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

use socket2::{Domain, Protocol, Socket, Type};
use trunkline_core::Duration;

/// How a connection is made. Options that shape the handshake (window, segment size) are set before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpSetup {
    /// Send and receive buffer in bytes (`SO_SNDBUF`, `SO_RCVBUF`): what the window can grow to.
    pub window: Option<usize>,
    /// Largest segment payload in bytes (`TCP_MAXSEG`).
    pub mss: Option<u32>,
    /// Send small messages at once (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Congestion control by the kernel's name (`TCP_CONGESTION`). Linux only.
    pub congestion_control: Option<String>,
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
    /// The segment size was refused.
    #[error("the kernel refuses segments of {0} bytes (`mss`): {1}")]
    SegmentSize(u32, io::Error),
    /// Anything else.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Opens a connection, giving up after `patience`.
pub fn connect(
    local: std::net::IpAddr,
    peer: SocketAddr,
    setup: &TcpSetup,
    patience: Duration,
) -> Result<TcpStream, TcpError> {
    let socket = Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))?;
    apply(&socket, setup)?;
    socket.bind(&SocketAddr::new(local, 0).into())?;
    socket.connect_timeout(&peer.into(), patience.to_std())?;
    Ok(socket.into())
}

/// Opens a listener at `local`; accepted connections inherit what is set on it.
pub fn listen(local: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(local), Type::STREAM, Some(Protocol::TCP))?;
    // Closed connections of the run before must not keep the port from this one; a second listener still cannot have
    // it.
    socket.set_reuse_address(true)?;
    socket.bind(&local.into())?;
    socket.listen(1024)?;
    Ok(socket.into())
}

/// Sets options on a listener (before its connections arrive) or on an accepted connection.
pub fn set_up(socket: &impl std::os::fd::AsFd, setup: &TcpSetup) -> Result<(), TcpError> {
    // A second descriptor of the same socket: options belong to the socket.
    let same = Socket::from(socket.as_fd().try_clone_to_owned()?);
    apply(&same, setup)
}

fn apply(socket: &Socket, setup: &TcpSetup) -> Result<(), TcpError> {
    if let Some(window) = setup.window {
        socket.set_send_buffer_size(window)?;
        socket.set_recv_buffer_size(window)?;
    }
    if let Some(mss) = setup.mss {
        socket.set_tcp_mss(mss).map_err(|error| TcpError::SegmentSize(mss, error))?;
    }
    socket.set_tcp_nodelay(setup.nodelay)?;
    if let Some(wanted) = &setup.congestion_control {
        set_congestion_control(socket, wanted)?;
    }
    Ok(())
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

/// Reads the kernel's counters (`TCP_INFO`); `None` where it has none.
#[cfg(target_os = "linux")]
pub fn counters(stream: &TcpStream) -> Option<TcpCounters> {
    use std::os::fd::AsRawFd as _;

    /// The fields of `struct tcp_info` up to those that are read here (linux/tcp.h; grows at its end only).
    #[repr(C)]
    struct TcpInfo {
        states: [u8; 8],
        before_rtt: [u32; 15],
        rtt: u32,
        before_total: [u32; 6],
        rcv_space: u32,
        total_retrans: u32,
        rates: [u64; 4],
        segs_out: u32,
        segs_in: u32,
    }
    // SAFETY: the structure is plain integers, for which all-zero bytes are valid.
    let mut info: TcpInfo = unsafe { core::mem::zeroed() };
    let mut length = size_of::<TcpInfo>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into a structure of that length.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &mut length,
        )
    };
    (result == 0).then_some(TcpCounters {
        retransmitted_segments: u64::from(info.total_retrans),
        segments_sent: u64::from(info.segs_out),
        segments_received: u64::from(info.segs_in),
        smoothed_rtt_micros: u64::from(info.rtt),
    })
}

/// Reads the kernel's counters (`TCP_INFO`); `None` where it has none.
#[cfg(not(target_os = "linux"))]
pub fn counters(_: &TcpStream) -> Option<TcpCounters> {
    None
}

/// Closes the connection at once when it is dropped, throwing away what is still to be sent (RST).
pub fn abort_on_close(stream: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(stream).set_linger(Some(core::time::Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    fn connected(setup: &TcpSetup) -> (TcpStream, TcpStream) {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
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

    #[test]
    fn an_unknown_congestion_control_is_answered_with_those_that_exist() {
        let setup = TcpSetup { congestion_control: Some("warp".to_owned()), ..TcpSetup::default() };
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let error = set_up(&listener, &setup).unwrap_err().to_string();
        assert!(
            error.starts_with("the kernel does not offer the congestion control `warp`; it offers "),
            "{error}"
        );
    }

    #[test]
    fn a_port_is_not_shared() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let error = listen(listener.local_addr().unwrap()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
