//! Sentences that a reader of the figures needs: in the report, in JSON and on the page.

use trunkline_metrics::Measured;
use trunkline_store::Backend;

use crate::figures::is_dashed;
use crate::view::{Side, View};

/// The notes, with `code` in backticks and [links](#id) to parts of the report.
pub(crate) fn of(view: &View) -> Vec<String> {
    let mut notes = Vec::new();
    for side in view.sides.iter().filter(|side| side.is_measured()) {
        let how = match side.info().backend {
            Backend::Wire => {
                "wire: The links that the file describes, in real time, between hosts that are namespaces of one machine. Times at \
                 both ends are read from its one clock, so one-way latencies are measured, not estimated. Hosts have the speed of \
                 this machine, whatever their costs in the file."
            }
            _ => {
                "live: The network was used as it is. The links described in the file were not applied; they apply to `sim` and \
                 `wire`."
            }
        };
        let stalls = match side.stalls().is_empty() {
            true => "the stalls of this machine, which this run did not record",
            false => "this machine's own [stalls](#stalls)",
        };
        notes.push(format!("{how} Read the tails beside {stalls}."));
    }
    if let Some(bound) = view.sides.iter().filter_map(Side::clock_error).max() {
        notes.push(format!(
            "Between hosts, arrival times were converted from the clock of the sink to that of the source: one-way times are within \
             ± {bound} of the truth, and each flow's within its own [clock error bound](#def-clock-error). Round trips need none."
        ));
    }
    if view.sides.iter().any(|side| !side.is_measured()) {
        notes.push(
            "sim: Virtual time over the links that the file describes. The same seed gives the same result. Hosts take the \
             processing time that the file gives, by default none."
                .to_owned(),
        );
    }
    for (_, dashed) in view.sides.iter().enumerate().filter(|(side, _)| is_dashed(view, *side)) {
        let label = &dashed.label;
        notes.push(format!(
            "Both runs come from the same experiment file. In figures {label} is dashed and hollow."
        ));
    }
    for side in view.sides.iter().filter(|side| side.is_unfinished()) {
        notes.push(format!(
            "{}: This run is partial. Points without a finished repetition show the interrupted one, marked “cut short”, or nothing. \
             `trunkline run --resume {}` finishes it.",
            side.label,
            side.info().id
        ));
    }
    for (side, part) in view.sides.iter().filter_map(|side| Some((side, side.part()?))) {
        notes.push(format!(
            "{}: {part} of a run, made by `trunkline run --shard`. The report has the points of this part only. `trunkline runs \
             merge` joins the parts.",
            side.label
        ));
    }
    if let Some(reason) = view.refused_counterpart {
        notes.push(format!("The other run is not included: {reason}."));
    }
    if view.run().info.repetitions > 1 {
        notes.push(
            "Figures are [mean ± half width](#def-estimate) of the 95 % confidence interval over repetitions.".to_owned(),
        );
    }
    let is_any_reflected = view.flows.iter().any(|flow| view.measured(flow) == Measured::RoundTrip);
    let unless = if is_any_reflected { " unless marked “round trip”" } else { "" };
    notes.push(format!("Latency is one way{unless}. Every name links to its [definition](#definitions)."));
    notes
}

/// The notes without links.
pub(crate) fn plain(view: &View) -> Vec<String> {
    let words = |note: &String| {
        links(note)
            .into_iter()
            .map(|(words, link)| words.to_owned() + link.map_or("", |(name, _)| name))
            .collect()
    };
    of(view).iter().map(words).collect()
}

/// Words of a text, each with the link behind it: its name and the id that it leads to.
pub(crate) fn links(text: &str) -> Vec<(&str, Option<(&str, &str)>)> {
    let mut parts = text.split("](#");
    let mut found = Vec::new();
    let mut before = parts.next().unwrap_or_default();
    for part in parts {
        let (words, name) = before.rsplit_once('[').unwrap_or(("", before));
        let (id, rest) = part.split_once(')').unwrap_or((part, ""));
        found.push((words, Some((name, id))));
        before = rest;
    }
    found.push((before, None));
    found
}

#[cfg(test)]
mod tests {
    use trunkline_store::Backend;

    use crate::{fixtures, html, report};

    #[test]
    fn the_notes_of_the_report_are_in_the_data_of_the_page() {
        let run = fixtures::swept(Backend::Wire);
        let notes = report(&run, None).notes;
        assert!(notes.iter().any(|note| note.contains("95 % confidence interval")), "{notes:?}");
        assert!(notes.iter().any(|note| note.starts_with("wire: ") && !note.contains("](#")), "{notes:?}");
        let page = html(&run, None);
        assert!(page.contains("Figures are <a href=\"#def-estimate\">mean ± half width</a> of the 95 %"));
        let words: String = page.split('<').filter_map(|part| Some(part.split_once('>')?.1)).collect();
        assert!(notes.iter().all(|note| words.contains(&note.replace('`', ""))), "{notes:?}");
    }

    #[test]
    fn a_flow_says_what_carries_it_and_a_limit_where_it_holds() {
        let report = report(&fixtures::swept(Backend::Sim), None);
        let carried = |point: usize| report.points[point].runs[0].flows.iter().map(|flow| &flow.carried_by);
        assert!(carried(0).any(|carried| carried == "none here"), "{:?}", carried(0).collect::<Vec<_>>());
        assert!(carried(1).all(|carried| carried.starts_with("udp") || carried.starts_with("tcp")));
        let places = &report.limits[0].runs[0];
        assert!(!places.holds_at.is_empty() && !places.broken_at.is_empty(), "{places:?}");
    }
}
