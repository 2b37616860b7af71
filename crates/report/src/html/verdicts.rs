//! What the limits of the file say.

use maud::{Markup, html};

use crate::units::Readable as _;
use crate::verdict::{Outcome, Verdict, headline};
use crate::view::{View, point_name};

/// One sentence per side, then one line per limit and side.
pub(super) fn section(view: &View) -> Markup {
    let several = view.sides.len() > 1;
    html! {
        section aria-labelledby="verdict" {
            h2 id="verdict" { "Verdict" }
            @for side in &view.sides {
                @let headline = headline(view, side);
                p class={ "headline " (headline.outcome.map_or("", class)) } {
                    @if let Some(outcome) = headline.outcome { span.sign aria-hidden="true" { (outcome.sign()) } " " }
                    @if several { strong { (side.label) ": " } }
                    (headline.text)
                }
            }
            @if !view.limits().is_empty() { (table(view)) }
        }
    }
}

fn table(view: &View) -> Markup {
    let several = view.sides.len() > 1;
    html! {
        div.scroll tabindex="0" role="region" aria-label="Limits of the file" {
            table.data data-name="limits" {
                caption { span { "The limits of the file. A point passes if the mean over its repetitions meets the limit." } }
                thead {
                    tr {
                        th scope="col" { "limit" }
                        @if several { th scope="col" { "on" } }
                        th scope="col" { a href="#def-verdict" { "verdict" } }
                        th scope="col" { @if view.is_swept() { "worst value" } @else { "measured" } }
                        @if view.is_swept() {
                            th scope="col" { "worst at" }
                            th scope="col" { "holds at" }
                            th scope="col" { "broken at" }
                        }
                    }
                }
                tbody {
                    @for limit in view.limits() {
                        @for side in &view.sides { (row(view, &Verdict::of(limit, view, side), several.then_some(&side.label))) }
                    }
                }
            }
        }
    }
}

fn row(view: &View, verdict: &Verdict, side: Option<&String>) -> Markup {
    let outcome = verdict.outcome();
    let worst = verdict.worst();
    let uncertain = verdict.points.iter().filter(|p| p.uncertain).count();
    let missing = verdict.count(Outcome::NotMeasured);
    html! {
        tr {
            th scope="row" {
                (verdict.whose) " " a href={ "#def-" (verdict.figure.definition.id) } { (verdict.figure.name) }
                " " span.condition { (verdict.limit.condition) }
            }
            @if let Some(side) = side { td { (side) } }
            td class=(class(outcome)) {
                (outcome.sign()) " " (verdict.word())
                @if uncertain > 0 { br; small { "not certain at " (uncertain) " " (if uncertain == 1 { "point" } else { "points" }) } }
                @if missing > 0 && missing < verdict.points.len() { br; small { (missing) " not measured" } }
            }
            td.number data-v=[worst.and_then(|w| w.estimate).map(|e| e.mean)] {
                @match worst.and_then(|w| w.estimate) {
                    Some(estimate) => { (verdict.figure.quantity.show_estimate(&estimate)) (worst.map_or("", |worst| worst.mark())) }
                    None => "–",
                }
            }
            @if view.is_swept() {
                td {
                    @match worst.and_then(|w| view.points().iter().find(|p| p.index == w.point)) {
                        Some(point) => { (point_name(point, view.axes())) }
                        None => "–",
                    }
                }
                td { (places(view, verdict, Outcome::Holds)) }
                td { (places(view, verdict, Outcome::Broken)) }
            }
        }
    }
}

/// The points in a few words; their list behind it where words do not name them all.
fn places(view: &View, verdict: &Verdict, outcome: Outcome) -> Markup {
    let words = verdict.where_(outcome, view);
    let count = verdict.count(outcome);
    if !words.contains(" of ") {
        return html! { (words) };
    }
    let of = |index: u32| view.points().iter().find(|p| p.index == index);
    html! {
        details {
            summary { (words) }
            ul.places {
                @for p in verdict.points.iter().filter(|p| p.outcome == outcome).take(200) {
                    li { @if let Some(point) = of(p.point) { (point_name(point, view.axes())) } }
                }
                @if count > 200 { li { "and " (count - 200) " more" } }
            }
        }
    }
}

pub(super) fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "holds",
        Outcome::Broken => "broken",
        Outcome::NotMeasured | Outcome::NotApplicable => "open",
    }
}
