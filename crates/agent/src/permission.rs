//! Whether a controller may have this host do what it asks for: pure arithmetic over what the owner has written and what is
//! in use.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use trunkline_control::{Refusal, RefusalKind};
use trunkline_core::{Bytes, Duration, Rate, count};
use trunkline_io::networks::Network;

use crate::config::{Config, Permission};

/// What a part asks of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    /// How many conversations it holds.
    pub conversations: u64,
    /// What its paced flows send at most.
    pub rate: Rate,
    /// Those of its flows that send as fast as the network takes.
    pub greedy: Option<Greedy>,
    /// How long it takes at most.
    pub duration: Duration,
    /// The address at its other end, if that is known yet.
    pub to: Option<IpAddr>,
}

/// Flows that send as fast as the network takes: they get what the others leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Greedy {
    /// Their indices in the experiment; none for what is sent back.
    pub flows: Vec<usize>,
    /// What their conversations send at once, at most.
    pub burst: Bytes,
}

/// What a part holds while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// How many conversations.
    pub conversations: u64,
    /// What it may send in any case; `None` without a limit.
    pub rate: Option<Rate>,
    /// What it may send if nobody else does: its greedy flows share with those of other parts what is left.
    pub most: Option<Rate>,
}

/// What parts hold together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// How many parts there are.
    pub parts: u64,
    /// Their conversations.
    pub conversations: u64,
    /// What they may send. Those without a limit do not count.
    pub rate: Rate,
}

impl<'g> FromIterator<&'g Grant> for Held {
    fn from_iter<I: IntoIterator<Item = &'g Grant>>(grants: I) -> Held {
        grants.into_iter().fold(Held::default(), |held, grant| Held {
            parts: held.parts + 1,
            conversations: held.conversations.saturating_add(grant.conversations),
            rate: sum(held.rate, grant.rate.unwrap_or_default()),
        })
    }
}

/// Judges a demand of the controller with this name, which holds `own` of the `all` that is in use.
///
/// # Errors
/// Why not: who may not have how much, or send to whom.
pub fn judge(
    config: &Config,
    controller: &str,
    demand: &Demand,
    own: &Held,
    all: &Held,
) -> Result<Grant, Refusal> {
    let permission = config.permission(controller);
    let limits = &config.limits;
    let host = &config.name;
    let limit = |why: String| Err(Refusal::new(RefusalKind::Limit, why));
    let forbidden = |why: String| Err(Refusal::new(RefusalKind::Permission, why));

    if let Some(to) = demand.to {
        may_reach(config, controller, to)?;
    }
    if demand.duration > limits.duration {
        return limit(format!(
            "the part takes up to {}, but the owner of {host} allows parts of at most {}",
            demand.duration, limits.duration
        ));
    }
    let wanted = demand.conversations;
    if let Some(most) =
        permission.flows.filter(|&most| own.conversations.saturating_add(wanted) > most.into())
    {
        return forbidden(format!(
            "the part has {}, but the owner of {host} allows the controller {controller} {most}{}",
            count(wanted, "conversation"),
            in_use(own.conversations > 0, &format!("{} of them", own.conversations))
        ));
    }
    if all.conversations.saturating_add(wanted) > limits.flows.into() {
        return limit(format!(
            "the part has {}, but the owner of {host} allows {}{}",
            count(wanted, "conversation"),
            limits.flows,
            in_use(all.conversations > 0, &format!("{} of them", all.conversations))
        ));
    }

    let of_controller = left(permission.rate, own.rate);
    let of_host = left(limits.rate, all.rate);
    // Something is left over for those that take whatever they get.
    let least = if demand.greedy.is_some() { sum(demand.rate, LEAST_GREEDY) } else { demand.rate };
    if let (Some(allowed), Some(left)) = (permission.rate, of_controller)
        && least > left
    {
        let held = in_use(own.rate > Rate::ZERO, &own.rate.to_string());
        return forbidden(format!(
            "the part sends {}, but the owner of {host} allows the controller {controller} {allowed}{held}",
            sends(demand)
        ));
    }
    if let (Some(allowed), Some(left)) = (limits.rate, of_host)
        && least > left
    {
        let held = in_use(all.rate > Rate::ZERO, &all.rate.to_string());
        return limit(format!(
            "the part sends {}, but the owner of {host} allows {allowed}{held}",
            sends(demand)
        ));
    }
    let allowed = permission.rate.into_iter().chain(limits.rate).min();
    let most = allowed.map(|allowed| if demand.greedy.is_some() { allowed } else { demand.rate });
    Ok(Grant { conversations: wanted, rate: allowed.map(|_| least), most })
}

/// Judges whether this host may send to an address, or be the far end for it.
///
/// # Errors
/// Why not.
pub fn may_reach(config: &Config, controller: &str, to: IpAddr) -> Result<(), Refusal> {
    let host = &config.name;
    let Permission { to: networks, .. } = config.permission(controller);
    let forbidden = |why: String| Err(Refusal::new(RefusalKind::Permission, why));
    let is_one_host = match to.to_canonical() {
        IpAddr::V4(to) => !to.is_multicast() && !to.is_broadcast() && !to.is_unspecified(),
        IpAddr::V6(to) => !to.is_multicast() && !to.is_unspecified(),
    };
    if !is_one_host {
        return forbidden(format!("{to} is not the address of a single host; {host} sends only to those"));
    }
    if networks.iter().any(|network| network.contains(to)) {
        return Ok(());
    }
    let allowed: Vec<String> = networks.iter().map(ToString::to_string).collect();
    let allowed =
        if allowed.is_empty() { "nobody".to_owned() } else { format!("only {}", allowed.join(", ")) };
    forbidden(format!(
        "the owner of {host} does not allow the controller {controller} to send to {to}: {allowed}; to allow \
        it, the owner adds the address to `to` in [controller.{controller}] of the agent's configuration"
    ))
}

/// Judges whether this host may connect to an address that a controller names, which may be its own.
///
/// # Errors
/// Why not.
pub fn may_connect(config: &Config, controller: &str, to: IpAddr, is_own: bool) -> Result<(), Refusal> {
    may_reach(config, controller, to)?;
    if is_own && config.permission(controller).to == Network::PRIVATE {
        let host = &config.name;
        let why = format!(
            "{to} is an address of {host} itself, to which it does not connect by default; to allow it, the owner adds the \
             address to `to` in [controller.{controller}] of the agent's configuration"
        );
        return Err(Refusal::new(RefusalKind::Permission, why));
    }
    Ok(())
}

/// With less than this a greedy flow is not worth starting; so much of a limit is left to each part that has some.
const LEAST_GREEDY: Rate = Rate::from_bits_per_second(10_000);

fn left(limit: Option<Rate>, held: Rate) -> Option<Rate> {
    limit.map(|limit| {
        Rate::from_bits_per_second(limit.bits_per_second().saturating_sub(held.bits_per_second()))
    })
}

fn sum(a: Rate, b: Rate) -> Rate {
    Rate::from_bits_per_second(a.bits_per_second().saturating_add(b.bits_per_second()))
}

fn in_use(is_any: bool, held: &str) -> String {
    if is_any { format!(", {held} in use by other parts") } else { String::new() }
}

fn sends(demand: &Demand) -> String {
    match (demand.greedy.is_some(), demand.rate) {
        (false, rate) => rate.to_string(),
        (true, Rate::ZERO) => "as fast as the network allows".to_owned(),
        (true, rate) => format!("{rate}, and also as fast as the network allows"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn config() -> Config {
        let text = r#"
            [limits]
            rate = "100 Mbit/s"
            flows = 1000
            duration = "1 h"
            [controller.studio]
            rate = "20 Mbit/s"
            flows = 100
            to = ["10.0.0.0/8", "192.0.2.7"]
            [controller.blind]
            to = []
        "#;
        Config::parse("agent.toml", text, "ottawa").unwrap()
    }

    fn mbit(n: u64) -> Rate {
        Rate::from_bits_per_second(n * 1_000_000)
    }

    fn demand(conversations: u64, rate: Rate) -> Demand {
        Demand { conversations, rate, duration: Duration::from_secs(60), ..Demand::default() }
    }

    fn held(conversations: u64, rate: Rate) -> Held {
        Held { parts: 1, conversations, rate }
    }

    fn why(controller: &str, demand: &Demand, own: Held, all: Held) -> (RefusalKind, String) {
        let refusal = judge(&config(), controller, demand, &own, &all).unwrap_err();
        (refusal.kind, refusal.why)
    }

    #[test]
    fn what_is_within_the_limits_is_granted() {
        let none = Held::default();
        let grant = judge(&config(), "studio", &demand(100, mbit(20)), &none, &none).unwrap();
        assert_eq!(grant, Grant { conversations: 100, rate: Some(mbit(20)), most: Some(mbit(20)) });
        let greedy = Demand { greedy: Some(Greedy::default()), ..demand(1, mbit(1)) };
        let grant = judge(&config(), "studio", &greedy, &none, &held(0, mbit(90))).unwrap();
        assert_eq!(grant.rate, Some(sum(mbit(1), LEAST_GREEDY)), "others may have the rest");
        assert_eq!(grant.most, Some(mbit(20)));
        let free = Config::with_name("ottawa");
        assert_eq!(judge(&free, "studio", &greedy, &none, &none).unwrap().rate, None);
    }

    #[test]
    fn who_how_much_and_to_whom_is_in_the_refusal() {
        let none = Held::default();
        assert_eq!(
            why("studio", &demand(61, mbit(1)), held(40, mbit(1)), held(40, mbit(1))),
            (
                RefusalKind::Permission,
                "the part has 61 conversations, but the owner of ottawa allows the controller studio 100, 40 of them in \
                 use by other parts"
                    .into()
            )
        );
        assert_eq!(
            why("other", &demand(1001, mbit(1)), none, none),
            (
                RefusalKind::Limit,
                "the part has 1001 conversations, but the owner of ottawa allows 1000".into()
            )
        );
        assert_eq!(
            why("studio", &demand(1, mbit(15)), held(1, mbit(10)), held(1, mbit(10))).1,
            "the part sends 15 Mbit/s, but the owner of ottawa allows the controller studio 20 Mbit/s, 10 Mbit/s in use by \
             other parts"
        );
        let greedy = Demand { greedy: Some(Greedy::default()), ..demand(1, Rate::ZERO) };
        assert_eq!(
            why("other", &greedy, none, held(3, mbit(100))),
            (
                RefusalKind::Limit,
                "the part sends as fast as the network allows, but the owner of ottawa allows 100 Mbit/s, 100 Mbit/s in use \
                 by other parts"
                    .into()
            )
        );
        let long = Demand { duration: Duration::from_secs(7200), ..demand(1, mbit(1)) };
        assert_eq!(
            why("other", &long, none, none).1,
            "the part takes up to 2 h, but the owner of ottawa allows parts of at most 60 min"
        );
    }

    #[test]
    fn nothing_is_sent_where_the_owner_does_not_want_it() {
        let reach = |controller: &str, to: &str| may_reach(&config(), controller, to.parse().unwrap());
        assert_eq!(reach("studio", "10.1.2.3"), Ok(()));
        assert_eq!(reach("studio", "::ffff:192.0.2.7"), Ok(()));
        assert_eq!(reach("other", "192.168.7.1"), Ok(()));
        assert_eq!(reach("other", "fd12::1"), Ok(()));
        for not_by_default in
            ["198.51.100.1", "127.0.0.1", "169.254.1.1", "2001:db8::1", "::1", "fe80::1", "::ffff:127.0.0.1"]
        {
            let refusal = reach("other", not_by_default).unwrap_err();
            assert!(
                refusal.why.contains("only 10.0.0.0/8, 172.16.0.0/12, "),
                "{not_by_default}: {}",
                refusal.why
            );
        }
        assert_eq!(
            reach("studio", "192.0.2.8").unwrap_err().why,
            "the owner of ottawa does not allow the controller studio to send to 192.0.2.8: only 10.0.0.0/8, 192.0.2.7; to \
             allow it, the owner adds the address to `to` in [controller.studio] of the agent's configuration"
        );
        assert_eq!(
            reach("blind", "10.0.0.1").unwrap_err().why,
            "the owner of ottawa does not allow the controller blind to send to 10.0.0.1: nobody; to allow it, the owner \
             adds the address to `to` in [controller.blind] of the agent's configuration"
        );
        for many in ["224.0.0.1", "255.255.255.255", "0.0.0.0", "ff02::1", "::"] {
            let refusal = reach("other", many).unwrap_err();
            assert!(refusal.why.contains("is not the address of a single host"), "{many}: {}", refusal.why);
        }
    }

    proptest! {
        /// Whatever comes and goes, the grants that are held never exceed what the owner has written.
        #[test]
        fn grants_never_exceed_the_limits(
            asked in proptest::collection::vec((any::<bool>(), 0..200u64, 0..60u64, any::<bool>(), any::<bool>()), 0..40),
        ) {
            let config = config();
            let mut grants: Vec<(bool, Grant)> = Vec::new();
            for (is_studio, conversations, rate, is_greedy, leaves) in asked {
                if leaves && !grants.is_empty() {
                    grants.remove(0);
                }
                let name = if is_studio { "studio" } else { "other" };
                let own = grants.iter().filter(|(studio, _)| *studio == is_studio).map(|(_, grant)| grant).collect();
                let all = grants.iter().map(|(_, grant)| grant).collect();
                let demand = Demand { greedy: is_greedy.then(Greedy::default), ..demand(conversations, mbit(rate)) };
                if let Ok(grant) = judge(&config, name, &demand, &own, &all) {
                    prop_assert!(grant.rate >= Some(demand.rate));
                    grants.push((is_studio, grant));
                }
                let studio: Held = grants.iter().filter(|(studio, _)| *studio).map(|(_, grant)| grant).collect();
                let all: Held = grants.iter().map(|(_, grant)| grant).collect();
                prop_assert!(studio.conversations <= 100 && studio.rate <= mbit(20));
                prop_assert!(all.conversations <= 1000 && all.rate <= mbit(100));
            }
        }
    }
}
