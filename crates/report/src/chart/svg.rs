//! Charts as SVG text.

use std::fmt::Write;

use super::axes;
use super::text::{fit, lines, width};
use super::{Bound, Chart, Entry, Kind, Look, Scale, Series};

/// Where colours come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// The page's CSS variables: the figure follows light and dark.
    Page,
    /// Fixed light colours and a title, to stand alone.
    Print,
}

/// How large a figure is, and how it is laid out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Of the whole figure, in pixels of the screen.
    pub width: f64,
    /// Height of one panel's plot area.
    pub plot_height: f64,
    /// How many panels stand side by side at most.
    pub columns: usize,
    /// Where colours come from.
    pub theme: Theme,
    /// True if a pointer over a marker shows its label.
    pub labels: bool,
}

const TEXT: f64 = 12.0;
pub(super) const SMALL: f64 = 11.0;
const TITLE: f64 = 15.0;
const LINE: f64 = 18.0;
/// How much wider bold letters are.
const BOLD: f64 = 1.12;
const COLOURS: usize = 8;

impl Theme {
    /// The palette: told apart by people with any kind of colour vision, at least 3:1 against the background.
    fn series(self, hue: usize) -> String {
        const PRINT: [&str; COLOURS] =
            ["#0b62a8", "#c94f00", "#007a5a", "#a23b84", "#7a5d00", "#4a4f9c", "#5c6570", "#b3203a"];
        match self {
            Theme::Page => format!("var(--series-{})", hue % COLOURS),
            Theme::Print => PRINT[hue % COLOURS].to_owned(),
        }
    }

    fn ink(self) -> &'static str {
        match self {
            Theme::Page => "var(--ink)",
            Theme::Print => "#1b2330",
        }
    }

    pub(super) fn quiet(self) -> &'static str {
        match self {
            Theme::Page => "var(--quiet)",
            Theme::Print => "#566070",
        }
    }

    pub(super) fn grid(self) -> &'static str {
        match self {
            Theme::Page => "var(--grid)",
            Theme::Print => "#e1e5ea",
        }
    }

    fn ground(self) -> &'static str {
        match self {
            Theme::Page => "var(--ground)",
            Theme::Print => "#ffffff",
        }
    }

    fn limit(self) -> &'static str {
        match self {
            Theme::Page => "var(--broken)",
            Theme::Print => "#b3203a",
        }
    }

    fn colour(self, look: Look) -> String {
        look.hue.map_or_else(|| self.quiet().to_owned(), |hue| self.series(hue))
    }
}

/// The chart as an SVG element. `id` makes its title and description addressable: unique within a page.
pub fn render(chart: &Chart, frame: Frame, id: &str) -> String {
    let mut body = String::new();
    let mut top = 0.0;
    if frame.theme == Theme::Print {
        let style = Style { size: TITLE, bold: true, ..Style::new(frame.theme.ink()) };
        top += TITLE + 3.0;
        for (place, line) in lines(&chart.title, TITLE * BOLD, frame.width - 8.0).iter().enumerate() {
            top += if place == 0 { 0.0 } else { TITLE + 4.0 };
            text(&mut body, 4.0, top, line, style);
        }
        top += 8.0;
    }
    top = legend(&mut body, &chart.legend, frame, top);
    let height = panels(&mut body, chart, frame, top);
    let (w, h) = (coordinate(frame.width), coordinate(height));
    let mut out = String::with_capacity(body.len() + 600);
    let font = match frame.theme {
        Theme::Page => "inherit",
        Theme::Print => "Noto Sans",
    };
    // Writing to a string cannot fail; the same holds for every `write!` below.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\" \
         aria-labelledby=\"{id}-title {id}-text\" font-family=\"{font}\"><title id=\"{id}-title\">{}</title>\
         <desc id=\"{id}-text\">{}</desc>",
        escaped(&chart.title),
        escaped(&chart.description)
    );
    if frame.theme == Theme::Print {
        let _ = write!(out, "<rect width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>");
    }
    out.push_str(&body);
    out.push_str("</svg>");
    out
}

/// Draws the legend in as many lines as it needs, and says where it ends.
fn legend(out: &mut String, entries: &[Entry], frame: Frame, top: f64) -> f64 {
    const SWATCH: f64 = 26.0;
    const GAP: f64 = 18.0;
    let (mut x, mut y) = (4.0, top + LINE * 0.7);
    if entries.is_empty() {
        return top;
    }
    for entry in entries {
        let label = lines(&entry.label, TEXT, frame.width - SWATCH - 12.0);
        let wide = SWATCH + 6.0 + label.iter().map(|line| width(line, TEXT)).fold(0.0, f64::max);
        if x > 4.0 && x + wide > frame.width {
            x = 4.0;
            y += LINE;
        }
        let colour = frame.theme.colour(entry.look);
        let dash = if entry.look.dashed { " stroke-dasharray=\"5 3\"" } else { "" };
        let (from, to, at) = (coordinate(x), coordinate(x + SWATCH), coordinate(y - 4.0));
        if entry.look.lined {
            let _ =
                write!(out, "<path d=\"M{from} {at}H{to}\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>");
        }
        if entry.look.marked {
            markers(out, frame.theme, entry.look, [(x + SWATCH / 2.0, y - 4.0, "")]);
        }
        for (place, line) in label.iter().enumerate() {
            y += if place == 0 { 0.0 } else { LINE };
            text(out, x + SWATCH + 6.0, y, line, Style { size: TEXT, ..Style::new(frame.theme.ink()) });
        }
        // Nothing stands behind a label of several lines.
        x += if label.len() > 1 { frame.width } else { wide + GAP };
    }
    y + LINE * 0.5
}

/// Draws the panels below each other and side by side, and says how high the whole is.
fn panels(out: &mut String, chart: &Chart, frame: Frame, top: f64) -> f64 {
    let columns = frame.columns.clamp(1, chart.panels.len().max(1));
    let gap = 18.0;
    let panel_width = (frame.width - gap * (columns - 1) as f64) / columns as f64;
    // Even steps read well with room between them; decades need every number they can get.
    let apart = if matches!(chart.y.scale, Scale::Linear { .. }) { 34.0 } else { 24.0 };
    let vertical = (frame.plot_height / apart) as usize;
    let y_ticks = chart.y.ticks.clone().unwrap_or_else(|| chart.y.scale.ticks(vertical));
    let label_width =
        y_ticks.iter().map(|t| width(&t.label, SMALL)).fold(0.0, f64::max).min(panel_width * 0.4);
    let titles: Vec<Vec<String>> =
        chart.panels.iter().map(|panel| lines(&panel.title, TEXT * BOLD, panel_width - 4.0)).collect();
    let title_lines = match chart.panels.iter().any(|panel| !panel.title.is_empty()) {
        true => titles.iter().map(Vec::len).max().unwrap_or(0),
        false => 0,
    };
    let above = LINE * (title_lines + 1) as f64 + 7.0;
    let slant = axes::slant(&chart.x, panel_width - label_width - 20.0);
    let below = 40.0 + slant.unwrap_or(0.0);
    let mut bottom = top;
    for (i, panel) in chart.panels.iter().enumerate() {
        let (row, column) = (i / columns, i % columns);
        let left = column as f64 * (panel_width + gap);
        let panel_top = top + row as f64 * (above + frame.plot_height + below);
        // Flush with the panel: titles of fewer lines than others stand lower.
        let spared = title_lines.saturating_sub(titles[i].len());
        for (place, line) in titles[i].iter().enumerate().filter(|(_, line)| !line.is_empty()) {
            let style = Style { size: TEXT, bold: true, ..Style::new(frame.theme.ink()) };
            text(out, left + 4.0, panel_top + LINE * ((spared + place) as f64 + 0.8), line, style);
        }
        let label = fit(&chart.y.label, SMALL, panel_width - 4.0);
        text(out, left + 4.0, panel_top + above - 12.0, &label, Style::new(frame.theme.quiet()));
        let area = Area {
            left: left + label_width + 10.0,
            right: left + panel_width - 10.0,
            top: panel_top + above,
            bottom: panel_top + above + frame.plot_height,
        };
        axes::grid(out, chart, frame.theme, &area, &y_ticks, slant);
        for bound in &panel.bounds {
            limit_line(out, &chart.y.scale, bound, frame.theme, &area);
        }
        for series in &panel.series {
            draw(out, chart, series, frame, &area);
        }
        for bound in &panel.bounds {
            limit_label(out, chart, &panel.series, bound, frame.theme, &area);
        }
        bottom = f64::max(bottom, area.bottom + below);
    }
    bottom
}

/// Where the data of a panel stand.
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Area {
    pub(super) fn x(&self, scale: &Scale, value: f64) -> f64 {
        self.left + scale.place(value) * (self.right - self.left)
    }

    pub(super) fn y(&self, scale: &Scale, value: f64) -> f64 {
        self.bottom - scale.place(value) * (self.bottom - self.top)
    }
}

fn limit_line(out: &mut String, scale: &Scale, bound: &Bound, theme: Theme, area: &Area) {
    let y = area.y(scale, bound.at);
    let colour = theme.limit();
    let (left, right, at) = (coordinate(area.left), coordinate(area.right), coordinate(y));
    let _ = write!(
        out,
        "<path d=\"M{left} {at}H{right}\" stroke=\"{colour}\" stroke-width=\"1.2\" stroke-dasharray=\"2 3\"/>"
    );
}

/// The line's label, at its right end: above it or below, where fewer data are.
fn limit_label(out: &mut String, chart: &Chart, series: &[Series], bound: &Bound, theme: Theme, area: &Area) {
    let y = area.y(&chart.y.scale, bound.at);
    let colour = theme.limit();
    let (above, below) = (y - 5.0, y + SMALL + 2.0);
    let middle = (area.left + area.right) / 2.0;
    let data = series.iter().flat_map(|series| &series.data);
    let places = data.map(|d| (area.x(&chart.x.scale, d.x), area.y(&chart.y.scale, d.y)));
    let right: Vec<f64> = places.filter(|(x, _)| *x >= middle).map(|(_, y)| y).collect();
    let room = 2.0 * SMALL;
    let crowd = |from: f64, to: f64| right.iter().filter(|at| (from..to).contains(*at)).count();
    let fits_above = above >= area.top + SMALL * 0.5;
    let fits_below = below <= area.bottom - 2.0;
    let at = match crowd(y - room, y) <= crowd(y, y + room) {
        true if fits_above => above,
        false if fits_below => below,
        _ if fits_above => above,
        _ => below,
    };
    let style = Style { anchor: "end", halo: Some(theme.ground()), ..Style::new(colour) };
    text(out, area.right - 2.0, at, &fit(&bound.label, SMALL, area.right - area.left), style);
}

fn draw(out: &mut String, chart: &Chart, series: &Series, frame: Frame, area: &Area) {
    let Frame { theme, labels, .. } = frame;
    let colour = theme.colour(series.look);
    let places: Vec<(f64, f64)> =
        series.data.iter().map(|d| (area.x(&chart.x.scale, d.x), area.y(&chart.y.scale, d.y))).collect();
    let dash = if series.look.dashed { " stroke-dasharray=\"5 3\"" } else { "" };
    match series.kind {
        Kind::Dots => {
            let path = dots(&places);
            let _ = write!(
                out,
                "<path d=\"{path}\" stroke=\"{colour}\" stroke-width=\"2.6\" stroke-linecap=\"round\" \
                 stroke-opacity=\"0.6\" fill=\"none\"/>"
            );
        }
        Kind::Line => {
            let path = polyline(&simplified(&places));
            let _ = write!(
                out,
                "<path d=\"{path}\" stroke=\"{colour}\" stroke-width=\"1.8\" stroke-linejoin=\"round\" fill=\"none\"{dash}/>"
            );
        }
        Kind::Above | Kind::Below => {
            let [(first, _), .., (last, _)] = places.as_slice() else { return };
            let edge = coordinate(if series.kind == Kind::Above { area.top } else { area.bottom });
            let (line, first, last) = (polyline(&places), coordinate(*first), coordinate(*last));
            let _ = write!(
                out,
                "<path d=\"{line}L{last} {edge}L{first} {edge}z\" fill=\"{colour}\" fill-opacity=\"0.14\"/>"
            );
        }
        Kind::Markers | Kind::Points => {
            if series.kind == Kind::Markers && places.len() > 1 {
                let path = polyline(&simplified(&places));
                let _ = write!(
                    out,
                    "<path d=\"{path}\" stroke=\"{colour}\" stroke-width=\"1.8\" stroke-linejoin=\"round\" \
                     fill=\"none\"{dash}/>"
                );
            }
            let mut bars = String::new();
            for (datum, (x, _)) in series.data.iter().zip(&places) {
                if let Some(half) = datum.half_width.filter(|half| *half > 0.0) {
                    let high = area.y(&chart.y.scale, datum.y + half);
                    let low = area.y(&chart.y.scale, (datum.y - half).max(0.0));
                    let (x, from, to) = (coordinate(*x - 3.0), coordinate(high), coordinate(low));
                    let middle = coordinate(-3.0);
                    let _ = write!(bars, "M{x} {from}h6m{middle} 0V{to}m-3 0h6");
                }
            }
            if !bars.is_empty() {
                let _ = write!(
                    out,
                    "<path d=\"{bars}\" stroke=\"{colour}\" stroke-width=\"1.2\" fill=\"none\"/>"
                );
            }
            let labelled = series
                .data
                .iter()
                .zip(&places)
                .map(|(datum, (x, y))| (*x, *y, if labels { &datum.label[..] } else { "" }));
            markers(out, theme, series.look, labelled);
        }
    }
}

/// Markers at places, each with its label, whose shape goes with the colour; hollow for the live side.
fn markers<'l>(
    out: &mut String,
    theme: Theme,
    look: Look,
    places: impl IntoIterator<Item = (f64, f64, &'l str)>,
) {
    let colour = theme.colour(look);
    let fill = if look.dashed { theme.ground().to_owned() } else { colour.clone() };
    let _ = write!(out, "<g fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.4\">");
    // Where colours begin anew, shapes do not.
    let hue = look.hue.unwrap_or(0);
    for (x, y, label) in places {
        let (x0, y0) = (coordinate(x), coordinate(y));
        let shape = match (hue + hue / 8) % 4 {
            0 => format!("M{} {y0}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", coordinate(x - 4.0)),
            1 => format!("M{} {}h7v7h-7z", coordinate(x - 3.5), coordinate(y - 3.5)),
            2 => format!("M{x0} {}l4.6 8h-9.2z", coordinate(y - 5.0)),
            _ => format!("M{x0} {}l4.8 4.8l-4.8 4.8l-4.8 -4.8z", coordinate(y - 4.8)),
        };
        let _ = match label {
            "" => write!(out, "<path d=\"{shape}\"/>"),
            label => write!(out, "<path d=\"{shape}\"><title>{}</title></path>", escaped(label)),
        };
    }
    out.push_str("</g>");
}

/// All dots as one path: lines of no length with round ends. Dots on the same half pixel are drawn once.
fn dots(places: &[(f64, f64)]) -> String {
    let mut cells: Vec<(i64, i64)> =
        places.iter().map(|(x, y)| ((x * 2.0).round() as i64, (y * 2.0).round() as i64)).collect();
    cells.sort_unstable();
    cells.dedup();
    let mut path = String::with_capacity(cells.len() * 14);
    for (x, y) in cells {
        let _ = write!(path, "M{} {}h.01", coordinate(x as f64 / 2.0), coordinate(y as f64 / 2.0));
    }
    path
}

fn polyline(places: &[(f64, f64)]) -> String {
    let mut path = String::with_capacity(places.len() * 12);
    for (i, (x, y)) in places.iter().enumerate() {
        let _ = write!(path, "{}{} {}", if i == 0 { 'M' } else { 'L' }, coordinate(*x), coordinate(*y));
    }
    path
}

/// Leaves out what an eye cannot see: vertices less than a third of a pixel off the line through their neighbours.
fn simplified(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    const SEEN: f64 = 0.3;
    let mut kept: Vec<(f64, f64)> = Vec::new();
    let mut start = 0;
    for end in 0..places.len() {
        let skips_something =
            places[start..=end].iter().any(|p| distance_from_line(*p, places[start], places[end]) > SEEN);
        if end == 0 {
            kept.push(places[0]);
        } else if skips_something {
            start = end - 1;
            kept.push(places[start]);
        }
    }
    if let (Some(last), true) = (places.last(), places.len() > 1) {
        kept.push(*last);
    }
    kept
}

fn distance_from_line(p: (f64, f64), a: (f64, f64), b: (f64, f64)) -> f64 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length = dx.hypot(dy);
    if length == 0.0 {
        return (p.0 - a.0).hypot(p.1 - a.1);
    }
    ((p.0 - a.0) * dy - (p.1 - a.1) * dx).abs() / length
}

/// How a text is set.
#[derive(Clone, Copy)]
pub(super) struct Style<'s> {
    pub(super) size: f64,
    pub(super) bold: bool,
    pub(super) anchor: &'s str,
    pub(super) colour: &'s str,
    /// A colour around the letters that keeps them readable over data.
    pub(super) halo: Option<&'s str>,
}

impl<'s> Style<'s> {
    pub(super) fn new(colour: &'s str) -> Style<'s> {
        Style { size: SMALL, bold: false, anchor: "start", colour, halo: None }
    }
}

pub(super) fn text(out: &mut String, x: f64, y: f64, content: &str, style: Style) {
    let Style { size, anchor, colour, .. } = style;
    let _ = write!(
        out,
        "<text x=\"{}\" y=\"{}\" font-size=\"{size}\" fill=\"{colour}\"",
        coordinate(x),
        coordinate(y)
    );
    if anchor != "start" {
        let _ = write!(out, " text-anchor=\"{anchor}\"");
    }
    if style.bold {
        out.push_str(" font-weight=\"bold\"");
    }
    if let Some(halo) = style.halo {
        let _ = write!(
            out,
            " stroke=\"{halo}\" stroke-width=\"3\" stroke-linejoin=\"round\" paint-order=\"stroke\""
        );
    }
    let _ = write!(out, ">{}</text>", escaped(content));
}

/// A coordinate to a tenth of a pixel, as short as it gets.
pub(super) fn coordinate(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    let rounded = if rounded == 0.0 || !rounded.is_finite() { 0.0 } else { rounded };
    format!("{rounded}")
}

/// Text as XML content: markup and characters that XML does not allow are taken out.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}
