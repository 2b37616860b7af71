//! What an agent's owner hands to a controller once.

use core::fmt;
use core::str::FromStr;

use ring::hmac;
use ring::rand::SystemRandom;

use crate::base32;
use crate::error::{CODE_LENGTH, ParseCodeError, PeerError};
use crate::fingerprint::Fingerprint;

/// What an agent's owner hands to a controller once: the beginning of the agent's fingerprint (100 bits), by which the
/// controller knows the agent, a secret (60 bits), by which the agent knows the controller, and a check digit. Written as
/// 33 characters of base32 in groups; the first five groups are those of the fingerprint.
#[derive(Clone, PartialEq, Eq)]
pub struct PairingCode {
    /// Symbols of five bits.
    agent: [u8; AGENT],
    secret: [u8; SECRET],
}

/// Symbols of the agent's fingerprint.
const AGENT: usize = 20;
/// Symbols of the secret.
const SECRET: usize = CODE_LENGTH - AGENT - 1;
const LENGTH: usize = CODE_LENGTH;

impl PairingCode {
    /// A new code of the agent with this key.
    pub(super) fn make(agent: &Fingerprint) -> Result<PairingCode, PeerError> {
        let entropy = ring::rand::generate::<[u8; 8]>(&SystemRandom::new())
            .map_err(|_| PeerError::Cryptography("the system provides no entropy".to_owned()))?
            .expose();
        let (mut code, drawn) = ([0; AGENT], base32::symbols(&entropy));
        code.copy_from_slice(&agent.first(AGENT));
        let mut secret = [0; SECRET];
        secret.copy_from_slice(&drawn[..SECRET]);
        Ok(PairingCode { agent: code, secret })
    }

    /// The beginning of the agent's fingerprint, in symbols of base32.
    pub(super) fn agent(&self) -> &[u8] {
        &self.agent
    }

    /// What both ends prove to know.
    pub(super) fn key(&self) -> [u8; 32] {
        let mut key = [0; 32];
        let hash = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"trunkline pairing 1"), &self.secret);
        key.copy_from_slice(hash.as_ref());
        key
    }

    fn symbols(&self) -> Vec<u8> {
        let mut symbols = [self.agent.as_slice(), &self.secret].concat();
        symbols.push(check(&symbols));
        symbols
    }
}

/// A weighted sum over GF(32): any one wrong symbol, and any two neighbours in the wrong order, are found.
fn check(symbols: &[u8]) -> u8 {
    symbols.iter().fold(0, |sum, symbol| double(sum ^ symbol))
}

/// Times x in GF(2)[x] / (x^5 + x^2 + 1), whose powers are all elements but zero.
fn double(element: u8) -> u8 {
    let shifted = element << 1;
    if shifted & 32 == 0 { shifted } else { shifted ^ 0b10_0101 }
}

impl fmt::Display for PairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&base32::write(&self.symbols()))
    }
}

impl fmt::Debug for PairingCode {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PairingCode({}-...)", base32::write(&self.agent))
    }
}

impl FromStr for PairingCode {
    type Err = ParseCodeError;

    fn from_str(text: &str) -> Result<PairingCode, ParseCodeError> {
        let symbols = base32::read(text).map_err(ParseCodeError::Character)?;
        let wrong_length = ParseCodeError::Length(symbols.len());
        if symbols.len() != LENGTH {
            return Err(wrong_length);
        }
        let (said, digit) = symbols.split_at(LENGTH - 1);
        if digit != [check(said)] {
            return Err(ParseCodeError::Check);
        }
        let (agent, secret) = said.split_at(AGENT);
        match (agent.try_into(), secret.try_into()) {
            (Ok(agent), Ok(secret)) => Ok(PairingCode { agent, secret }),
            _ => Err(wrong_length),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_code() -> impl Strategy<Value = PairingCode> {
        let (agent, secret) = (prop::array::uniform20(0u8..32), prop::array::uniform12(0u8..32));
        (agent, secret).prop_map(|(agent, secret)| PairingCode { agent, secret })
    }

    fn parse(symbols: &[u8]) -> Result<PairingCode, ParseCodeError> {
        base32::write(symbols).parse()
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read(code in any_code()) {
            let shown = code.to_string();
            prop_assert_eq!(shown.parse::<PairingCode>(), Ok(code.clone()));
            let sloppy = shown.to_lowercase().replace('-', "").replace('0', "o").replace('1', "l");
            prop_assert_eq!(sloppy.parse::<PairingCode>(), Ok(code));
        }

        #[test]
        fn one_wrong_character_is_found(code in any_code(), at in 0..LENGTH, by in 1u8..32) {
            let mut symbols = code.symbols();
            symbols[at] ^= by;
            prop_assert_eq!(parse(&symbols), Err(ParseCodeError::Check));
        }

        #[test]
        fn neighbours_in_the_wrong_order_are_found(code in any_code(), at in 0..LENGTH - 1) {
            let mut symbols = code.symbols();
            prop_assume!(symbols[at] != symbols[at + 1]);
            symbols.swap(at, at + 1);
            prop_assert_eq!(parse(&symbols), Err(ParseCodeError::Check));
        }

        #[test]
        fn a_character_too_few_or_too_many_is_found(code in any_code(), at in 0..LENGTH) {
            let mut symbols = code.symbols();
            symbols.remove(at);
            prop_assert_eq!(parse(&symbols), Err(ParseCodeError::Length(LENGTH - 1)));
            symbols.insert(at, 0);
            symbols.insert(at, 0);
            prop_assert_eq!(parse(&symbols), Err(ParseCodeError::Length(LENGTH + 1)));
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            if let Ok(code) = text.parse::<PairingCode>() {
                prop_assert_eq!(code.to_string().parse(), Ok(code));
            }
        }
    }

    #[test]
    fn codes_differ_and_name_their_agent() {
        let agent = crate::Identity::generate().unwrap().fingerprint();
        let (one, two) = (PairingCode::make(&agent).unwrap(), PairingCode::make(&agent).unwrap());
        assert_ne!(one.secret, two.secret);
        assert_eq!(one.to_string()[..24], agent.to_string()[..24]);
    }

    #[test]
    fn nobody_prints_a_secret() {
        let code = PairingCode { agent: [1; AGENT], secret: [2; SECRET] };
        assert_eq!(format!("{code:?}"), "PairingCode(1111-1111-1111-1111-1111-...)");
    }
}
