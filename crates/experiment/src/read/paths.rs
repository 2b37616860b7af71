//! Finds the links that a flow crosses.

use crate::model::{Link, Path, PathStep};

/// How many ways of the same length are told apart at most.
const MOST: usize = 4;

/// The most links that a packet can count on its way.
pub(super) const MOST_HOPS: usize = u8::MAX as usize;

/// Which links leave each host, and where they lead.
pub(super) struct Map {
    from: Vec<Vec<(PathStep, usize)>>,
}

impl Map {
    pub(super) fn new(links: &[Link], hosts: usize) -> Map {
        let mut from = vec![Vec::new(); hosts];
        for (index, link) in links.iter().enumerate() {
            for ((from_port, a), (to_port, b)) in
                stations(link).flat_map(|a| stations(link).map(move |b| (a, b)))
            {
                if from_port != to_port {
                    from[a].push((PathStep { link: index, from_port, to_port }, b));
                }
            }
        }
        Map { from }
    }

    /// The steps over `link` that leave `host`, and where they lead.
    pub(super) fn steps(&self, link: usize, host: usize) -> impl Iterator<Item = (PathStep, usize)> {
        self.from[host].iter().filter(move |(step, _)| step.link == link).copied()
    }

    /// The shortest ways from one host to another by number of links, at most [`MOST_HOPS`]: none, one, or the first
    /// few of several.
    pub(super) fn shortest(&self, from: usize, to: usize) -> Vec<Path> {
        let distances = self.distances_to(to);
        let mut found = Vec::new();
        if distances[from].is_some_and(|distance| distance <= MOST_HOPS) {
            self.walk(&distances, from, to, &mut Vec::new(), &mut found);
        }
        found
    }

    /// Whether any path leads from one host to another.
    pub(super) fn joins(&self, from: usize, to: usize) -> bool {
        self.distances_to(to)[from].is_some()
    }

    fn distances_to(&self, to: usize) -> Vec<Option<usize>> {
        let mut distances = vec![None; self.from.len()];
        distances[to] = Some(0);
        let mut reached = vec![to];
        let mut distance = 0;
        while !reached.is_empty() {
            distance += 1;
            let mut next = Vec::new();
            for (_, other) in reached.iter().flat_map(|host| &self.from[*host]) {
                if distances[*other].is_none() {
                    distances[*other] = Some(distance);
                    next.push(*other);
                }
            }
            reached = next;
        }
        distances
    }

    /// Goes downhill on every way until enough are found.
    fn walk(&self, distances: &[Option<usize>], at: usize, to: usize, way: &mut Path, found: &mut Vec<Path>) {
        if found.len() >= MOST {
            return;
        }
        if at == to {
            found.push(way.clone());
            return;
        }
        for (step, other) in &self.from[at] {
            // Neighbours of a reached host are reached, so both distances are there.
            if distances[*other] < distances[at] {
                way.push(*step);
                self.walk(distances, *other, to, way, found);
                way.pop();
            }
        }
    }
}

/// The ports of a link with their hosts.
fn stations(link: &Link) -> impl Iterator<Item = (u16, usize)> {
    (0..).zip(link.between.iter().copied())
}

/// The same path in the other direction.
pub(super) fn reversed(path: &[PathStep]) -> Path {
    let back =
        |step: &PathStep| PathStep { link: step.link, from_port: step.to_port, to_port: step.from_port };
    path.iter().rev().map(back).collect()
}
