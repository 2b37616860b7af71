//! Routes: along the paths of the file's flows, else the fewest links.

use std::collections::VecDeque;

use trunkline_experiment::{Path, Scenario};

use super::{Plan, PlanError, Route, Target};

/// Gives every host its routes.
pub(super) fn fill(plan: &mut Plan, scenario: &Scenario) -> Result<(), PlanError> {
    for link in 0..plan.links.len() {
        let hops = plan.hops_to(link);
        for host in 0..plan.hosts.len() {
            if let Some(route) = plan.towards(host, link, &hops) {
                plan.hosts[host].routes.push(route);
            }
        }
    }
    for flow in &scenario.singles().flows {
        for sink in &flow.to {
            plan.follow(&flow.meta.name, &sink.forward, last_station(&sink.forward))?;
            // What comes back is for the address that the source sends from: its end of the first link.
            plan.follow(&flow.meta.name, &sink.backward, first_station(&sink.forward))?;
        }
    }
    plan.forget_the_obvious();
    Ok(())
}

fn last_station(path: &Path) -> Option<(usize, u16)> {
    path.last().map(|step| (step.link, step.to_port))
}

fn first_station(path: &Path) -> Option<(usize, u16)> {
    path.first().map(|step| (step.link, step.from_port))
}

impl Plan {
    /// How many links lie before `link` for a packet from `host`; `None` if no links lead there.
    pub(super) fn hops(&self, host: usize, link: usize) -> Option<usize> {
        self.hops_to(link)[host]
    }

    /// The same for every host.
    fn hops_to(&self, link: usize) -> Vec<Option<usize>> {
        let mut hops = vec![None; self.hosts.len()];
        let mut crossed = vec![false; self.links.len()];
        let mut reached = VecDeque::from([(link, 0)]);
        crossed[link] = true;
        while let Some((link, distance)) = reached.pop_front() {
            for station in &self.links[link].stations {
                if hops[station.host].is_some() {
                    continue;
                }
                hops[station.host] = Some(distance);
                for (next, _) in &self.hosts[station.host].attachments {
                    if !core::mem::replace(&mut crossed[*next], true) {
                        reached.push_back((*next, distance + 1));
                    }
                }
            }
        }
        hops
    }

    /// The route of a host to a link that it does not stand on: over the first of its neighbours that are nearer.
    fn towards(&self, host: usize, link: usize, hops: &[Option<usize>]) -> Option<Route> {
        let nearer = hops[host]?.checked_sub(1)?;
        let neighbours = self.hosts[host].attachments.iter().flat_map(|out| {
            let stations = (0u16..).zip(&self.links[out.0].stations);
            stations.map(move |(next, station)| (*out, next, station.host))
        });
        let (out, next, _) = neighbours.into_iter().find(|(_, _, other)| hops[*other] == Some(nearer))?;
        Some(Route { to: Target::Link(link), out, next })
    }

    /// Lets every host on a path send what is for `to` along it.
    fn follow(&mut self, flow: &str, path: &Path, to: Option<(usize, u16)>) -> Result<(), PlanError> {
        let Some(to) = to else { return Ok(()) };
        for step in path {
            let out = (step.link, step.from_port);
            let host = self.station(out).host;
            let route = Route { to: Target::Station(to.0, to.1), out, next: step.to_port };
            let routes = &mut self.hosts[host].routes;
            match routes.iter().find(|known| known.to == route.to) {
                None => routes.push(route),
                Some(known) if *known == route => {}
                Some(_) => {
                    let name = |station| self.hosts[self.station(station).host].name.clone();
                    return Err(PlanError::Crossing {
                        flow: flow.to_owned(),
                        at: name(out),
                        to: name(to),
                        towards: name((step.link, step.to_port)),
                    });
                }
            }
        }
        Ok(())
    }

    /// Drops the routes to single stations that say what holds without them.
    fn forget_the_obvious(&mut self) {
        for host in &mut self.hosts {
            let whole: Vec<Route> =
                host.routes.iter().filter(|route| matches!(route.to, Target::Link(_))).copied().collect();
            host.routes.retain(|route| {
                let Target::Station(link, port) = route.to else { return true };
                let direct = route.out.0 == link && route.next == port;
                let same = |other: &Route| {
                    other.to == Target::Link(link) && (other.out, other.next) == (route.out, route.next)
                };
                !direct && !whole.iter().any(same)
            });
        }
    }
}
