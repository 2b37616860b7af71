//! Our engine as the host of a script, in virtual time.

use std::collections::BTreeMap;

use trunkline_core::{Address, Duration, Ecn, Time};
use trunkline_transport::tcp::{
    BufferConfig, EcnConfig, Hystart, KeepaliveConfig, Nagle, Pacing, Recovery, TcpConfig, TcpEndpoint,
};
use trunkline_transport::{Close, CloseReason, Conversation as _, Endpoint as _, Event, Message, drain};

use super::parse::duration;
use super::{HOST_AND_PEER, Host, HostFigures, Outcome, Setting};

/// The engine under test.
pub struct EngineHost {
    /// Its own address and its peer's.
    addresses: [Address; 2],
    config: TcpConfig,
    seed: u64,
    endpoint: Option<TcpEndpoint>,
    now: Time,
    /// What was sent, by when it departs.
    sent: BTreeMap<(Time, u64), (Vec<u8>, Ecn)>,
    count: u64,
    outcome: Outcome,
}

impl EngineHost {
    /// An engine with these settings.
    ///
    /// # Errors
    /// If a value is not one of the setting.
    pub fn new(settings: &[Setting]) -> Result<EngineHost, String> {
        // As a socket has it.
        let mut config = TcpConfig { nagle: Nagle::Minshall, ..TcpConfig::default() };
        for setting in settings {
            set(&mut config, setting).map_err(|problem| format!("`set {}`: {problem}", setting.key))?;
        }
        config.check().map_err(|error| error.to_string())?;
        Ok(EngineHost::with(config, HOST_AND_PEER, 7))
    }

    /// An engine with this configuration, its own address and its peer's, which draws from `seed`.
    pub fn with(config: TcpConfig, addresses: [Address; 2], seed: u64) -> EngineHost {
        EngineHost {
            addresses,
            config,
            seed,
            endpoint: None,
            now: Time::ZERO,
            sent: BTreeMap::new(),
            count: 0,
            outcome: Outcome::Pending,
        }
    }

    /// One of the engine's counters.
    pub fn counter(&self, name: &str) -> u64 {
        let mut value = 0;
        if let Some(endpoint) = &self.endpoint {
            endpoint.counters(&mut |counter, count| value = if counter == name { count } else { value });
        }
        value
    }

    fn endpoint(&mut self, at: Time) -> &mut TcpEndpoint {
        self.now = self.now.max(at);
        self.endpoint.as_mut().expect("a script opens its connection first")
    }

    fn settle(&mut self) {
        let Some(endpoint) = &mut self.endpoint else { return };
        let (now, sent, count) = (self.now, &mut self.sent, &mut self.count);
        let mut buffer = Vec::new();
        drain(endpoint, now, &mut buffer, |transmit, bytes| {
            *count += 1;
            sent.insert((now.max(transmit.earliest), *count), (bytes.clone(), transmit.ecn));
        });
        while let Some(event) = endpoint.poll_event() {
            self.outcome = match event {
                Event::Connected => Outcome::Connected,
                Event::Closed(CloseReason::Peer) => Outcome::Ended,
                Event::Closed(CloseReason::Reset) => Outcome::Reset,
                Event::Closed(CloseReason::TimedOut(_)) => Outcome::TimedOut,
                _ => continue,
            };
        }
    }
}

fn set(config: &mut TcpConfig, setting: &Setting) -> Result<(), String> {
    let value = setting.value.as_str();
    let is_on = || match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{value}` is not `on` or `off`")),
    };
    let number = || value.parse::<u32>().map_err(|_| format!("`{value}` is no number"));
    match setting.key.as_str() {
        "nodelay" => config.nagle = if is_on()? { Nagle::Off } else { Nagle::Minshall },
        "congestion" => config.congestion_control = value.parse().map_err(|error| format!("{error}"))?,
        "ecn" => {
            config.ecn = match value {
                "off" => EcnConfig::Off,
                "accept" => EcnConfig::Accept,
                "on" => EcnConfig::On,
                "accurate" => EcnConfig::Accurate,
                _ => return Err(format!("`{value}` is not `off`, `accept`, `on` or `accurate`")),
            };
        }
        "sack" => {
            config.sack = is_on()?;
            if !config.sack {
                (config.recovery, config.tail_loss_probe) = (Recovery::Dupack, false);
            }
        }
        "timestamps" => config.timestamps = is_on()?,
        "window-scaling" => config.window_scaling = is_on()?,
        "receive-buffer" => config.receive_buffer = BufferConfig::fixed(number()? as usize),
        "keepalive" => {
            let words: Vec<&str> = value.split_whitespace().collect();
            let [time, interval, probes] = words[..] else {
                return Err("expected an idle time, an interval and a number of probes".to_owned());
            };
            let probes = probes.parse().map_err(|_| format!("`{probes}` is no number"))?;
            config.keepalive =
                Some(KeepaliveConfig { time: duration(time)?, interval: duration(interval)?, probes });
        }
        "user-timeout" => config.user_timeout = Some(duration(value)?),
        "retries" => config.retries = number()?,
        "syn-retries" => config.syn_retries = number()?,
        "pacing" => config.pacing = if is_on()? { Pacing::Always } else { Pacing::Auto },
        "tail-loss-probe" => config.tail_loss_probe = is_on()?,
        "frto" => config.frto = is_on()?,
        "slow-start-after-idle" => config.slow_start_after_idle = is_on()?,
        "recovery" => {
            config.recovery = match value {
                "rack" => Recovery::Rack,
                "dupack" => Recovery::Dupack,
                "timeout" => Recovery::Timeout,
                _ => return Err(format!("`{value}` is not `rack`, `dupack` or `timeout`")),
            };
        }
        "hystart" => {
            config.hystart = match value {
                "off" => Hystart::Off,
                "linux" => Hystart::Linux,
                "plusplus" => Hystart::PlusPlus,
                _ => return Err(format!("`{value}` is not `off`, `linux` or `plusplus`")),
            };
        }
        "initial-window" => config.initial_window = number()?,
        other => return Err(format!("the engine has no `{other}`")),
    }
    Ok(())
}

impl Host for EngineHost {
    fn next_sent(&mut self, until: Time) -> Option<(Time, Vec<u8>, Ecn)> {
        loop {
            let departs = self.sent.first_key_value().map(|(&(at, _), _)| at).filter(|at| *at <= until);
            let timeout = self.endpoint.as_ref().and_then(|endpoint| endpoint.next_timeout());
            match (departs, timeout.filter(|at| *at <= until)) {
                (Some(departs), timeout) if timeout.is_none_or(|timeout| departs <= timeout) => {
                    let ((at, _), (bytes, ecn)) = self.sent.pop_first()?;
                    self.now = self.now.max(at);
                    return Some((at, bytes, ecn));
                }
                (_, Some(timeout)) => {
                    self.endpoint(timeout).handle_timeout(timeout);
                    self.settle();
                }
                _ => {
                    self.now = self.now.max(until);
                    return None;
                }
            }
        }
    }

    fn deliver(&mut self, at: Time, segment: &[u8], ecn: Ecn) {
        if self.endpoint.is_some() {
            let now = self.now.max(at);
            let peer = self.addresses[1];
            self.endpoint(at).handle_packet(now, peer, ecn, segment);
            self.settle();
        }
    }

    fn open(&mut self, at: Time, passive: bool) {
        let [host, peer] = self.addresses;
        let made = match passive {
            true => TcpEndpoint::listen(host, self.config.clone(), self.seed),
            false => TcpEndpoint::connect(host, peer, self.config.clone(), self.seed),
        };
        self.endpoint = Some(made.expect("the configuration was checked"));
        self.now = self.now.max(at);
        self.settle();
    }

    fn write(&mut self, at: Time, bytes: &[u8], more: bool) -> usize {
        let message = if more { Message::piece(bytes) } else { Message::new(bytes) };
        let now = self.now.max(at);
        let result = self.endpoint(at).send(now, message);
        self.settle();
        if result.is_ok() { bytes.len() } else { 0 }
    }

    fn read(&mut self, at: Time) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.endpoint(at).receive(&mut bytes).is_some() {}
        self.settle();
        bytes
    }

    fn close(&mut self, at: Time, abort: bool) {
        let now = self.now.max(at);
        self.endpoint(at).close(now, if abort { Close::Abort } else { Close::Graceful });
        self.settle();
    }

    fn outcome(&mut self, _at: Time) -> Outcome {
        self.outcome
    }

    fn figures(&mut self, segment: u64) -> HostFigures {
        let figures = self.endpoint.as_ref().map(|endpoint| endpoint.figures()).unwrap_or_default();
        HostFigures {
            window: figures.congestion_window / segment,
            threshold: figures.slow_start_threshold.map(|bytes| bytes / segment),
            in_flight: figures.bytes_in_flight / segment,
        }
    }

    fn slack(&self) -> Duration {
        Duration::ZERO
    }
}
