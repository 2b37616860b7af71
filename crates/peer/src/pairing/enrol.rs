//! The connecting side of pairing.

use jiff::Timestamp;
use trunkline_core::Duration;

use super::code::PairingCode;
use super::proof::{self, Side};
use crate::connection::{Pulse, connect_with};
use crate::error::PeerError;
use crate::identity::Identity;
use crate::message::{Enrolment, Purpose, Reply};
use crate::peers::{Peer, Peers, check_name};
use crate::service::Service;
use crate::tls::Expected;

/// Makes this host, which calls itself `name`, known to the service at an address, and keeps that one among `peers`.
///
/// Nothing is sent to a host whose key does not begin as the code says. Afterwards both have proved to know the code on
/// this connection. If another service has its name here already, a number follows the name.
///
/// # Errors
/// If the other end cannot be reached, is another one, or refuses; if it cannot be written down.
pub fn enrol(
    service: &'static Service,
    address: &str,
    code: &PairingCode,
    (identity, name): (&Identity, &str),
    peers: &Peers,
    patience: Duration,
) -> Result<Peer, PeerError> {
    check_name(name)?;
    let expected = Expected::Beginning(code.agent().to_vec());
    let mut connection = connect_with(service, address, identity, expected, (patience, Pulse::default()))?;
    let welcome = connection.introduce(Purpose::Pair, patience)?;
    let who = connection.who().to_owned();
    let peer = Peer {
        name: welcome.name,
        fingerprint: connection.peer_fingerprint(),
        address: Some(address.to_owned()),
        enrolled: Timestamp::now(),
    };
    // Before the other end is told: what cannot be kept here is not enrolled there.
    let peer = peers.with_free_name(&peer)?;
    let material = proof::material(&connection)?;
    let key = code.key();
    let proof = proof::make(&key, Side::Connecting, &material, name);
    connection.send(&Enrolment::Pair { proof, name: name.to_owned() })?;
    match connection.expect(patience, "pairing")? {
        Reply::Paired { proof } if proof::is_right(&key, Side::Listening, &material, name, &proof) => {
            peers.add(&peer)?;
            Ok(peer)
        }
        Reply::Paired { .. } => {
            Err(PeerError::Protocol { who, reason: "it does not know the code itself".to_owned() })
        }
        Reply::Refused { refusal } => Err(PeerError::Refused { who, refusal }),
    }
}
