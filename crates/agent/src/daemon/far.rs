//! The far end of a part: offered to a controller, joined once by the near end that was named, and by nobody else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration as StdDuration, Instant};

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use trunkline_control::message::Offer;
use trunkline_control::{Connection, Fingerprint, Held, Refusal, RefusalKind, Share};
use trunkline_live::far_end::serve_far;
use trunkline_live::part::FarLimits;

use super::Daemon;
use super::connected::Controller;
use super::parts::{End as Side, Place, named};
use crate::memory;
use crate::permission::{self, Demand, Greedy};

/// How long a token is good for.
const VALID: StdDuration = StdDuration::from_secs(30);

/// How much longer than it may last a part may take, with its set-up and the wait for its start.
const AROUND: StdDuration = StdDuration::from_secs(15 * 60);

/// Offers that nobody has joined yet, by the hashes of their tokens: how long a search takes tells nothing of them.
#[derive(Debug, Default)]
pub(crate) struct Offers(Mutex<BTreeMap<[u8; 32], Offered>>);

#[derive(Debug)]
struct Offered {
    place: Place,
    near: Fingerprint,
    conversations: u32,
    /// Memory for the buffers of its engines.
    buffers: Held,
    until: Instant,
}

impl Offers {
    /// Forgets what nobody has joined in time.
    pub(crate) fn expire(&self, now: Instant) {
        self.lock().retain(|_, offered| offered.until > now && !offered.place.part().is_stopped());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<[u8; 32], Offered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the offer that this token opens, for whoever holds this key.
    fn take(&self, token: &str, near: &Fingerprint, now: Instant) -> Result<Offered, &'static str> {
        let hash = hashed(token);
        let mut offers = self.lock();
        match offers.get(&hash) {
            None => Err("invalid token: it was used, has expired, or was never issued"),
            // The one that it was given out for can still come.
            Some(offered) if offered.near != *near => Err("this token was issued for another agent"),
            Some(offered) if offered.until <= now => Err("this token has expired; prepare the part again"),
            Some(_) => offers.remove(&hash).ok_or("invalid token"),
        }
    }
}

fn hashed(token: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    hash
}

/// Admits a part whose far end this host will be, and gives the token that opens it.
pub(super) fn offer(
    daemon: &Arc<Daemon>,
    controller: &Controller,
    share: &Share,
    offer: Offer,
) -> Result<String, Refusal> {
    let mut secret = [0; 32];
    SystemRandom::new().fill(&mut secret).map_err(|_| {
        Refusal::new(RefusalKind::Environment, "the system provides no random numbers for a token")
    })?;
    let token: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let demand = Demand {
        conversations: offer.conversations,
        rate: offer.rate.unwrap_or_default(),
        greedy: offer.rate.is_none().then(Greedy::default),
        duration: offer.duration,
        to: None,
    };
    let buffers = memory::take_buffers(share, &daemon.config.name, offer.buffers)?;
    let who = (controller.fingerprint, controller.name.as_str());
    let place = daemon.parts.admit(&daemon.config, (offer.part, Side::Far), who, &demand)?;
    let offered = Offered {
        place,
        near: offer.near_fingerprint,
        conversations: u32::try_from(offer.conversations).unwrap_or(u32::MAX),
        buffers,
        until: Instant::now() + VALID,
    };
    daemon.offers.lock().insert(hashed(&token), offered);
    Ok(token)
}

/// Serves the far end of a part over this connection, if it is the one that was offered to whoever has opened it.
/// `known` is told when it is; what it gives is kept until the end.
pub(super) fn join<K>(
    daemon: &Daemon,
    connection: Connection,
    token: &str,
    known: impl FnOnce(&Connection) -> K,
) -> Result<(), Refusal> {
    // The address that the near end is answered at is the one that it has shown to have, by the handshakes of TCP and TLS.
    let (peer, local) =
        (connection.peer_address().ip().to_canonical(), connection.local_address().ip().to_canonical());
    let refuse = |connection: Connection, refusal: Refusal| {
        let _ = connection.refuse(refusal.clone());
        Err(refusal)
    };
    let offered = match daemon.offers.take(token, &connection.peer_fingerprint(), Instant::now()) {
        Ok(offered) => offered,
        Err(why) => return refuse(connection, Refusal::new(RefusalKind::Token, why)),
    };
    let _entered = known(&connection);
    let part = Arc::clone(offered.place.part());
    if let Err(refusal) = permission::may_reach(&daemon.config, &part.controller_name, peer) {
        return refuse(connection, refusal);
    }
    let failed = |error: trunkline_control::PeerError| Refusal::new(RefusalKind::FarEnd, error.to_string());
    connection.welcome(&daemon.config.name).map_err(failed)?;
    part.lives_on(connection.closer());
    part.prepared();
    daemon.notices.log(&format!(
        "part {}: far end for {peer}, on behalf of {}",
        named(&part.id),
        part.controller_name
    ));
    let (mut from, to) = connection.split();
    from.trust();
    let allowed = FarLimits {
        peer,
        address: local,
        members: offered.conversations,
        buffers: offered.buffers.bytes(),
        rate: part.grant.most,
        ceilings: part.ceilings.clone(),
    };
    let served = serve_far(from, to, allowed);
    served.map_err(|error| Refusal::new(RefusalKind::FarEnd, format!("the far end for {peer}: {error}")))
}

/// Ends far ends that have outlasted their part: their near end has forgotten them.
pub(super) fn cut_overdue(daemon: &Daemon) {
    for part in daemon.parts.list() {
        let limit = part.duration.to_std() + AROUND;
        if part.end == Side::Far && part.since.elapsed() > limit {
            part.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use trunkline_core::Bytes;

    use super::*;

    #[test]
    fn a_token_is_for_one_key_once_and_in_time() {
        let key = |digit: &str| format!("{}0", digit.repeat(51)).parse::<Fingerprint>().unwrap();
        let (near, thief) = (key("1"), key("2"));
        let offers = Offers::default();
        let none = || trunkline_control::Memory::new(Bytes(2)).share(near).take(Bytes::ZERO).unwrap();
        let now = Instant::now();
        let parts = Arc::new(crate::daemon::parts::Parts::default());
        let add = |token: &str, point: u32| {
            let id =
                trunkline_control::PartId { run: "0".repeat(32), point, repetition: 0, pair: 0, attempt: 0 };
            let config = crate::Config::with_name("ottawa");
            let place = parts.admit(&config, (id, Side::Far), (thief, "studio"), &Demand::default()).unwrap();
            let offered = Offered { place, near, conversations: 1, buffers: none(), until: now + VALID };
            offers.lock().insert(hashed(token), offered);
        };
        add("secret", 0);
        assert!(offers.take("guess", &near, now).unwrap_err().contains("invalid token"));
        assert!(offers.take("secret", &thief, now).unwrap_err().contains("another agent"));
        assert!(offers.take("secret", &near, now + VALID).unwrap_err().contains("expired"));
        assert!(offers.take("secret", &near, now).is_ok(), "wrong tries do no harm");
        assert!(offers.take("secret", &near, now).unwrap_err().contains("invalid token"), "once");

        add("late", 1);
        assert_eq!(parts.list().len(), 1);
        offers.expire(now + VALID);
        assert_eq!(parts.list().len(), 0, "what it held is free again");
    }
}
