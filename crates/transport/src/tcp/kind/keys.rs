//! Keys of TCP's engine: what each sets, and what stands for it on real sockets.

use super::super::{
    BufferConfig, EcnConfig, Estimator, Hystart, KeepaliveConfig, MAX_MSS, Nagle, Pacing, Profile, Recovery,
    TcpConfig, WindowUpdates,
};
use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter, Values};
use trunkline_core::{Bytes, Duration, Rate};

/// A key of TCP's engine.
pub(crate) struct TcpKey {
    /// Its entry in the schema.
    pub(crate) parameter: Parameter,
    /// Sets it. The value is there.
    set: fn(&mut TcpConfig, &Values),
    /// Its equivalent on real sockets.
    on_sockets: OnSockets,
}

/// The equivalent of a key of TCP on real sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnSockets {
    /// An option of the socket: the key applies.
    Option(&'static str),
    /// A setting of the host.
    Sysctl(&'static str),
    /// A setting of a route of the host.
    Route(&'static str),
    /// Nothing.
    Nothing,
}

/// Names of keys that the code asks for.
pub(crate) const PROFILE: &str = "profile";
pub(super) const NAGLE: &str = "nagle";
pub(super) const CORK: &str = "cork";

impl TcpKey {
    const fn new(
        name: &'static str,
        kind: Kind,
        on_sockets: OnSockets,
        doc: &'static str,
        set: fn(&mut TcpConfig, &Values),
    ) -> TcpKey {
        TcpKey { parameter: Parameter { name, kind, default: Preset::Absent, doc }, set, on_sockets }
    }
}

const fn word(name: &'static str, doc: &'static str) -> Choice {
    Choice { name, doc }
}

const fn duration(min: Duration, max: Duration) -> Kind {
    Kind::Duration { min, max }
}

/// A millisecond to an hour.
const TIMEOUT: Kind = duration(Duration::from_millis(1), Duration::from_secs(3600));
const LONG: Kind = duration(Duration::from_millis(1), Duration::from_secs(86_400));
const ACK_DELAY: Kind = duration(Duration::ZERO, Duration::from_millis(500));
const BUFFER: Kind = Kind::Bytes { min: Bytes(1 << 10), max: Bytes(1 << 30) };
const COUNT: Kind = Kind::Integer { min: 1, max: 1000 };

use OnSockets::{Nothing, Option as Socket, Route, Sysctl};

/// The profile's entry.
pub(super) const PROFILES: Parameter = Parameter {
    name: PROFILE,
    kind: Kind::Choice(&{
        let mut words = [word("", ""); Profile::ALL.len()];
        let mut index = 0;
        while index < words.len() {
            words[index] = word(Profile::ALL[index].name(), Profile::ALL[index].doc());
            index += 1;
        }
        words
    }),
    default: Preset::Text(Profile::Linux.name()),
    doc: "The operating system whose TCP `sim` models. A profile sets all keys below; keys in the file override it. \
          On real sockets, the hosts' own TCP runs.",
};

/// All keys, in the order of the reference.
pub(crate) const KEYS: &[TcpKey] = &[
    TcpKey::new(
        NAGLE,
        Kind::Bytes { min: Bytes(0), max: Bytes(MAX_MSS as u64) },
        Nothing,
        "Segments smaller than this wait while data is unacknowledged (RFC 896). The size of the largest segment \
         gives the algorithm of RFC 9293 section 3.7.4; 0 turns it off. A limit between these is also the smallest \
         window that is used; otherwise that is half of the largest window so far. Excludes `nodelay = true`; \
         `nodelay = false` is the profile's own algorithm.",
        |config, values| {
            config.nagle = match values.bytes(NAGLE).count() as usize {
                0 => Nagle::Off,
                limit => Nagle::Below(limit),
            }
        },
    ),
    TcpKey::new(
        CORK,
        Kind::Flag,
        Socket("TCP_CORK"),
        "`TCP_CORK`: only full segments are sent; the rest waits for a retransmission timeout (200 ms and a round trip \
         or more) or for the end of the data. Excludes `nodelay = true`.",
        |config, values| {
            if values.flag(CORK) {
                config.nagle = Nagle::Cork;
            }
        },
    ),
    TcpKey::new(
        "sack",
        Kind::Flag,
        Sysctl("net.ipv4.tcp_sack"),
        "Selective acknowledgements (RFC 2018) and reports of duplicates (RFC 2883), offered and accepted. Without them \
         `recovery` is `dupack` and tail loss probes are off.",
        |config, values| {
            config.sack = values.flag("sack");
            if !config.sack {
                if config.recovery == Recovery::Rack {
                    config.recovery = Recovery::Dupack;
                }
                config.tail_loss_probe = false;
            }
        },
    ),
    TcpKey::new(
        "timestamps",
        Kind::Flag,
        Sysctl("net.ipv4.tcp_timestamps"),
        "Time stamps and protection against wrapped sequence numbers (RFC 7323), offered and accepted.",
        |config, values| config.timestamps = values.flag("timestamps"),
    ),
    TcpKey::new(
        "window-scaling",
        Kind::Flag,
        Sysctl("net.ipv4.tcp_window_scaling"),
        "Window scaling (RFC 7323), offered and accepted. Without it, a window has at most 65,535 bytes.",
        |config, values| config.window_scaling = values.flag("window-scaling"),
    ),
    TcpKey::new(
        "ecn",
        Kind::Choice(&[
            word("off", "neither requested nor accepted"),
            word("passive", "accepted if the peer requests it: Linux's default"),
            word("on", "requested and accepted (RFC 3168)"),
            word(
                "accurate",
                "requested with accurate feedback (RFC 9768), or as in RFC 3168 if the peer does not support it",
            ),
        ]),
        Sysctl("net.ipv4.tcp_ecn"),
        "Explicit congestion notification. Without this key, as in the profile or as the congestion control \
         requires.",
        |config, values| {
            config.ecn = match values.text("ecn").as_str() {
                "off" => EcnConfig::Off,
                "on" => EcnConfig::On,
                "accurate" => EcnConfig::Accurate,
                _ => EcnConfig::Accept,
            }
        },
    ),
    TcpKey::new(
        "autotuning",
        Kind::Flag,
        Sysctl("net.ipv4.tcp_moderate_rcvbuf"),
        "Whether the receive and the send buffer grow with the capacity of the path (dynamic right-sizing). Excludes \
         `window`, which fixes both.",
        |config, values| {
            if !values.flag("autotuning") {
                config.receive_buffer = BufferConfig::fixed(config.receive_buffer.initial);
                config.send_buffer = BufferConfig::fixed(config.send_buffer.initial);
            }
        },
    ),
    TcpKey::new(
        "max-window",
        BUFFER,
        Sysctl("net.ipv4.tcp_rmem"),
        "Largest receive window that autotuning allows (Linux: half of the last value of `tcp_rmem`, 3 MiB).",
        |config, values| {
            let max = values.bytes("max-window").count() as usize;
            config.receive_buffer = BufferConfig { initial: config.receive_buffer.initial.min(max), max };
        },
    ),
    TcpKey::new(
        "send-buffer",
        BUFFER,
        Socket("SO_SNDBUF"),
        "Fixed size of the send buffer: a message of any size is accepted while less than this is unsent or \
         unacknowledged. `window` alone sets it, too.",
        |config, values| {
            config.send_buffer = BufferConfig::fixed(values.bytes("send-buffer").count() as usize);
        },
    ),
    TcpKey::new(
        "hystart",
        Kind::Choice(&[
            word("off", "slow start ends with a loss"),
            word(
                "linux",
                "by the length of a train of acknowledgements, or an increase of the round trip (Ha and Rhee 2011)",
            ),
            word("hystart++", "RFC 9406"),
        ]),
        Nothing,
        "Rule by which slow start ends before the first loss. Only `cubic` uses it.",
        |config, values| {
            config.hystart = match values.text("hystart").as_str() {
                "off" => Hystart::Off,
                "hystart++" => Hystart::PlusPlus,
                _ => Hystart::Linux,
            }
        },
    ),
    TcpKey::new(
        "initial-window",
        COUNT,
        Route("initcwnd"),
        "Number of segments with which slow start begins (RFC 6928: 10; RFC 2001: 1).",
        |config, values| config.initial_window = values.integer("initial-window") as u32,
    ),
    TcpKey::new(
        "slow-start-after-idle",
        Kind::Flag,
        Sysctl("net.ipv4.tcp_slow_start_after_idle"),
        "Whether the congestion window shrinks while nothing is sent (RFC 5681 section 4.1).",
        |config, values| config.slow_start_after_idle = values.flag("slow-start-after-idle"),
    ),
    TcpKey::new(
        "recovery",
        Kind::Choice(&[
            word("rack", "by the time of sending (RFC 8985); needs `sack`"),
            word(
                "dupack",
                "by three duplicate acknowledgements: RFC 6675, without `sack` NewReno (RFC 6582)",
            ),
            word("reno", "by three duplicate acknowledgements, one segment for each repair (RFC 2001)"),
            word("timeout", "by the retransmission timer alone"),
        ]),
        Sysctl("net.ipv4.tcp_recovery"),
        "Detection and repair of losses.",
        |config, values| {
            config.recovery = match values.text("recovery").as_str() {
                "dupack" => Recovery::Dupack,
                "reno" => Recovery::Reno,
                "timeout" => Recovery::Timeout,
                _ => Recovery::Rack,
            }
        },
    ),
    TcpKey::new(
        "fast-retransmit",
        Kind::Flag,
        Nothing,
        "`false`: only the timer repairs losses, as with `recovery = \"timeout\"`.",
        |config, values| {
            if !values.flag("fast-retransmit") {
                config.recovery = Recovery::Timeout;
            }
        },
    ),
    TcpKey::new(
        "tail-loss-probe",
        Kind::Flag,
        Sysctl("net.ipv4.tcp_early_retrans"),
        "Whether the last segment is retransmitted after two round trips without an acknowledgement (RFC 8985 \
         section 7). Needs `sack`.",
        |config, values| config.tail_loss_probe = values.flag("tail-loss-probe"),
    ),
    TcpKey::new(
        "f-rto",
        Kind::Flag,
        Sysctl("net.ipv4.tcp_frto"),
        "Whether spurious timeouts are detected (RFC 5682).",
        |config, values| config.frto = values.flag("f-rto"),
    ),
    TcpKey::new(
        "rto-initial",
        TIMEOUT,
        Nothing,
        "Retransmission timeout before the first round trip has been measured (RFC 6298: 1 s; RFC 1122: 3 s).",
        |config, values| config.timeout.initial = values.duration("rto-initial"),
    ),
    TcpKey::new(
        "rto-min",
        TIMEOUT,
        Route("rto_min"),
        "Shortest retransmission timeout (RFC 6298: 1 s; Linux: 200 ms).",
        |config, values| config.timeout.min = values.duration("rto-min"),
    ),
    TcpKey::new(
        "rto-max",
        TIMEOUT,
        Nothing,
        "Longest retransmission timeout (RFC 6298: at least 60 s; Linux: 120 s).",
        |config, values| config.timeout.max = values.duration("rto-max"),
    ),
    TcpKey::new(
        "rto-estimator",
        Kind::Choice(&[
            word(
                "linux",
                "the smoothed round trip plus its variation in the last one, which counts as at least `rto-min`",
            ),
            word(
                "rfc6298",
                "the smoothed round trip plus four times its variation, at least `rto-min` in total",
            ),
        ]),
        Nothing,
        "Computation of the retransmission timeout from the round trip.",
        |config, values| {
            config.timeout.estimator = match values.text("rto-estimator").as_str() {
                "rfc6298" => Estimator::Rfc6298,
                _ => Estimator::Linux,
            }
        },
    ),
    TcpKey::new(
        "keep-backoff",
        Kind::Flag,
        Nothing,
        "Whether a doubled retransmission timeout stays until a segment that was sent only once is acknowledged \
         (Karn; RFC 6298 section 5). Otherwise any acknowledgement of new data ends it, and if the round trip has \
         become longer than the timeout, every segment is sent twice from then on (compare RFC 2525 sections 2.7 and \
         2.10).",
        |config, values| config.timeout.keep_backoff = values.flag("keep-backoff"),
    ),
    TcpKey::new(
        "delayed-ack",
        ACK_DELAY,
        Nothing,
        "Time that an acknowledgement waits for data or another segment (RFC 9293 section 3.8.6.3); 0 acknowledges \
         every segment at once. With `adaptive-ack`, the shortest such time.",
        |config, values| {
            let delay = values.duration("delayed-ack");
            let acks = &mut config.acks;
            (acks.delay, acks.max_delay) = (delay, acks.max_delay.max(delay));
            acks.adaptive &= !delay.is_zero();
        },
    ),
    TcpKey::new(
        "max-delayed-ack",
        ACK_DELAY,
        Nothing,
        "With `adaptive-ack`, the longest delay of an acknowledgement (Linux: 200 ms).",
        |config, values| config.acks.max_delay = values.duration("max-delayed-ack"),
    ),
    TcpKey::new(
        "adaptive-ack",
        Kind::Flag,
        Nothing,
        "Whether the delay of acknowledgements adapts to the intervals of the peer's segments, as in Linux, or is \
         fixed.",
        |config, values| config.acks.adaptive = values.flag("adaptive-ack"),
    ),
    TcpKey::new(
        "ack-every",
        COUNT,
        Nothing,
        "Number of full-size segments after which an acknowledgement is sent at once (RFC 9293 section 3.8.6.3: 2).",
        |config, values| config.acks.every = values.integer("ack-every") as u32,
    ),
    TcpKey::new(
        "quick-ack",
        Kind::Integer { min: 0, max: 1000 },
        Route("quickack"),
        "Number of segments of a new or restarted connection that are acknowledged at once (Linux: 16).",
        |config, values| config.acks.quick = values.integer("quick-ack") as u32,
    ),
    TcpKey::new(
        "ack-unpushed",
        Kind::Flag,
        Nothing,
        "Whether a segment without PSH is acknowledged at once, as Solaris 2 did in effect: more segments are known \
         to follow, and only the last of a burst waits for `delayed-ack`.",
        |config, values| config.acks.unpushed = values.flag("ack-unpushed"),
    ),
    TcpKey::new(
        "compressed-ack-delay",
        duration(Duration::ZERO, Duration::from_millis(100)),
        Sysctl("net.ipv4.tcp_comp_sack_delay_ns"),
        "Time for which acknowledgements of segments behind a gap are held back and merged, at most a twentieth of \
         the round trip (Linux: 1 ms); 0 sends each.",
        |config, values| config.acks.compress.delay = values.duration("compressed-ack-delay"),
    ),
    TcpKey::new(
        "compressed-acks",
        Kind::Integer { min: 0, max: 255 },
        Sysctl("net.ipv4.tcp_comp_sack_nr"),
        "Maximum number of acknowledgements that are merged in this way (Linux: 44); 0 sends each.",
        |config, values| config.acks.compress.count = values.integer("compressed-acks") as u32,
    ),
    TcpKey::new(
        "window-updates",
        Kind::Flag,
        Nothing,
        "Whether a window update is sent when reading has opened the window by two segments or by half of the buffer \
         (RFC 9293 section 3.8.6.2.2). Otherwise the next acknowledgement announces the new window, unless the \
         window was closed, as in Solaris 2, where data that is read without delay never counts against the window. \
         Linux does neither: it announces a window that has doubled.",
        |config, values| {
            config.window_updates = match values.flag("window-updates") {
                true => WindowUpdates::TwoSegments,
                false => WindowUpdates::WhenClosed,
            }
        },
    ),
    TcpKey::new(
        "pacing",
        Kind::Choice(&[
            word("auto", "if the congestion control needs it: Linux without the queue `fq` at the interface"),
            word(
                "always",
                "at twice the rate of the window in slow start, at 1.2 times after it: Linux with `fq`",
            ),
            word("never", "never"),
        ]),
        Nothing,
        "Whether departures are spread over the round trip.",
        |config, values| {
            config.pacing = match values.text("pacing").as_str() {
                "always" => Pacing::Always,
                "never" => Pacing::Never,
                _ => Pacing::Auto,
            }
        },
    ),
    TcpKey::new(
        "max-pacing-rate",
        Kind::Rate {
            min: Rate::from_bits_per_second(1000),
            max: Rate::from_bits_per_second(400_000_000_000),
        },
        Socket("SO_MAX_PACING_RATE"),
        "`SO_MAX_PACING_RATE`: maximum pacing rate of the payload; departures are paced.",
        |config, values| config.max_pacing_rate = Some(values.rate("max-pacing-rate")),
    ),
    TcpKey::new(
        "offload",
        Kind::Bytes { min: Bytes(0), max: Bytes(1 << 20) },
        Nothing,
        "Segmentation offload: the largest burst that reaches the network at once (Linux: 64 KiB); 0 sends segment by segment.",
        |config, values| config.burst = values.bytes("offload").count() as usize,
    ),
    TcpKey::new(
        "interface-rate",
        Kind::Rate {
            min: Rate::from_bits_per_second(1000),
            max: Rate::from_bits_per_second(400_000_000_000),
        },
        Nothing,
        "Rate of the host's own interface. It spreads bursts, and little of a connection waits in front of it (TCP \
         small queues). Without this key, bursts reach the network at once.",
        |config, values| config.interface = Some(values.rate("interface-rate")),
    ),
    TcpKey::new(
        "keep-alive",
        LONG,
        Socket("TCP_KEEPIDLE"),
        "Probes a connection that is idle for this long (`SO_KEEPALIVE`, `TCP_KEEPIDLE`; RFC 9293 section 3.8.4). Without this \
         key no probes are sent.",
        |config, values| keepalive(config).time = values.duration("keep-alive"),
    ),
    TcpKey::new(
        "keep-alive-interval",
        LONG,
        Socket("TCP_KEEPINTVL"),
        "Time between probes of an idle connection (`TCP_KEEPINTVL`; 75 s). Needs `keep-alive`.",
        |config, values| keepalive(config).interval = values.duration("keep-alive-interval"),
    ),
    TcpKey::new(
        "keep-alive-probes",
        COUNT,
        Socket("TCP_KEEPCNT"),
        "The number of unanswered probes that end an idle connection (`TCP_KEEPCNT`; 9). Needs `keep-alive`.",
        |config, values| keepalive(config).probes = values.integer("keep-alive-probes") as u32,
    ),
    TcpKey::new(
        "user-timeout",
        LONG,
        Socket("TCP_USER_TIMEOUT"),
        "Time for which sent data may stay unacknowledged before the connection is aborted (`TCP_USER_TIMEOUT`, RFC \
         5482).",
        |config, values| config.user_timeout = Some(values.duration("user-timeout")),
    ),
    TcpKey::new(
        "retries",
        COUNT,
        Sysctl("net.ipv4.tcp_retries2"),
        "A connection without acknowledgements is aborted after the time that this number of doublings of the shortest \
         timeout takes (Linux: 15, which is 924.6 s).",
        |config, values| config.retries = values.integer("retries") as u32,
    ),
    TcpKey::new(
        "syn-retries",
        COUNT,
        Sysctl("net.ipv4.tcp_syn_retries"),
        "Number of times that a SYN is retransmitted (Linux: 6).",
        |config, values| config.syn_retries = values.integer("syn-retries") as u32,
    ),
    TcpKey::new(
        "half-window-segments",
        Kind::Flag,
        Nothing,
        "Whether a segment has at most half of the peer's largest window, as in Linux, so that two fit into it. \
         Otherwise a segment shrinks to fit the window, if the rules against silly windows permit it (RFC 9293 \
         section 3.8.6.2.1).",
        |config, values| config.half_window_segments = values.flag("half-window-segments"),
    ),
    TcpKey::new(
        "window-in-bytes",
        Kind::Flag,
        Nothing,
        "Whether the congestion window counts bytes and grows with every acknowledgement (RFC 2001): by a segment in \
         slow start, by a segment per window in congestion avoidance, whether or not the window was full. Linux \
         counts acknowledged segments, and grows the window only if it is used.",
        |config, values| config.window_in_bytes = values.flag("window-in-bytes"),
    ),
    TcpKey::new(
        "timer-step",
        duration(Duration::ZERO, Duration::from_secs(1)),
        Nothing,
        "Granularity of the host's retransmission timers (Linux: 4 ms, a jiffy at 250 Hz; BSD: 500 ms); 0 makes them \
         exact.",
        |config, values| config.tick = values.duration("timer-step"),
    ),
];

fn keepalive(config: &mut TcpConfig) -> &mut KeepaliveConfig {
    config.keepalive.get_or_insert(KeepaliveConfig {
        time: Duration::from_secs(7200),
        interval: Duration::from_secs(75),
        probes: 9,
    })
}

/// The equivalent of a key of TCP on real sockets; `None` where there is no such key of the engine.
pub(super) fn on_sockets(name: &str) -> Option<OnSockets> {
    if name == PROFILE {
        return Some(OnSockets::Nothing);
    }
    KEYS.iter().find(|key| key.parameter.name == name).map(|key| key.on_sockets)
}

/// The profile of these values with every key that is given, and the names of those.
pub(super) fn config(values: &Values) -> (TcpConfig, Vec<String>) {
    let name = values.text(PROFILE);
    let profile = Profile::ALL.into_iter().find(|profile| profile.name() == name).unwrap_or_default();
    let mut config = profile.config();
    if values.flag_if_given("nodelay") == Some(false) {
        config.nagle = profile.nagle();
    }
    if let Some(algorithm) = values.text_if_given("congestion-control").and_then(|name| name.parse().ok()) {
        config.congestion_control = algorithm;
    }
    let mut given = Vec::new();
    if profile != Profile::Linux {
        given.push(PROFILE.to_owned());
    }
    for key in KEYS.iter().filter(|key| super::is_given(values, key.parameter.name)) {
        (key.set)(&mut config, values);
        given.push(key.parameter.name.to_owned());
    }
    if let Some(window) = values.bytes_if_given("window") {
        let window = window.count() as usize;
        config.receive_buffer = BufferConfig::fixed(window);
        if !super::is_given(values, "send-buffer") {
            // As with SO_SNDBUF set to it: Linux doubles that, and about five sixths of it are left for data. The window can
            // just be filled, as a writer is woken when a third of the buffer is free.
            let buffer = if config.wakes_writer_late { window * 5 / 3 } else { window };
            config.send_buffer = BufferConfig::fixed(buffer.min(crate::tcp::MAX_BUFFER));
        }
    }
    (config, given)
}

#[cfg(test)]
mod tests {
    use trunkline_core::schema::Value;

    use super::*;

    /// Values of all keys of TCP, of which only `given` are.
    fn values(given: &[(&str, Value)]) -> Values {
        let of = |parameter: &Parameter| {
            let value =
                given.iter().find(|(name, _)| *name == parameter.name).map(|(_, value)| value.clone());
            let preset = match parameter.default {
                Preset::Text(text) => Value::Text(text.to_owned()),
                _ => Value::Absent,
            };
            (parameter.name, value.unwrap_or(preset))
        };
        Values::new(super::super::PARAMETERS.iter().map(of).collect())
    }

    /// Two values of a kind that no default is.
    fn others(kind: Kind) -> Vec<Value> {
        match kind {
            Kind::Flag => vec![Value::Flag(true), Value::Flag(false)],
            Kind::Duration { min, .. } => vec![Value::Duration(min + Duration::from_millis(77))],
            Kind::Rate { .. } => vec![Value::Rate(Rate::from_bits_per_second(7_000_000))],
            Kind::Bytes { .. } => vec![Value::Bytes(Bytes(7777))],
            Kind::Integer { .. } => vec![Value::Integer(7)],
            Kind::Choice(words) => words.iter().map(|word| Value::Text(word.name.to_owned())).collect(),
            other => panic!("no key of TCP is of this kind: {other:?}"),
        }
    }

    #[test]
    fn every_key_changes_the_options_of_some_profile() {
        for key in KEYS {
            let name = key.parameter.name;
            let changes = |value: &Value| {
                Profile::ALL.iter().any(|profile| {
                    let profile = (PROFILE, Value::Text(profile.name().to_owned()));
                    let (without, _) = config(&values(std::slice::from_ref(&profile)));
                    let (with, given) = config(&values(&[profile, (name, value.clone())]));
                    assert!(given.iter().any(|key| key == name), "{given:?}");
                    without != with
                })
            };
            assert!(others(key.parameter.kind).iter().any(changes), "`{name}` changes nothing");
        }
    }

    #[test]
    fn without_keys_it_is_linux_and_every_profile_is_possible() {
        assert_eq!(config(&values(&[])), (TcpConfig::default(), Vec::new()));
        for profile in Profile::ALL {
            let (config, _) = config(&values(&[(PROFILE, Value::Text(profile.name().to_owned()))]));
            assert_eq!(config, profile.config());
            assert_eq!(config.check(), Ok(()), "{}", profile.name());
        }
    }

    #[test]
    fn nodelay_off_is_the_profiles_own_algorithm_and_a_window_fixes_both_buffers() {
        let off = ("nodelay", Value::Flag(false));
        assert_eq!(config(&values(std::slice::from_ref(&off))).0.nagle, Nagle::Minshall);
        let solaris = (PROFILE, Value::Text("solaris-2.5".to_owned()));
        assert_eq!(config(&values(&[solaris, off])).0.nagle, Nagle::Below(4095));
        let window = ("window", Value::Bytes(Bytes(30_000)));
        let (fixed, _) = config(&values(std::slice::from_ref(&window)));
        assert_eq!(fixed.receive_buffer, BufferConfig::fixed(30_000));
        assert_eq!(fixed.send_buffer, BufferConfig::fixed(50_000));
        let (other, _) = config(&values(&[window, ("send-buffer", Value::Bytes(Bytes(9000)))]));
        assert_eq!(other.send_buffer, BufferConfig::fixed(9000));
    }

    #[test]
    fn without_selective_acknowledgements_what_needs_them_is_off() {
        let (config, _) = config(&values(&[("sack", Value::Flag(false))]));
        assert_eq!((config.recovery, config.tail_loss_probe), (Recovery::Dupack, false));
        assert_eq!(config.check(), Ok(()));
    }
}
