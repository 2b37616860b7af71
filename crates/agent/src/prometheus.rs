//! An agent's own figures in the text format of Prometheus (version 0.0.4). Parts and controllers are counted, not named:
//! their names come and go, and each would be a time series for ever.

use std::fmt::{self, Display, Write as _};

use trunkline_control::facts::Busy;
use trunkline_core::Bytes;

use crate::counters::Counted;
use crate::daemon::parts::End as Side;
use crate::daemon::{Daemon, status};
use crate::settings::PROGRAM;

/// What an HTTP answer says about this text.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What there is to tell at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) name: String,
    pub(crate) started_seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) memory: Bytes,
    pub(crate) controllers: u64,
    pub(crate) agents: u64,
    pub(crate) near: u64,
    pub(crate) far: u64,
    pub(crate) busy: Busy,
    pub(crate) kept_parts: u64,
    pub(crate) spool: Bytes,
    pub(crate) spool_limit: Bytes,
    pub(crate) disk_free: Bytes,
    pub(crate) counted: Counted,
}

impl Snapshot {
    pub(crate) fn take(daemon: &Daemon) -> Snapshot {
        let sessions = daemon.sessions();
        let controllers = sessions.values().filter(|open| open.is_controller()).count() as u64;
        let agents = sessions.len() as u64 - controllers;
        drop(sessions);
        let parts = daemon.parts.list();
        let near = parts.iter().filter(|part| part.end == Side::Near).count() as u64;
        Snapshot {
            name: daemon.config.name.clone(),
            started_seconds: daemon.since().as_millisecond() as f64 / 1e3,
            cpu_seconds: trunkline_io::process::cpu_time().as_secs_f64(),
            memory: status::memory_of_process(),
            controllers,
            agents,
            near,
            far: parts.len() as u64 - near,
            busy: daemon.parts.busy(None),
            kept_parts: daemon.spool.list().len() as u64,
            spool: daemon.spool.bytes(),
            spool_limit: daemon.config.limits.disk,
            disk_free: daemon.spool.disk_free(),
            counted: daemon.counters.read(),
        }
    }
}

/// All of it.
pub(crate) fn text(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(&mut text, snapshot);
    text
}

fn write_all(out: &mut String, s: &Snapshot) -> fmt::Result {
    let version = PROGRAM;
    head(out, "info", "gauge", "Always 1 while the agent runs.")?;
    writeln!(out, "trunkline_agent_info{{name=\"{}\",version=\"{version}\"}} 1", s.name)?;
    for (name, kind, help, value) in [
        ("start_time_seconds", "gauge", "Start time of the agent, in seconds since 1970.", s.started_seconds),
        ("cpu_seconds_total", "counter", "CPU time of the agent.", s.cpu_seconds),
        ("memory_bytes", "gauge", "Memory of the agent.", s.memory.count() as f64),
        ("conversations", "gauge", "Conversations of running parts.", s.busy.conversations as f64),
        (
            "granted_bits_per_second",
            "gauge",
            "Rate granted to running parts.",
            s.busy.rate.bits_per_second() as f64,
        ),
        ("kept_parts", "gauge", "Parts stored for controllers, including running ones.", s.kept_parts as f64),
        (
            "spool_bytes",
            "gauge",
            "Disk space used by results stored for controllers.",
            s.spool.count() as f64,
        ),
        (
            "spool_limit_bytes",
            "gauge",
            "Limit of the disk space for stored results.",
            s.spool_limit.count() as f64,
        ),
        ("disk_free_bytes", "gauge", "Free disk space.", s.disk_free.count() as f64),
        ("observations_total", "counter", "Observations recorded.", s.counted.observations as f64),
        ("recorded_bytes_total", "counter", "Bytes of chunks recorded.", s.counted.recorded.count() as f64),
        ("streamed_chunks_total", "counter", "Chunks sent to controllers.", s.counted.streamed_chunks as f64),
        (
            "streamed_bytes_total",
            "counter",
            "Bytes of chunks sent to controllers.",
            s.counted.streamed.count() as f64,
        ),
        (
            "sent_bytes_total",
            "counter",
            "Bytes sent by near ends, including network and transport headers.",
            s.counted.sent.count() as f64,
        ),
        ("clock_lost_total", "counter", "Number of times the host was suspended.", s.counted.slept as f64),
        (
            "wall_clock_steps_total",
            "counter",
            "Number of times the wall clock was set.",
            s.counted.wall_steps as f64,
        ),
    ] {
        head(out, name, kind, help)?;
        writeln!(out, "trunkline_agent_{name} {value}")?;
    }
    let with = |out: &mut String, name: &str, label: &str, values: &[(&str, u64)]| {
        values.iter().try_for_each(|(what, value)| sample(out, name, label, what, value))
    };
    head(out, "sessions", "gauge", "Open connections, by kind of peer.")?;
    with(out, "sessions", "peer", &[("controller", s.controllers), ("agent", s.agents)])?;
    head(out, "parts", "gauge", "Running parts, by end (near or far).")?;
    with(out, "parts", "end", &[("near", s.near), ("far", s.far)])?;
    head(out, "connections_total", "counter", "Connections, by outcome.")?;
    with(out, "connections_total", "became", &s.counted.connections)?;
    head(out, "parts_total", "counter", "Near ends of parts, by outcome.")?;
    with(out, "parts_total", "became", &s.counted.parts)
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP trunkline_agent_{name} {help}\n# TYPE trunkline_agent_{name} {kind}")
}

fn sample(out: &mut String, name: &str, label: &str, what: &str, value: impl Display) -> fmt::Result {
    writeln!(out, "trunkline_agent_{name}{{{label}=\"{what}\"}} {value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_belongs_to_a_metric_that_is_explained() {
        let counters = crate::counters::Counters::default();
        counters.connection(crate::counters::Connection::Joined);
        let snapshot =
            Snapshot { name: "ottawa".into(), counted: counters.read(), near: 2, ..Snapshot::default() };
        let text = text(&snapshot);
        assert!(text.contains("trunkline_agent_connections_total{became=\"joined\"} 1\n"), "{text}");
        assert!(text.contains("trunkline_agent_parts{end=\"near\"} 2\n"), "{text}");
        assert!(text.contains("trunkline_agent_info{name=\"ottawa\",version="), "{text}");
        let mut explained = Vec::new();
        for line in text.lines() {
            if let Some(metric) = line.strip_prefix("# HELP ") {
                explained.push(metric.split(' ').next().unwrap());
            } else if !line.starts_with('#') {
                let name = line.split(['{', ' ']).next().unwrap();
                assert_eq!(explained.last(), Some(&name), "{line}");
                assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
            }
        }
        assert_eq!(explained.len(), 21);
    }
}
