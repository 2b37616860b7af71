//! The report as one HTML file that needs nothing else: styles, figures and a small script inside.

mod bundles;
mod detail;
mod media;
mod settings;
mod tables;
mod verdicts;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use trunkline_metrics::figures::definitions;
use trunkline_store::{Status, StoredRun};

use crate::chart::{Chart, Frame, Theme, render};
use crate::figures::{Figure, chosen_points, figures};
use crate::units::grouped;
use crate::view::{Side, View, point_name};

const STYLE: &str = include_str!("style.css");
/// The script of a report: it sorts and downloads tables.
pub const REPORT_SCRIPT: &str = include_str!("script.js");

/// The report of a run as one self-contained HTML file; beside its counterpart on the other backend if that is given
/// and comes from the same experiment file.
pub fn html(run: &StoredRun, counterpart: Option<&StoredRun>) -> String {
    whole_html(run, counterpart, &EmbeddedSounds::default(), None)
}

/// Audio inside the report.
#[derive(Clone, Debug)]
pub struct EmbeddedSound {
    /// The point's index.
    pub point: u32,
    /// Flow and channel: `voice, channel 1`.
    pub name: String,
    /// The audio as a `data:` address.
    pub address: String,
    /// Its address at a server, by which the page inside the report finds it.
    pub path: String,
}

/// All audio inside a report.
#[derive(Clone, Debug, Default)]
pub struct EmbeddedSounds {
    /// The included audio.
    pub sounds: Vec<EmbeddedSound>,
    /// Number of channels that are left out.
    pub left_out: usize,
}

/// An interactive page inside a report. With JavaScript it takes the report's place, except on paper.
#[derive(Clone, Debug)]
pub struct EmbeddedPage<'a> {
    /// The styles of the page.
    pub style: &'a str,
    /// A module that shows the page, without `</script`.
    pub script: &'a str,
    /// The data of the page, in base64.
    pub data: &'a str,
    /// The content security policy of the whole file, which allows this module and [`REPORT_SCRIPT`].
    pub policy: &'a str,
}

/// As [`html()`], with sound to play, and with a page inside.
pub fn whole_html(
    run: &StoredRun,
    counterpart: Option<&StoredRun>,
    sounds: &EmbeddedSounds,
    page: Option<&EmbeddedPage>,
) -> String {
    let view = View::new(run, counterpart);
    let figures = figures(&view);
    let (of_sweep, of_points): (Vec<Figure>, Vec<Figure>) =
        figures.into_iter().partition(|f| f.point.is_none());
    let any_figure = !of_sweep.is_empty() || !of_points.is_empty();
    let (links, media) = (tables::links(&view), media::section(&view));
    let has_sound = !sounds.sounds.is_empty() || sounds.left_out > 0;
    let parts = [
        ("verdict", "Verdict", true),
        ("flows", "Flows", true),
        ("figures", "Figures", any_figure),
        ("sound", "Sound", has_sound),
        ("links", "Links", !links.0.is_empty()),
        ("media", "Media", !media.0.is_empty()),
        ("detail", "Every figure", !view.flows.is_empty()),
        ("settings", "Settings", true),
        ("definitions", "Definitions", true),
    ];
    let header = masthead(&view, &parts);
    let main = html! {
        (verdicts::section(&view))
        (notes(&view))
        (tables::flows(&view))
        (bundles::section(&view))
        @if !of_sweep.is_empty() { (sweep_figures(&of_sweep)) }
        @if !of_points.is_empty() { (point_figures(&view, &of_points)) }
        @if has_sound { (sound(&view, sounds)) }
        (links)
        (media)
        (detail::stalls(&view))
        (detail::every_figure(&view))
        (settings::section(&view))
        (glossary())
    };
    document(&run.info.name, &run.info.version, &header, &main, page)
}

/// A section of a page with small figures, each with an id of its own, as a screen and a phone show them; nothing without figures.
pub fn figure_section(figures: &[(String, Chart)]) -> Markup {
    const SCREEN: Frame =
        Frame { width: 540.0, plot_height: 260.0, columns: 1, theme: Theme::Page, labels: true };
    const PHONE: Frame =
        Frame { width: 350.0, plot_height: 210.0, columns: 1, theme: Theme::Page, labels: false };
    html! {
        @if !figures.is_empty() {
            section aria-labelledby="figures" {
                h2 id="figures" { "Figures" }
                div.figures { @for (id, chart) in figures {
                    figure id=(id) class="half" {
                        figcaption { (chart.title) }
                        div.on-screen { (PreEscaped(render(chart, SCREEN, &format!("{id}-screen")))) }
                        div.on-phone { (PreEscaped(render(chart, PHONE, &format!("{id}-phone")))) }
                        p.aside { (chart.description) }
                    }
                } }
            }
        }
    }
}

/// A page that looks like the report: its styles and its script inside, tables of class `data` sortable and downloadable,
/// figures in the classes `on-screen` and `on-phone`. `version` is the version of Trunkline that made it.
pub fn page(title: &str, version: &str, header: &Markup, main: &Markup) -> String {
    document(title, version, header, main, None)
}

fn document(
    title: &str,
    version: &str,
    header: &Markup,
    main: &Markup,
    page: Option<&EmbeddedPage>,
) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                @if let Some(page) = page { meta http-equiv="Content-Security-Policy" content=(page.policy); }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "Trunkline " (version) };
                title { (title) " · Trunkline" }
                style { (PreEscaped(STYLE)) }
                @if let Some(page) = page { style media="not all" { (PreEscaped(page.style)) } }
            }
            body {
                header { (header) }
                main { (main) }
                footer { p { "Made by Trunkline " (version) "." } }
                script { (PreEscaped(REPORT_SCRIPT)) }
                @if let Some(page) = page {
                    script id="saved" type="application/octet-stream" { (PreEscaped(page.data)) }
                    script type="module" { (PreEscaped(page.script)) }
                }
            }
        }
    }
    .into_string()
}

fn sound(view: &View, EmbeddedSounds { sounds, left_out }: &EmbeddedSounds) -> Markup {
    html! {
        section aria-labelledby="sound" {
            h2 id="sound" { "Sound" }
            p.aside {
                "The first channel of each flow whose audio was kept, in the first repetition of each point, as heard: with lost and late packets concealed."
                @if *left_out > 0 {
                    " " (sounds.len()) " of " (sounds.len() + left_out) " channels: for the others there was no room, or they could not be reconstructed."
                }
            }
            @for EmbeddedSound { point, name, address, path } in sounds {
                @let point = view.points().iter().find(|one| one.index == *point).map(|one| point_name(one, view.axes()));
                @let title = match point { Some(point) if !point.is_empty() => format!("{name}, {point}"), _ => name.clone() };
                p { (title) br; audio controls preload="none" src=(address) data-path=(path) aria-label=(title) {} }
            }
        }
    }
}

/// The head of the page, with links to the parts that it has.
fn masthead(view: &View, parts: &[(&str, &str, bool)]) -> Markup {
    html! {
        p.product { "Trunkline report" }
        h1 { (view.run().info.name) }
        ul.runs {
            @for side in &view.sides {
                li {
                    strong { (side.label) }
                    " · run " (side.info().id) " · "
                    time datetime=(side.info().started) { (side.info().started.strftime("%Y-%m-%d %H:%M UTC")) }
                    " · " (measured(side))
                }
            }
        }
        nav aria-label="Parts of this report" {
            @for (id, name, _) in parts.iter().filter(|(_, _, is_there)| *is_there) { a href={ "#" (id) } { (name) } " " }
        }
    }
}

/// `4 points × 3 repetitions of 11 s`, or how much of it is there.
fn measured(side: &Side) -> Markup {
    let info = side.info();
    let plural = |n: u32, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    html! {
        (plural(info.points, "point", "points")) " × " (plural(info.repetitions, "repetition", "repetitions")) " of "
        (info.repetition_length)
        @if let Some(part) = side.part() { " · " span.tag { (part) ", with " (grouped(&info.wanted().to_string())) " repetitions" } }
        @if info.status != Status::Complete {
            " · " span.tag.open { "partial: " (grouped(&info.repetitions_done.to_string())) " of " (grouped(&info.wanted().to_string())) " measured" }
        }
    }
}

/// The notes, with code and links.
fn notes(view: &View) -> Markup {
    html! {
        section aria-labelledby="notes" {
            h2 id="notes" { "How to read it" }
            ul.notes {
                @for note in crate::notes::of(view) { li { (marked(&note)) } }
                @for side in &view.sides {
                    @for hint in crate::hints::of(view, side) { li { strong { (side.label) ": " } (hint) } }
                }
            }
        }
    }
}

/// A text with `code` and [links](#id).
fn marked(text: &str) -> Markup {
    html! {
        @for (place, part) in text.split('`').enumerate() {
            @if place % 2 == 1 { code { (part) } } @else {
                @for (words, link) in crate::notes::links(part) {
                    (words)
                    @if let Some((name, id)) = link { a href={ "#" (id) } { (name) } }
                }
            }
        }
    }
}

fn sweep_figures(figures: &[Figure]) -> Markup {
    html! {
        section aria-labelledby="figures" {
            h2 id="figures" { "Over the sweep" }
            div.figures { @for figure in figures { (show(figure)) } }
        }
    }
}

fn point_figures(view: &View, figures: &[Figure]) -> Markup {
    let points = chosen_points(view);
    let all = view.points().len();
    // The last is usually the one under the highest load: open at once.
    let last = points.last().copied();
    html! {
        section aria-labelledby=(if view.is_swept() { "point-figures" } else { "figures" }) {
            h2 id=(if view.is_swept() { "point-figures" } else { "figures" }) { "Latency" @if figures.iter().any(|f| f.id.starts_with("tcp-")) { " and TCP" } @if view.is_swept() { " at single points" } }
            @if points.len() < all {
                p.aside { "Drawn for " (points.len()) " of " (all) " points; the others are in the tables." }
            }
            @for point in points {
                @let name = view.points().iter().find(|p| p.index == point).map(|p| point_name(p, view.axes())).unwrap_or_default();
                @let of_point = figures.iter().filter(|f| f.point == Some(point));
                @if name.is_empty() {
                    div.figures { @for figure in of_point { (show(figure)) } }
                } @else {
                    details.point open[Some(point) == last] {
                        summary { (name) }
                        div.figures { @for figure in of_point { (show(figure)) } }
                    }
                }
            }
        }
    }
}

/// A figure twice: laid out for wide pages and for phones. Styles show one of them.
fn show(figure: &Figure) -> Markup {
    let class = if figure.wide { "wide" } else { "half" };
    html! {
        figure id={ "figure-" (figure.id) } class=(class) {
            figcaption { (figure.chart.title) }
            div.on-screen { (PreEscaped(render(&figure.chart, figure.screen_frame(), &format!("{}-screen", figure.id)))) }
            div.on-phone { (PreEscaped(render(&figure.chart, figure.phone_frame(), &format!("{}-phone", figure.id)))) }
            @if !figure.note.is_empty() { p.aside { (figure.note) } }
        }
    }
}

fn glossary() -> Markup {
    html! {
        section aria-labelledby="definitions" {
            h2 id="definitions" { "Definitions" }
            dl.glossary {
                @for definition in definitions() {
                    div id={ "def-" (definition.id) } {
                        dt { (definition.name) }
                        dd {
                            (definition.text())
                            @if !definition.source.is_empty() { " " cite { (definition.source) } }
                        }
                    }
                }
            }
        }
    }
}
