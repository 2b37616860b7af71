//! Where hosts stand that the file gives no place: near what they are linked to.
//!
//! The places are those of least stress (Kamada and Kawai 1989; majorised as by Gansner, Koren and North 2004): as far
//! apart in the drawing as they are in the network, counted in links. They come from what is linked and the order of the
//! file alone, so that moving one host does not move the others.

use crate::drawing::{DrawingFlow, DrawingHost, DrawingLink};

/// How far apart the ends of a link stand, in pixels.
const LINK: f64 = 320.0;
/// How far apart hosts stand at least.
const ROOM: f64 = 120.0;
/// How often places are bettered; most drawings stand still much earlier.
const ROUNDS: usize = 200;
/// Of more hosts than that nobody draws the network: they stand in rows.
const MOST: usize = 300;
/// The margin on the left and above.
const MARGIN: f64 = 60.0;

type Place = (f64, f64);

/// Finds a place for every host without one.
pub(crate) fn find(hosts: &mut [DrawingHost], links: &[DrawingLink], flows: &[DrawingFlow]) {
    if hosts.iter().all(|host| host.placed) {
        return;
    }
    let places = if hosts.len() > MOST { rows(hosts.len()) } else { drawn(hosts, links, flows) };
    let mut taken: Vec<Place> =
        hosts.iter().filter(|host| host.placed).map(|host| (host.x, host.y)).collect();
    for (host, place) in hosts.iter_mut().zip(places).filter(|(host, _)| !host.placed) {
        (host.x, host.y) = free(place, &taken);
        taken.push((host.x, host.y));
    }
}

/// The place, or the first one below it that nobody stands on.
fn free((x, mut y): Place, taken: &[Place]) -> Place {
    let near = |y: f64| taken.iter().any(|(a, b)| (a - x).abs() < ROOM / 2.0 && (b - y).abs() < ROOM / 2.0);
    for _ in 0..=taken.len() {
        if !near(y) {
            break;
        }
        y += ROOM;
    }
    (x, y)
}

/// Rows of a square.
fn rows(hosts: usize) -> Vec<Place> {
    let wide = (1..).find(|wide| wide * wide >= hosts).unwrap_or(1);
    let place = |host: usize| (MARGIN + (host % wide) as f64 * LINK, MARGIN + (host / wide) as f64 * ROOM);
    (0..hosts).map(place).collect()
}

fn drawn(hosts: &[DrawingHost], links: &[DrawingLink], flows: &[DrawingFlow]) -> Vec<Place> {
    let graph = Graph::new(hosts, links, flows);
    let distances = graph.distances();
    let mut places = vec![(0.0, 0.0); graph.nodes];
    let mut below = MARGIN;
    let (alone, joined): (Vec<_>, Vec<_>) =
        graph.parts(&distances).into_iter().partition(|part| part.len() == 1);
    for part in joined {
        let mut found = layered(&part, &distances);
        relax(&part, &distances, &mut found);
        let left = found.iter().map(|place| place.0).fold(f64::INFINITY, f64::min);
        let top = found.iter().map(|place| place.1).fold(f64::INFINITY, f64::min);
        let bottom = found.iter().map(|place| place.1).fold(f64::NEG_INFINITY, f64::max);
        for (node, (x, y)) in part.iter().zip(&found) {
            places[*node] = ((x - left + MARGIN).round(), (y - top + below).round());
        }
        below += bottom - top + ROOM;
    }
    for (node, (x, y)) in alone.iter().flatten().zip(rows(alone.len())) {
        places[*node] = (x, y - MARGIN + below);
    }
    places.truncate(hosts.len());
    places
}

/// Hosts, and behind them a hub for every medium of more than two; who is joined to whom, and how far apart they are drawn.
struct Graph {
    nodes: usize,
    joined: Vec<Vec<(usize, f64)>>,
}

impl Graph {
    fn new(hosts: &[DrawingHost], links: &[DrawingLink], flows: &[DrawingFlow]) -> Graph {
        let find = |name: &String| hosts.iter().position(|host| host.name == *name);
        let mut graph = Graph { nodes: hosts.len(), joined: vec![Vec::new(); hosts.len()] };
        for link in links {
            let mut ends: Vec<usize> = link.between.iter().filter_map(find).collect();
            ends.sort_unstable();
            ends.dedup();
            match ends.as_slice() {
                [a, b] => graph.join(*a, *b, LINK),
                [] | [_] => {}
                stations => {
                    let hub = graph.nodes;
                    graph.nodes += 1;
                    graph.joined.push(Vec::new());
                    // A ring of stations with room for each.
                    let radius =
                        (ROOM * 1.2 * stations.len() as f64 / core::f64::consts::TAU).max(LINK * 0.7);
                    stations.iter().for_each(|station| graph.join(*station, hub, radius));
                }
            }
        }
        // Without a link those who talk stand near each other; in `live` a file may have no links at all.
        for flow in flows {
            let Some(from) = find(&flow.from) else { continue };
            for to in flow.to.iter().filter_map(find) {
                if from != to && (graph.joined[from].is_empty() || graph.joined[to].is_empty()) {
                    graph.join(from, to, LINK);
                }
            }
        }
        graph
    }

    fn join(&mut self, a: usize, b: usize, length: f64) {
        self.joined[a].push((b, length));
        self.joined[b].push((a, length));
    }

    /// From each node to each; infinite where no way leads.
    fn distances(&self) -> Vec<Vec<f64>> {
        (0..self.nodes).map(|from| self.distances_from(from)).collect()
    }

    /// Dijkstra without a heap: the graph is small.
    fn distances_from(&self, from: usize) -> Vec<f64> {
        let mut distances = vec![f64::INFINITY; self.nodes];
        let mut done = vec![false; self.nodes];
        distances[from] = 0.0;
        loop {
            let open = (0..self.nodes).filter(|node| !done[*node] && distances[*node].is_finite());
            let Some(next) = open.min_by(|a, b| distances[*a].total_cmp(&distances[*b])) else { break };
            done[next] = true;
            for (other, length) in &self.joined[next] {
                distances[*other] = distances[*other].min(distances[next] + length);
            }
        }
        distances
    }

    /// The nodes that are joined, by the first of each part.
    fn parts(&self, distances: &[Vec<f64>]) -> Vec<Vec<usize>> {
        let part = |node: usize| (0..self.nodes).filter(move |other| distances[node][*other].is_finite());
        let firsts = (0..self.nodes).filter(|node| part(*node).next() == Some(*node));
        firsts.map(|first| part(first).collect()).collect()
    }
}

/// To begin with: from left to right by distance from one end, from top to bottom in the order of the file.
fn layered(part: &[usize], distances: &[Vec<f64>]) -> Vec<Place> {
    let farthest = |node: usize| part.iter().map(|other| distances[node][*other]).fold(0.0, f64::max);
    let longest = part.iter().map(|node| farthest(*node)).fold(0.0, f64::max);
    let end = part.iter().copied().find(|node| farthest(*node) >= longest).unwrap_or_default();
    let mut rows: Vec<(f64, usize)> = Vec::new();
    let place = |node: &usize| {
        let x = distances[end][*node];
        let place = match rows.iter_mut().find(|(of, _)| *of == x) {
            Some((_, row)) => {
                *row += 1;
                *row
            }
            None => {
                rows.push((x, 0));
                0
            }
        };
        // Alternately below and above the middle. A line of three must be able to bend, so nobody stands on it exactly.
        let side = if place % 2 == 1 { 1.0 } else { -1.0 };
        (x, side * (place.div_ceil(2)) as f64 * ROOM + if place == 0 { 0.0 } else { 0.25 * place as f64 })
    };
    part.iter().map(place).collect()
}

/// Moves each to where its distances to all others want it, weighed by the square of the distance, again and again.
fn relax(part: &[usize], distances: &[Vec<f64>], places: &mut [Place]) {
    for _ in 0..ROUNDS {
        let mut moved: f64 = 0.0;
        for i in 0..part.len() {
            let (mut x, mut y, mut weights) = (0.0, 0.0, 0.0);
            for j in (0..part.len()).filter(|j| *j != i) {
                let wanted = distances[part[i]][part[j]];
                let (dx, dy) = (places[i].0 - places[j].0, places[i].1 - places[j].1);
                let is = (dx * dx + dy * dy).sqrt().max(1.0);
                let weight = 1.0 / (wanted * wanted);
                x += weight * (places[j].0 + wanted * dx / is);
                y += weight * (places[j].1 + wanted * dy / is);
                weights += weight;
            }
            if weights > 0.0 {
                let new = (x / weights, y / weights);
                moved = moved.max((new.0 - places[i].0).abs()).max((new.1 - places[i].1).abs());
                places[i] = new;
            }
        }
        if moved < 0.5 {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::{Drawing, drawing};

    fn drawn_of(links: &[&[&str]]) -> Drawing {
        let mut names: Vec<&str> = links.concat();
        names.sort_unstable();
        names.dedup();
        let hosts: String = names.iter().map(|name| format!("{name} = {{}}\n")).collect();
        let links = links.iter().enumerate().map(|(i, ends)| format!("[link.l{i}]\nbetween = {ends:?}\n"));
        drawing(&format!("[hosts]\n{hosts}{}", links.collect::<String>())).unwrap()
    }

    fn distance(drawing: &Drawing, a: usize, b: usize) -> f64 {
        let (a, b) = (&drawing.hosts[a], &drawing.hosts[b]);
        ((a.x - b.x).powi(2) + (a.y - b.y).powi(2)).sqrt()
    }

    fn all_apart(drawing: &Drawing) {
        for a in 0..drawing.hosts.len() {
            for b in 0..a {
                assert!(distance(drawing, a, b) > 55.0, "{:#?}", drawing.hosts);
            }
        }
    }

    #[test]
    fn two_hosts_stand_side_by_side_as_far_apart_as_a_link_is_long() {
        let drawing = drawn_of(&[&["a", "b"]]);
        assert_eq!((drawing.hosts[0].y, drawing.hosts[1].y), (MARGIN, MARGIN));
        assert_eq!(drawing.hosts[1].x - drawing.hosts[0].x, LINK);
    }

    #[test]
    fn a_row_of_links_is_a_line_and_a_star_is_around_its_middle() {
        let row = drawn_of(&[&["a", "b"], &["b", "c"], &["c", "d"]]);
        assert!(row.hosts.windows(2).all(|pair| pair[0].x < pair[1].x));
        assert!(row.hosts.iter().all(|host| (host.y - row.hosts[0].y).abs() < 10.0));

        let star = drawn_of(&[&["a", "b"], &["a", "c"], &["a", "d"], &["a", "e"]]);
        for leaf in 1..5 {
            let away = distance(&star, 0, leaf);
            assert!((LINK * 0.6..LINK * 1.4).contains(&away), "{away}");
        }
        all_apart(&star);
    }

    #[test]
    fn stations_of_a_medium_stand_around_it() {
        let stations = ["a", "b", "c", "d", "e", "f"];
        all_apart(&drawn_of(&[&stations]));
        let names: Vec<String> = (0..40).map(|i| format!("h{i:02}")).collect();
        all_apart(&drawn_of(&[&names.iter().map(String::as_str).collect::<Vec<_>>()]));
    }

    #[test]
    fn parts_that_are_not_joined_stand_apart_and_many_hosts_in_rows() {
        all_apart(&drawn_of(&[&["a", "b"], &["c", "d"], &["e", "f"]]));
        let hosts: String = (0..1000).map(|i| format!("h{i} = {{}}\n")).collect();
        let drawing = drawing(&format!("[hosts]\n{hosts}")).unwrap();
        assert!(drawing.hosts.iter().all(|host| host.x < 12_000.0 && host.y < 12_000.0));
    }

    #[test]
    fn a_host_that_is_moved_does_not_move_the_others() {
        let text = "[hosts]\na = {}\nb = {}\nc = {}\n[link.x]\nbetween = [\"a\", \"b\"]\n[link.y]\nbetween = [\"b\", \"c\"]\n";
        let before = drawing(text).unwrap();
        let after = drawing(&text.replace("b = {}", "b = { position = [900, 40.5] }")).unwrap();
        assert_eq!((after.hosts[1].x, after.hosts[1].y, after.hosts[1].placed), (900.0, 40.5, true));
        for host in [0, 2] {
            assert_eq!(before.hosts[host], after.hosts[host]);
        }
    }
}
