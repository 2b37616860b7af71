//! Linux's TCP as a peer: in a network namespace of its own, over a TUN interface whose other side is ours.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd as _;
use std::time::Instant;

use nix::sched::{CloneFlags, unshare};
use socket2::{Domain, SockRef, Socket, TcpKeepalive, Type};
use trunkline_core::{Address, Duration, Ecn, Time};
use trunkline_io::tun::Tun;
use trunkline_io::{Interest, Poller, interface, tcp};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_testkit::script::{Host, HostFigures, Outcome, Setting};
use trunkline_testkit::skips::{Missing, skip_without};
use trunkline_transport::ipv4_of;

/// The interface's name, in a namespace where nobody else has one.
const INTERFACE: &str = "peer";
/// TCP's protocol number in IP (IANA).
const TCP: u8 = 6;

/// Runs `work` on a thread in a network namespace of its own, which disappears with the thread and what it has opened.
/// `None`, as a skip, where namespaces or TUN interfaces are refused.
///
/// # Panics
/// As `work` does.
pub fn alone<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    let inside = || {
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
            skip_without(
                Missing::Namespaces,
                &format!("a network namespace cannot be made: {error}; run as root"),
            );
            return None;
        }
        if let Err(error) = Tun::create("try") {
            skip_without(Missing::Tun, &format!("a TUN interface cannot be made: {error}"));
            return None;
        }
        Some(work())
    };
    std::thread::scope(|scope| scope.spawn(inside).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The kernel as the host of a script, or as the peer of an engine. Its own address is [`NEAR`]'s, the other side's is
/// [`FAR`]'s.
pub struct KernelHost {
    tun: Tun,
    began: Instant,
    settings: Vec<Setting>,
    listener: Option<TcpListener>,
    socket: Option<Socket>,
    outcome: Outcome,
    packet: Vec<u8>,
}

impl KernelHost {
    /// Prepares the calling thread's network namespace, which has to be new: see [`alone`].
    ///
    /// # Errors
    /// If a setting is none of the kernel's.
    ///
    /// # Panics
    /// If the kernel refuses what it allows in a namespace of one's own.
    pub fn new(settings: &[Setting]) -> Result<KernelHost, String> {
        let tun = Tun::create(INTERFACE).expect("a TUN interface could be made a moment ago");
        interface::set_address(INTERFACE, ipv4_of(NEAR.host), 16).expect("the interface is ours");
        interface::set_up(INTERFACE).expect("the interface is ours");
        // Linux's defaults before what this machine's administrator and newer kernels have changed: see docs/checks.md.
        for (key, value) in [
            ("tcp_rmem", "4096 131072 6291456"),
            ("tcp_wmem", "4096 16384 4194304"),
            ("tcp_no_metrics_save", "1"),
            ("tcp_autocorking", "0"),
            ("tcp_syn_linear_timeouts", "0"),
        ] {
            sysctl(key, value);
        }
        for Setting { key, value } in settings {
            let flag = if value == "on" { "1" } else { "0" };
            match key.as_str() {
                "ecn" => match value.as_str() {
                    "off" => sysctl("tcp_ecn", "0"),
                    "on" => sysctl("tcp_ecn", "1"),
                    "accept" => sysctl("tcp_ecn", "2"),
                    other => return Err(format!("the kernel has no `{other}` ECN")),
                },
                "sack" => sysctl("tcp_sack", flag),
                "timestamps" => sysctl("tcp_timestamps", flag),
                "window-scaling" => sysctl("tcp_window_scaling", flag),
                "retries" => sysctl("tcp_retries2", value),
                "syn-retries" => {
                    sysctl("tcp_syn_retries", value);
                    sysctl("tcp_synack_retries", value);
                }
                "tail-loss-probe" => sysctl("tcp_early_retrans", if value == "on" { "3" } else { "0" }),
                "frto" => sysctl("tcp_frto", if value == "on" { "2" } else { "0" }),
                "slow-start-after-idle" => sysctl("tcp_slow_start_after_idle", flag),
                "nodelay" | "congestion" | "receive-buffer" | "keepalive" | "user-timeout" | "pacing" => {}
                _ => return Err(format!("the kernel has no `{key}` for one connection")),
            }
        }
        Ok(KernelHost {
            tun,
            began: Instant::now(),
            settings: settings.to_vec(),
            listener: None,
            socket: None,
            outcome: Outcome::Pending,
            packet: Vec::with_capacity(65_536),
        })
    }

    /// The time since this was made.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// The kernel's end of the connection, once there is one.
    pub fn socket(&mut self) -> Option<&Socket> {
        if let (Some(listener), None) = (&self.listener, &self.socket) {
            self.socket = listener.accept().ok().map(|(stream, _)| stream.into());
            if let Some(socket) = &self.socket {
                socket.set_nonblocking(true).expect("any socket can be that");
            }
        }
        self.socket.as_ref()
    }

    /// The options that a script sets by socket.
    fn apply(&self, socket: &Socket) {
        let mut keepalive = None;
        socket.set_tcp_congestion(b"cubic").expect("it is Linux's default");
        for Setting { key, value } in &self.settings {
            let number = || value.parse::<usize>().expect("the engine has read the same value");
            let time = |text: &str| duration(text).to_std();
            let done = match key.as_str() {
                "nodelay" => socket.set_tcp_nodelay(value == "on"),
                "congestion" => socket.set_tcp_congestion(value.as_bytes()),
                "receive-buffer" => socket.set_recv_buffer_size(number()),
                "user-timeout" => socket.set_tcp_user_timeout(Some(time(value))),
                "pacing" if value == "on" => tcp::pace(socket.as_fd(), u64::MAX / 2),
                "keepalive" => {
                    keepalive = Some(value);
                    Ok(())
                }
                _ => Ok(()),
            };
            done.unwrap_or_else(|error| panic!("the kernel refuses `{key}` {value}: {error}"));
        }
        if let Some([idle, interval, probes]) =
            keepalive.map(|value| value.split(' ').collect::<Vec<_>>()).as_deref()
        {
            let options = TcpKeepalive::new()
                .with_time(duration(idle).to_std())
                .with_interval(duration(interval).to_std())
                .with_retries(probes.parse().expect("the engine has read the same value"));
            socket.set_tcp_keepalive(&options).expect("it takes whole seconds");
        }
    }
}

/// Sets one of the namespace's options of TCP. One that an older kernel has not is as it was there.
fn sysctl(key: &str, value: &str) {
    let path = format!("/proc/sys/net/ipv4/{key}");
    match std::fs::write(&path, value) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => panic!("{path} cannot be set to {value}: {error}"),
    }
}

/// A time of the script's language in whole seconds, as sockets take it, or in milliseconds.
fn duration(text: &str) -> Duration {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let number = digits.parse().expect("the engine has read the same value");
    if text.ends_with("ms") { Duration::from_millis(number) } else { Duration::from_secs(number) }
}

fn socket_address(address: Address) -> SocketAddr {
    (Ipv4Addr::from(ipv4_of(address.host)), address.port).into()
}

impl Host for KernelHost {
    fn next_sent(&mut self, until: Time) -> Option<(Time, Vec<u8>, Ecn)> {
        loop {
            self.packet.clear();
            match self.tun.receive(&mut self.packet) {
                Ok(()) => {
                    if let Some((segment, ecn)) = of_ipv4(&self.packet) {
                        return Some((self.now(), segment.to_vec(), ecn));
                    }
                    continue;
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
            let now = self.now();
            if now >= until {
                return None;
            }
            let mut poller = Poller::new([(self.tun.as_fd(), Interest::Read)]);
            poller.wait(until.since(now)).expect("it is an open descriptor");
        }
    }

    fn deliver(&mut self, _at: Time, segment: &[u8], ecn: Ecn) {
        let packet = in_ipv4(FAR, NEAR, segment, ecn);
        self.tun.send(&packet).expect("the interface is up");
    }

    fn open(&mut self, _at: Time, passive: bool) {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("there is TCP");
        socket.set_nonblocking(true).expect("any socket can be that");
        socket.set_reuse_address(true).expect("any socket can be that");
        self.apply(&socket);
        socket.bind(&socket_address(NEAR).into()).expect("the address is ours");
        if passive {
            socket.listen(8).expect("the port is ours");
            self.listener = Some(socket.into());
            return;
        }
        match socket.connect(&socket_address(FAR).into()) {
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(nix::errno::Errno::EINPROGRESS as i32), "{error}")
            }
            Ok(()) => panic!("nobody can have answered yet"),
        }
        self.socket = Some(socket);
    }

    fn write(&mut self, _at: Time, bytes: &[u8], more: bool) -> usize {
        let Some(mut socket) = self.socket() else { return 0 };
        if more {
            return socket.send_with_flags(bytes, 0x8000).unwrap_or(0);
        }
        socket.write(bytes).unwrap_or(0)
    }

    fn read(&mut self, _at: Time) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(mut socket) = self.socket() {
            // At the end of what is there it would wait.
            let _ = socket.read_to_end(&mut bytes);
        }
        bytes
    }

    fn close(&mut self, _at: Time, abort: bool) {
        if abort {
            if let Some(socket) = self.socket() {
                SockRef::from(socket)
                    .set_linger(Some(core::time::Duration::ZERO))
                    .expect("any socket can be that");
            }
            self.socket = None;
        } else if let Some(socket) = self.socket() {
            // The peer may have reset it.
            let _ = socket.shutdown(std::net::Shutdown::Write);
        }
    }

    fn outcome(&mut self, _at: Time) -> Outcome {
        if matches!(self.outcome, Outcome::Reset | Outcome::TimedOut) {
            return self.outcome;
        }
        let is_pending = self.outcome == Outcome::Pending;
        let Some(socket) = self.socket() else { return self.outcome };
        let outcome = match socket.take_error().expect("any socket can be asked") {
            Some(error) if error.kind() == ErrorKind::TimedOut => Outcome::TimedOut,
            Some(_) => Outcome::Reset,
            // A connection that is over has no peer any more.
            None if is_pending && socket.peer_addr().is_err() => Outcome::Pending,
            None => match socket.peek(&mut [core::mem::MaybeUninit::uninit()]) {
                Ok(0) => Outcome::Ended,
                _ => Outcome::Connected,
            },
        };
        self.outcome = outcome;
        outcome
    }

    fn figures(&mut self, _segment: u64) -> HostFigures {
        let window = self.socket().and_then(|socket| tcp::window(socket.as_fd())).unwrap_or_default();
        HostFigures {
            window: window.congestion_window.into(),
            threshold: window.slow_start_threshold.map(u64::from),
            in_flight: window.in_flight.into(),
        }
    }

    fn slack(&self) -> Duration {
        Duration::from_millis(30)
    }
}

/// A segment within IPv4.
pub fn in_ipv4(from: Address, to: Address, segment: &[u8], ecn: Ecn) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, TCP, 0, 0];
    packet[1] = ecn.bits();
    packet[2..4].copy_from_slice(&((20 + segment.len()) as u16).to_be_bytes());
    packet.extend(ipv4_of(from.host));
    packet.extend(ipv4_of(to.host));
    let sum: u32 = packet.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!((sum & 0xFFFF) + (sum >> 16)) as u16).to_be_bytes());
    packet.extend(segment);
    packet
}

/// The segment in an IPv4 packet, and its ECN field; `None` for anything else.
pub fn of_ipv4(packet: &[u8]) -> Option<(&[u8], Ecn)> {
    let is_tcp = packet.len() >= 40 && packet[0] == 0x45 && packet[9] == TCP;
    is_tcp.then(|| (&packet[20..], Ecn::of_bits(packet[1])))
}
