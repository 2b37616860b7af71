//! Where the server is, and how it is reached.

use std::time::Duration;

use postgres::config::SslMode;
use postgres::{Client, Config, Error, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::tls::{self, Trust};
use crate::StoreError;
use crate::catalogue::shown;

/// How long a server that is gone is waited for, unless the address says `connect_timeout`.
const PATIENCE: Duration = Duration::from_secs(30);

/// The address of a database, `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`.
#[derive(Clone)]
pub(super) struct Address {
    config: Config,
    tls: Option<MakeRustlsConnect>,
    /// Without a password.
    shown: String,
}

impl Address {
    /// Reads an address. Of libpq's words for encryption, `sslmode` and `sslrootcert`, the library knows not all.
    pub(super) fn parse(url: &str) -> Result<Address, StoreError> {
        let shown = shown(url);
        let wrong = |why: String| StoreError::Address { address: shown.clone(), why };
        let (place, parameters) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut roots, mut others) = ("prefer", None, Vec::new());
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", value)) => mode = value,
                Some(("sslrootcert", value)) => roots = Some(value.replace("%2F", "/")),
                _ => others.push(parameter),
            }
        }
        let rest = if others.is_empty() { place.to_owned() } else { format!("{place}?{}", others.join("&")) };
        let mut config = rest.parse::<Config>().map_err(|error| {
            wrong(std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string))
        })?;
        let (ssl_mode, trust) = match (mode, roots) {
            ("disable", _) => (SslMode::Disable, None),
            ("prefer", _) => (SslMode::Prefer, Some(Trust::Anyone)),
            ("require", None) => (SslMode::Require, Some(Trust::Anyone)),
            ("require" | "verify-full", Some(file)) => (SslMode::Require, Some(Trust::File(file.into()))),
            ("verify-full", None) => (SslMode::Require, Some(Trust::System)),
            (other, _) => {
                let expected = "expected `disable`, `prefer`, `require` or `verify-full`";
                return Err(wrong(format!("`sslmode={other}` is not known; {expected}")));
            }
        };
        config.ssl_mode(ssl_mode);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE);
        }
        // A host that is gone without a word is noticed.
        config.keepalives_idle(Duration::from_secs(20));
        config.tcp_user_timeout(PATIENCE);
        let tls = trust.map(|trust| tls::connector(&trust)).transpose().map_err(&wrong)?;
        Ok(Address { config, tls, shown })
    }

    pub(super) fn connect(&self) -> Result<Client, Error> {
        match &self.tls {
            Some(tls) => self.config.connect(tls.clone()),
            None => self.config.connect(NoTls),
        }
    }

    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// For how long a server that is gone is waited for.
    pub(super) fn patience(&self) -> Duration {
        self.config.get_connect_timeout().copied().unwrap_or(PATIENCE)
    }

    pub(super) fn failed(&self, error: Error) -> StoreError {
        StoreError::Database { place: self.shown.clone(), source: said(&error).into() }
    }

    /// The server did not come back in time.
    pub(super) fn stayed_away(&self, error: Error, waited: Duration) -> StoreError {
        let source = format!(
            "it has been unreachable for {} s ({}); restart it, then continue with `trunkline run --resume`",
            waited.as_secs(),
            said(&error)
        );
        StoreError::Database { place: self.shown.clone(), source: source.into() }
    }
}

/// What the server says is behind the library's `db error`.
fn said(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => said.message().to_owned(),
        None => match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encryption_is_as_libpq_has_it() {
        let mode = |parameters: &str| {
            let address = Address::parse(&format!("postgresql://host/runs{parameters}"));
            address.map(|address| (address.config.get_ssl_mode(), address.tls.is_some()))
        };
        assert_eq!(mode("").ok(), Some((SslMode::Prefer, true)));
        assert_eq!(mode("?sslmode=disable").ok(), Some((SslMode::Disable, false)));
        assert_eq!(mode("?connect_timeout=3&sslmode=require").ok(), Some((SslMode::Require, true)));
        assert_eq!(mode("?sslmode=verify-full").ok(), Some((SslMode::Require, true)));
        let said = |parameters: &str| mode(parameters).unwrap_err().to_string();
        assert!(said("?sslmode=verify-ca").contains("expected `disable`"), "{}", said("?sslmode=verify-ca"));
        assert!(said("?sslmode=require&sslrootcert=/nowhere").contains("/nowhere"));
        assert!(said("?colour=red").contains("colour"), "{}", said("?colour=red"));
    }

    /// As docs/store.md has it; the tests of `database_killed` show what happens then.
    #[test]
    fn a_server_that_is_away_is_waited_for_thirty_seconds_unless_the_address_says() {
        let patience = |parameters: &str| {
            Address::parse(&format!("postgresql://host/runs{parameters}"))
                .ok()
                .map(|address| address.patience())
        };
        assert_eq!(patience(""), Some(Duration::from_secs(30)));
        assert_eq!(patience("?connect_timeout=7"), Some(Duration::from_secs(7)));
    }

    #[test]
    fn a_password_may_hold_any_character_but_a_question_mark() {
        let address = Address::parse("postgresql://eve:a%3Fb%26c@host/runs?connect_timeout=2").ok();
        let address = address.as_ref();
        assert_eq!(address.and_then(|a| a.config.get_password()), Some(b"a?b&c".as_slice()));
        assert_eq!(address.map(Address::patience), Some(Duration::from_secs(2)));
    }
}
