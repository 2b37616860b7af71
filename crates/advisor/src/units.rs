//! Figures as people read them.

use trunkline_core::{Duration, Rate, Ratio};

/// `9.3 ms`, `268 ms`.
pub(crate) fn ms(duration: Duration) -> String {
    let ms = duration.as_millis_f64();
    if ms < 99.95 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") }
}

/// `0.05 %`, `1.2 %`, `34 %`.
pub(crate) fn percent(share: Ratio) -> String {
    let percent = share.value() * 100.0;
    match percent {
        0.0 => "0 %".to_owned(),
        ..1.0 => format!("{percent:.2} %"),
        1.0..10.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// `86.8 kbit/s`, `1.88 Mbit/s`.
pub(crate) fn rate(rate: Rate) -> String {
    let bits = rate.bits_per_second() as f64;
    if bits < 1e6 { format!("{:.1} kbit/s", bits / 1e3) } else { format!("{:.2} Mbit/s", bits / 1e6) }
}
