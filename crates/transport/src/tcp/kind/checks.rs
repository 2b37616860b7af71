//! Conflicts between TCP's keys.

use trunkline_core::Duration;
use trunkline_core::schema::{Value, Values};

use super::super::{TcpConfig, TcpConfigError};
use crate::kind::Conflict;

/// Pairs of TCP's keys of which a file gives one at most, with a sentence.
const EXCLUDED: &[(&str, &str, &str)] = &[
    (
        "nagle",
        "nodelay",
        "`nagle` collects small messages, which `nodelay = true` forbids; leave one of them out",
    ),
    (
        "cork",
        "nodelay",
        "`cork` collects small messages, which `nodelay = true` forbids; leave one of them out",
    ),
    ("nagle", "cork", "`nagle` and `cork` are two ways to collect small messages; leave one of them out"),
    (
        "autotuning",
        "window",
        "`window` fixes the buffers, which `autotuning` lets grow; leave one of them out",
    ),
    ("max-window", "window", "`window` fixes the buffers, which grow to `max-window`; leave one of them out"),
    ("fast-retransmit", "recovery", "`recovery` and `fast-retransmit` set the same thing; omit one of them"),
];

fn timeouts(min: Duration, max: Duration) -> Option<Conflict> {
    let message = || format!("an `rto-min` of {min} is longer than the `rto-max` of {max}");
    (min > max).then(|| Conflict::new("rto-min", message()))
}

/// Conflicts between TCP's keys, with the key that is one too many.
pub(super) fn conflict(config: &TcpConfig, values: &Values) -> Option<Conflict> {
    // A flag that is off asks for nothing that another key could exclude.
    let asks = |key: &str| match values.value(key) {
        Value::Absent => false,
        Value::Flag(is_on) => *is_on || key == "fast-retransmit",
        _ => true,
    };
    let excluded = EXCLUDED.iter().find(|(one, other, _)| asks(one) && asks(other));
    if let Some((one, _, message)) = excluded {
        return Some(Conflict::new(one, *message));
    }
    let of_keepalive = ["keep-alive-interval", "keep-alive-probes"].into_iter().find(|key| asks(key));
    if let Some(key) = of_keepalive.filter(|_| !asks("keep-alive")) {
        let message = format!("without `keep-alive` nothing is probed; give it, or leave `{key}` out");
        return Some(Conflict::new(key, message));
    }
    if let Some(problem) = timeouts(config.timeout.min, config.timeout.max) {
        return Some(problem);
    }
    match config.check() {
        Ok(()) => None,
        Err(TcpConfigError::Contradiction { keys, text }) => {
            let key = keys.into_iter().find(|key| *values.value(key) != Value::Absent)?;
            Some(Conflict::new(key, text))
        }
        Err(error) => Some(Conflict::new("profile", error.to_string())),
    }
}
