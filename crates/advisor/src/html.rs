//! The advice, as one HTML page that needs nothing else.

use maud::{Markup, html as markup};
use trunkline_report::figure_section;

use crate::advice::{Advice, Recommendation};
use crate::figures::figures;
use crate::findings::Findings;
use crate::terminal::{rows, title};
use crate::units::{ms, percent, rate};
use crate::words::way;

/// What is recommended, its figures, warnings and all that was measured.
pub fn html(advice: &Advice, findings: &Findings) -> String {
    let header = markup! {
        p.product { "Trunkline advice" }
        h1 { (title(advice)) }
        @if advice.is_partial { ul.runs { li { span.tag.open { "partial" } } } }
    };
    let figures = figures(advice, findings);
    let main = markup! {
        section aria-labelledby="advice" {
            h2 id="advice" { "Advice" }
            (summary(advice))
            @for recommendation in &advice.recommendations { (reasons(recommendation)) }
        }
        @if !advice.warnings.is_empty() {
            section aria-labelledby="warnings" {
                h2 id="warnings" { "Warnings" }
                ul { @for warning in &advice.warnings { li { (warning) } } }
            }
        }
        (figure_section(&figures))
        section aria-labelledby="measured" {
            h2 id="measured" { "All measurements" }
            (measured(advice))
            @for (transport, why) in &advice.failed { p { (transport.name()) " was not measured: " (why) } }
        }
    };
    trunkline_report::page(&format!("Advice for {}", advice.host), env!("CARGO_PKG_VERSION"), &header, &main)
}

fn summary(advice: &Advice) -> Markup {
    markup! {
        div.scroll tabindex="0" role="region" aria-label="Recommendations" {
            table.data data-name="recommendations" {
                caption { span { "The recommendation for each use." } }
                thead { tr {
                    @for name in ["for", "way to send", "mouth to ear", "concealed", "MOS", "bit rate"] {
                        th scope="col" { (name) }
                    }
                } }
                tbody { @for Recommendation { choice, .. } in &advice.recommendations { tr {
                    td { (choice.purpose.name()) }
                    td { (way(&choice.best)) }
                    td { (ms(choice.best.mouth_to_ear)) }
                    td class=(if choice.suffices { "holds" } else { "broken" }) { (percent(choice.best.concealed)) }
                    td { (format!("{:.2}", choice.best.mos)) }
                    td { (rate(choice.best.rate)) }
                } } }
            }
        }
    }
}

fn reasons(recommendation: &Recommendation) -> Markup {
    markup! {
        h3 { (recommendation.choice.purpose.name()) }
        p { (recommendation.why) }
        @if let Some(costs) = &recommendation.runner_up_costs { p { "Next: " (costs) } }
        pre { (recommendation.answer) "\n" (recommendation.send) }
    }
}

fn measured(advice: &Advice) -> Markup {
    let (head, rows) = rows(advice);
    markup! {
        div.scroll.long tabindex="0" role="region" aria-label="All measurements" {
            table.data data-name="measured" {
                caption { span { "Round trips of blocks, from the time a block was due until all of it was \
                    back." } }
                thead { tr { @for name in head { th scope="col" { (name) } } } }
                tbody { @for row in &rows { tr { @for cell in row { td { (cell) } } } } }
            }
        }
    }
}
