//! What was found, as one HTML page that needs nothing else.

use maud::{Markup, html as markup};
use trunkline_report::figure_section;

use crate::figures::figures;
use crate::plan::Plan;
use crate::run::{Answer, Found};
use crate::search::Verdict;
use crate::text;

/// The answer, its figures and every value that was measured. `report` is where the run's own report lies, from the page.
pub fn html(plan: &Plan, found: &Found, report: Option<&str>) -> String {
    let header = markup! {
        p.product { "Trunkline plan" }
        h1 { (found.run.name) ": " (text::question(plan)) }
        ul.runs { li {
            "run " (found.run.id) " · " (found.run.repetitions_done) " repetitions of " (found.run.repetition_length)
            @if found.stopped { " · " span.tag.open { "partial" } }
            @if let Some(report) = report { " · " a href=(report) { "report of the run" } }
        } }
    };
    let figures = figures(plan, found);
    let main = markup! {
        section aria-labelledby="answer" {
            h2 id="answer" { "Answer" }
            @if let ([only], true) = (found.answers.as_slice(), plan.axes.is_empty()) {
                p { (text::answer(plan, found, only)) }
            } @else {
                @for sentence in crate::draws::sentences(plan, &found.answers) { p { (sentence) } }
                (edges(plan, found))
                @for answer in found.answers.iter().filter(|answer| answer.needs_words()) {
                    p { strong { (text::combination(&plan.axes, &answer.choice, |_| true)) ": " } (text::answer(plan, found, answer)) }
                }
            }
            p.aside { (text::method(plan)) }
        }
        (figure_section(&figures))
        section aria-labelledby="trials" {
            h2 id="trials" { "All tried values" }
            (trials(plan, found))
        }
    };
    trunkline_report::page(&found.run.name, env!("CARGO_PKG_VERSION"), &header, &main)
}

fn edges(plan: &Plan, found: &Found) -> Markup {
    let written = |value: Option<u64>| value.map_or("–".to_owned(), |value| plan.key.written(value));
    markup! {
        div.scroll tabindex="0" role="region" aria-label="Edges" {
            table.data data-name="edges" {
                caption { span { "The last value shown to keep the limits and the first shown to break one." } }
                thead { tr {
                    @for axis in &plan.axes { th scope="col" { (text::heading(&plan.axes, axis)) } }
                    @for name in ["kept", "not decided", "broken", "by"] { th scope="col" { (name) } }
                } }
                tbody { @for answer in &found.answers { tr {
                    (on_axes(plan, answer))
                    td { (written(answer.edge.kept)) }
                    td { (text::undecided(plan, &answer.edge)) }
                    td { (written(answer.edge.broken)) }
                    td { (text::reason(found, answer)) }
                } } }
            }
        }
    }
}

fn trials(plan: &Plan, found: &Found) -> Markup {
    let class = |verdict: Option<Verdict>| match verdict {
        Some(Verdict::Kept) => "holds",
        Some(Verdict::Broken) => "broken",
        _ => "open",
    };
    markup! {
        div.scroll.long tabindex="0" role="region" aria-label="All tried values" {
            table.data data-name="trials" {
                caption { span { "Means of the limits' figures, and the confidence bounds of the verdicts." } }
                thead { tr {
                    @for axis in &plan.axes { th scope="col" { (text::heading(&plan.axes, axis)) } }
                    th scope="col" { (text::short(plan.key.key())) }
                    th scope="col" { "verdict" }
                    th scope="col" { "repetitions" }
                    @for limit in &found.limits { th scope="col" { (text::limit(limit)) } }
                } }
                tbody { @for answer in &found.answers { @for trial in &answer.trials { tr {
                    (on_axes(plan, answer))
                    td { (plan.key.written(trial.value)) }
                    td class=(class(trial.verdict)) { (text::word(trial)) }
                    td { (trial.repetitions) }
                    @for (limit, judged) in found.limits.iter().zip(&trial.limits) { td { (text::figure(limit, judged)) } }
                } } } }
            }
        }
    }
}

fn on_axes(plan: &Plan, answer: &Answer) -> Markup {
    markup! {
        @for (axis, chosen) in plan.axes.iter().zip(&answer.choice) {
            td { (text::chosen(axis, *chosen)) }
        }
    }
}
