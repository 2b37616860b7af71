//! What the study concludes: which protocols are faster, and which lose what they carry.

use crate::results::{Results, Row, TableResults};

/// By cable: the protocols that do more take longer.
pub(super) const WIRED: &str = "UDP < DCCP, TCP < SCTP 1, SCTP 2";
/// By Wi-Fi: those that repeat what is lost take longer than those that do not.
pub(super) const WIRELESS: &str = "DCCP < UDP < SCTP 1, SCTP 2, TCP";

/// A protocol that loses less of its packets, in percent, loses none to speak of.
const LOSSY: f64 = 0.1;

pub(super) fn localhost(results: &Results) -> Option<String> {
    let table = results.table("table02")?;
    let [a, b] = ["A", "B"].map(|computer| order(table, &[("computer", computer)], WIRED));
    let (a, b) = (a?, b?);
    Some(if a == b { a } else { format!("A: {a}; B: {b}") })
}

pub(super) fn crossover(results: &Results) -> Option<String> {
    order(results.table("table03")?, &[], WIRED)
}

pub(super) fn switch(results: &Results) -> Option<String> {
    order(results.table("table04")?, &[], WIRED)
}

pub(super) fn adhoc(results: &Results) -> Option<String> {
    order(results.table("table05")?, &[], WIRELESS)
}

pub(super) fn access_point(results: &Results) -> Option<String> {
    order(results.table("table06")?, &[], WIRELESS)
}

pub(super) fn here(results: &Results) -> Option<String> {
    order(results.table("here")?, &[], WIRED)
}

pub(super) fn lossy(results: &Results) -> Option<String> {
    let lost = means(results.table("table05")?, &[], "loss_pct")?;
    let lossy = lost.iter().filter(|(_, lost)| *lost > LOSSY);
    Some(lossy.map(|(protocol, _)| protocol.as_str()).collect::<Vec<_>>().join(", "))
}

/// The protocols in the order of their round trips, the mean over one and two channels. Where they come in the order of the
/// groups that are expected, the same groups; otherwise one after the other.
fn order(table: &TableResults, only: &[(&str, &str)], expected: &str) -> Option<String> {
    let mut latencies = means(table, only, "latency_ms")?;
    latencies.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let mut sorted = latencies.iter().map(|(protocol, _)| protocol.as_str());
    let as_expected = expected.split(" < ").all(|group| {
        let mut found: Vec<&str> = sorted.by_ref().take(group.split(", ").count()).collect();
        found.sort_unstable();
        found.join(", ") == group
    });
    let one_by_one =
        || latencies.iter().map(|(protocol, _)| protocol.as_str()).collect::<Vec<_>>().join(" < ");
    Some(if as_expected { expected.to_owned() } else { one_by_one() })
}

/// The mean of a column for every protocol, in the order of the table; `None` if a figure is missing.
fn means(table: &TableResults, only: &[(&str, &str)], column: &str) -> Option<Vec<(String, f64)>> {
    let place = table.place(column)?;
    let mut means: Vec<(String, Vec<f64>)> = Vec::new();
    let rows: Vec<&Row> = table.rows.iter().filter(|row| row.keys.are(only)).collect();
    for row in rows {
        let (protocol, figure) = (row.keys.get("protocol")?.to_string(), row.cells.get(place)?.simulated?);
        match means.iter_mut().find(|(known, _)| *known == protocol) {
            Some((_, figures)) => figures.push(figure),
            None => means.push((protocol, vec![figure])),
        }
    }
    let mean = |(protocol, figures): (String, Vec<f64>)| {
        let count = figures.len() as f64;
        (protocol, figures.into_iter().sum::<f64>() / count)
    };
    Some(means.into_iter().map(mean).collect())
}
