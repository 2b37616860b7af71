//! Defaults of the systems' TCPs, as far as that is public.

use serde::{Deserialize, Serialize};
use trunkline_core::Duration;

use super::config::{
    AckConfig, BufferConfig, CompressConfig, EcnConfig, Estimator, Hystart, MAX_MSS, Nagle, Recovery,
    TcpConfig, TimeoutConfig, WindowUpdates,
};
use super::congestion::Algorithm;

/// A system whose TCP a connection has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Profile {
    /// Linux 6.1.
    #[default]
    Linux,
    /// Windows 10, 11 and Server 2019 to 2025, with the settings of the template `Internet`.
    Windows,
    /// macOS and iOS.
    Apple,
    /// Solaris 2.5 of 1995.
    Solaris25,
    /// 4.3BSD-Reno of 1990, whose timers and buffers Net/2 and 4.4BSD kept.
    BsdReno,
}

const MS: Duration = Duration::from_millis(1);

impl Profile {
    /// All of them.
    pub const ALL: [Profile; 5] =
        [Profile::Linux, Profile::Windows, Profile::Apple, Profile::Solaris25, Profile::BsdReno];

    /// The name in a file.
    pub const fn name(self) -> &'static str {
        match self {
            Profile::Linux => "linux",
            Profile::Windows => "windows",
            Profile::Apple => "apple",
            Profile::Solaris25 => "solaris-2.5",
            Profile::BsdReno => "bsd-reno",
        }
    }

    /// The sources of its values, and what is not known.
    pub const fn doc(self) -> &'static str {
        match self {
            Profile::Linux => {
                "Linux 6.1 with its default `sysctl` settings, from its documentation (ip-sysctl) and source"
            }
            Profile::Windows => {
                "the TCP of Windows 10, 11, Server 2019 and later, template `Internet`. From `Get-NetTCPSetting`, as \
                 Microsoft shows it: CUBIC, initial window 10, `rto-min` 300 ms, delayed acknowledgements of 40 ms \
                 for every second segment, no slow start after idle, no time stamps, no ECN. From Microsoft's \
                 announcements: RACK, tail loss probes, HyStart++ (RFC 9406). From Microsoft's registry reference: 5 \
                 retransmissions. Not public, and therefore Linux's or the RFC's: timer granularity, growth of \
                 buffers (at most 16 MiB), quick acknowledgements (none here), and the estimator of timeouts (RFC \
                 6298)"
            }
            Profile::Apple => {
                "macOS and iOS, from the published sources of XNU: CUBIC without HyStart, initial window 10, \
                 timeouts of the measured one plus 200 ms, at most 64 s, first 1 s; 12 retransmissions; delayed \
                 acknowledgements of 100 ms; keep-alive after 2 h, every 75 s, 8 times; RACK and tail loss probes. \
                 The system decides from its experience of a network whether to request ECN (here `passive`); it \
                 acknowledges a segment with PSH at once, and stretches acknowledgements of bulk data (neither is \
                 modelled). Buffers are Linux's"
            }
            Profile::Solaris25 => {
                "the TCP of Solaris 2.5, from Sun's tunable parameters of `ndd /dev/tcp` (windows of 8 KiB, \
                 `tcp_rexmit_interval_initial` 500 ms, `tcp_rexmit_interval_min` 200 ms, `tcp_deferred_ack_interval` \
                 50 ms) and RFC 2525, which describes its timers: a doubled timeout is forgotten with the next \
                 acknowledgement. No window scaling, time stamps or selective acknowledgements. Its timer \
                 granularity is not public (here timers are exact)"
            }
            Profile::BsdReno => {
                "4.3BSD-Reno, from Stevens's TCP/IP Illustrated, volumes 1 and 2: fast recovery that repairs one segment (RFC \
                 2001), initial window 1, timers of 500 ms, timeouts from 1 s to 64 s, first 6 s, 12 retransmissions; every second \
                 segment is acknowledged, a single one within 200 ms; buffers of 8 KiB; no window scaling, time stamps or selective \
                 acknowledgements"
            }
        }
    }

    /// Its options.
    pub fn config(self) -> TcpConfig {
        match self {
            Profile::Linux => TcpConfig::default(),
            Profile::Windows => windows(),
            Profile::Apple => apple(),
            Profile::Solaris25 => solaris(),
            Profile::BsdReno => bsd(),
        }
    }

    /// Its rule for collecting small messages where the application does not forbid that.
    pub const fn nagle(self) -> Nagle {
        match self {
            Profile::Linux => Nagle::Minshall,
            // `tcp_naglim_def`.
            Profile::Solaris25 => Nagle::Below(4095),
            _ => Nagle::Below(MAX_MSS),
        }
    }
}

/// Acknowledges every second segment, a single one after a fixed delay.
fn fixed_acks(delay: Duration) -> AckConfig {
    AckConfig {
        delay,
        adaptive: false,
        max_delay: delay,
        every: 2,
        quick: 0,
        unpushed: false,
        compress: CompressConfig { delay: Duration::ZERO, count: 0 },
        tick: Duration::ZERO,
    }
}

fn windows() -> TcpConfig {
    TcpConfig {
        receive_buffer: BufferConfig { initial: 64 << 10, max: 16 << 20 },
        timestamps: false,
        hystart: Hystart::PlusPlus,
        slow_start_after_idle: false,
        timeout: TimeoutConfig {
            estimator: Estimator::Rfc6298,
            initial: MS * 1000,
            min: MS * 300,
            max: MS * 60_000,
            keep_backoff: true,
        },
        acks: fixed_acks(MS * 40),
        window_updates: WindowUpdates::TwoSegments,
        half_window_segments: false,
        ecn: EcnConfig::Off,
        retries: 5,
        syn_retries: 4,
        tick: Duration::ZERO,
        ..TcpConfig::default()
    }
}

fn apple() -> TcpConfig {
    TcpConfig {
        hystart: Hystart::Off,
        timeout: TimeoutConfig { max: MS * 64_000, ..TimeoutConfig::default() },
        acks: fixed_acks(MS * 100),
        window_updates: WindowUpdates::TwoSegments,
        half_window_segments: false,
        retries: 12,
        syn_retries: 12,
        tick: MS * 10,
        ..TcpConfig::default()
    }
}

/// Both systems of the 1990s, without what they lack.
fn classic(buffer: usize) -> TcpConfig {
    TcpConfig {
        receive_buffer: BufferConfig::fixed(buffer),
        send_buffer: BufferConfig::fixed(buffer),
        wakes_writer_late: false,
        window_scaling: false,
        timestamps: false,
        sack: false,
        congestion_control: Algorithm::reno(),
        hystart: Hystart::Off,
        initial_window: 1,
        recovery: Recovery::Reno,
        tail_loss_probe: false,
        frto: false,
        half_window_segments: false,
        window_in_bytes: true,
        burst: 0,
        ecn: EcnConfig::Off,
        retries: 12,
        syn_retries: 12,
        ..TcpConfig::default()
    }
}

fn solaris() -> TcpConfig {
    TcpConfig {
        timeout: TimeoutConfig {
            estimator: Estimator::Rfc6298,
            initial: MS * 500,
            min: MS * 200,
            max: MS * 60_000,
            keep_backoff: false,
        },
        acks: AckConfig { unpushed: true, tick: Duration::ZERO, ..fixed_acks(MS * 50) },
        window_updates: WindowUpdates::WhenClosed,
        tick: Duration::ZERO,
        ..classic(8 << 10)
    }
}

fn bsd() -> TcpConfig {
    TcpConfig {
        timeout: TimeoutConfig {
            estimator: Estimator::Rfc6298,
            initial: MS * 6000,
            min: MS * 1000,
            max: MS * 64_000,
            keep_backoff: true,
        },
        // The fast timer of the protocols.
        acks: AckConfig { tick: MS * 200, ..fixed_acks(MS * 200) },
        window_updates: WindowUpdates::TwoSegments,
        tick: MS * 500,
        ..classic(8 << 10)
    }
}
