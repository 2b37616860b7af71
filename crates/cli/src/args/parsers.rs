//! Parsers of options, whose errors say what is expected.

use core::fmt::Display;
use core::ops::{Bound, RangeBounds};
use core::str::FromStr;
use std::net::SocketAddr;

/// A whole number in a range.
pub(super) fn number<T: FromStr + PartialOrd + Display>(
    range: impl RangeBounds<T> + Clone,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
            match (range.start_bound(), range.end_bound()) {
                (Bound::Included(least), Bound::Included(most)) => {
                    format!("expected a whole number from {least} to {most}")
                }
                (Bound::Included(least), _) => format!("expected a whole number of at least {least}"),
                _ => "expected a whole number".to_owned(),
            }
        })
    }
}

/// An address on which to listen, with or without a port; this is the usual one.
pub(super) fn address(port: u16) -> impl Fn(&str) -> Result<SocketAddr, String> + Clone {
    move |text| {
        let alone = || text.parse().ok().map(|ip| SocketAddr::new(ip, port));
        text.parse().ok().or_else(alone).ok_or_else(|| {
            format!(
                "expected an address of this host, with or without a port: `192.0.2.1`, `0.0.0.0:{port}`, `[::]:{port}`"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_says_what_is_expected() {
        assert_eq!(number::<u16>(1..=1024)("1024"), Ok(1024));
        for text in ["0", "1025", "many", "-1", ""] {
            let refused = number::<u16>(1..=1024)(text).unwrap_err();
            assert_eq!(refused, "expected a whole number from 1 to 1024", "{text}");
        }
        assert_eq!(number::<u64>(1..)("0").unwrap_err(), "expected a whole number of at least 1");
        for (text, is) in [("127.0.0.1", "127.0.0.1:80"), ("::1", "[::1]:80"), ("[::1]:0", "[::1]:0")] {
            assert_eq!(address(80)(text).map(|address| address.to_string()).as_deref(), Ok(is));
        }
        assert!(address(80)("foo").unwrap_err().starts_with("expected an address of this host"));
    }
}
