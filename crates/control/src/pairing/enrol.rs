//! The controller's side of pairing.

use jiff::Timestamp;
use trunkline_core::Duration;

use super::code::PairingCode;
use super::proof::{self, Side};
use crate::connection::{Pulse, connect_with};
use crate::error::ControlError;
use crate::identity::Identity;
use crate::message::{FromAgent, Purpose, ToAgent};
use crate::peers::{Peer, Peers, check_name};
use crate::tls::Expected;

/// Makes this controller, which calls itself `name`, known to the agent at an address, and keeps the agent among `peers`.
///
/// Nothing is sent to an agent whose key does not begin as the code says. Afterwards both have proved to know the code on
/// this connection.
///
/// # Errors
/// If the agent cannot be reached, is another one, or refuses; if its name belongs to another agent here; if it cannot be
/// written down.
pub fn enrol(
    address: &str,
    code: &PairingCode,
    identity: &Identity,
    name: &str,
    peers: &Peers,
    patience: Duration,
) -> Result<Peer, ControlError> {
    check_name(name)?;
    let expected = Expected::Beginning(code.agent().to_vec());
    let mut connection = connect_with(address, identity, expected, patience, Pulse::default())?;
    let welcome = connection.introduce(Purpose::Pair, patience)?;
    let who = connection.who().to_owned();
    let peer = Peer {
        name: welcome.name,
        fingerprint: connection.peer_fingerprint(),
        address: Some(address.to_owned()),
        enrolled: Timestamp::now(),
    };
    // Before the agent is told: what cannot be kept here is not enrolled there.
    peers.could_add(&peer)?;
    let material = proof::material(&connection)?;
    let key = code.key();
    let proof = proof::make(&key, Side::Controller, &material, name);
    connection.send(&ToAgent::Pair { proof, name: name.to_owned() })?;
    match connection.expect(patience, "pairing")? {
        FromAgent::Paired { proof } if proof::is_right(&key, Side::Agent, &material, name, &proof) => {
            peers.add(&peer)?;
            Ok(peer)
        }
        FromAgent::Paired { .. } => {
            Err(ControlError::Protocol { who, reason: "it does not know the code itself".to_owned() })
        }
        FromAgent::Refused { refusal, .. } => Err(ControlError::Refused { who, refusal }),
        _ => Err(ControlError::Protocol { who, reason: "its reply does not match the request".to_owned() }),
    }
}
