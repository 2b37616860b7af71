//! `trunkline wire top`, `trunkline wire set`: a running wire by its socket.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;

use trunkline_core::Bytes;
use trunkline_report::{Screen, Style};
use trunkline_wire::control::{Client, Packets, Rates, WireSnapshot};
use trunkline_wire::ground::FoundWire;
use trunkline_wire::programs::{Keys, Signals};

use super::wire::{failure, find};
use crate::args::Global;
use crate::args::wire::Which;
use crate::escape::escaped_line;
use crate::json::WireCountersOutput;
use crate::output::{self, Failure};

/// Looks in a second, which is what rates are over.
const LOOKS: usize = 10;
const BETWEEN: Duration = Duration::from_millis(1000 / LOOKS as u64);

/// Shows rates, queues and drops: on a terminal ten times a second until `q` or Ctrl-C, otherwise once; as JSON the counters
/// themselves.
pub(super) fn top(global: &Global, which: &Which) -> Result<u8, Failure> {
    let found = find(which)?;
    let mut client = Client::connect(&found.socket()).map_err(failure)?;
    let first = client.counters().map_err(failure)?;
    if global.json {
        output::print_json(&WireCountersOutput { counters: first });
        return Ok(output::DONE);
    }
    if !output::is_terminal() {
        thread::sleep(BETWEEN * LOOKS as u32);
        let now = client.counters().map_err(failure)?;
        output::print(view(&first, &now, plain(output::screen())).join("\n"));
        return Ok(output::DONE);
    }
    watch(&mut client, first, &found.state.name)
}

/// Shows it on the terminal, until somebody wants no more of it or the wire goes down.
fn watch(client: &mut Client, first: WireSnapshot, wire: &str) -> Result<u8, Failure> {
    const CTRL_D: u8 = 4;
    let signals = Signals::keep().map_err(Failure::environment)?;
    let mut keys = Keys::take();
    let mut looks = VecDeque::from([first]);
    let mut window = Window::default();
    loop {
        let key = keys.next(BETWEEN.into()).map_err(Failure::environment)?;
        if matches!(key, Some(b'q' | b'Q' | CTRL_D)) {
            return Ok(output::DONE);
        }
        if signals.want_end().map_err(Failure::environment)? {
            return Ok(output::INTERRUPTED);
        }
        if key.is_some() {
            continue;
        }
        let now = match client.counters() {
            Ok(now) => now,
            Err(error) if error.is_disconnection() => {
                output::note(format_args!("wire `{wire}` has been taken down"));
                return Ok(output::DONE);
            }
            Err(error) => return Err(failure(error)),
        };
        // The terminal may have another size than before.
        let lines = view(looks.front().unwrap_or(&now), &now, plain(output::screen()));
        draw(&window.text(&lines, size())).map_err(Failure::environment)?;
        looks.push_back(now);
        if looks.len() > LOOKS {
            looks.pop_front();
        }
    }
}

/// Sets keys of links one after the other, until one is refused.
pub(super) fn set(which: &Which, assignments: &[String]) -> Result<u8, Failure> {
    let assignments = assignments.iter().map(|text| assignment(text)).collect::<Result<Vec<_>, _>>()?;
    let mut client = Client::connect(&find(which)?.socket()).map_err(failure)?;
    for (key, value) in assignments {
        client.set(key, value).map_err(failure)?;
    }
    Ok(output::DONE)
}

/// What the links of a wire have counted; nothing if it does not answer.
pub(super) fn counters(wire: &FoundWire) -> Option<WireSnapshot> {
    Client::connect(&wire.socket()).and_then(|mut client| client.counters()).ok()
}

fn assignment(text: &str) -> Result<(&str, &str), Failure> {
    let parts = text.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
    parts.filter(|(key, value)| !key.is_empty() && !value.is_empty()).ok_or_else(|| {
        Failure::input(format_args!(
            "invalid setting `{text}`; expected LINK.KEY=VALUE such as \
            `trunk.rate=5mbit`"
        ))
    })
}

/// Lines are cut to the terminal by their characters: no colours.
fn plain(screen: Screen) -> Screen {
    Screen { style: Style::Plain, ..screen }
}

/// The columns and rows of the terminal.
fn size() -> (usize, usize) {
    let size = terminal_size::terminal_size();
    size.map_or((80, 24), |(width, height)| (usize::from(width.0), usize::from(height.0)))
}

/// The lines that are on the terminal.
#[derive(Default)]
struct Window {
    shown: usize,
    /// Columns and rows.
    size: (usize, usize),
}

impl Window {
    /// The text that puts lines in the place of those before, as far as the terminal has room.
    fn text(&mut self, lines: &[String], size: (usize, usize)) -> String {
        let mut text = match self.shown {
            0 => String::new(),
            // After a change of width, lines are wrapped differently, so the row of the first one is unknown.
            _ if size != self.size => "\x1b[H\x1b[2J".to_owned(),
            // Up to the first of them.
            shown => format!("\x1b[{shown}A"),
        };
        let (columns, rows) = (size.0, size.1.saturating_sub(1));
        let fitting = if lines.len() <= rows { lines.len() } else { rows.saturating_sub(1) };
        let others = lines.len() - fitting;
        let last =
            (others > 0).then(|| format!("{others} more lines do not fit; use a taller terminal or --json"));
        let all = lines[..fitting].iter().map(String::as_str).chain(last.as_deref());
        self.shown = 0;
        for line in all.take(rows) {
            text.extend(escaped_line(line).chars().take(columns));
            // What is left of the line before.
            text.push_str("\x1b[K\n");
            self.shown += 1;
        }
        // And of the lines below.
        text.push_str("\x1b[J");
        self.size = size;
        text
    }
}

fn draw(text: &str) -> io::Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "lines are escaped in `Window::text`, and cursor movements are not text"
    )]
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Tables of links and of flows.
fn view(before: &WireSnapshot, now: &WireSnapshot, screen: Screen) -> Vec<String> {
    let Rates { directions, flows } = Rates::between(before, now);
    let mut links = vec![row([
        "link",
        "from",
        "to",
        "offered",
        "delivered",
        "busy",
        "waiting",
        "drops/s",
        "marks/s",
        "sojourn",
        "p99 so far",
    ])];
    links.extend(directions.iter().map(|direction| {
        row([
            &direction.link,
            &direction.from,
            match direction.up {
                true => direction.to.as_deref().unwrap_or("all"),
                false => "(down)",
            },
            &direction.offered.to_string(),
            &direction.delivered.to_string(),
            &format!("{:.0} %", direction.utilisation * 100.0),
            &waiting(direction.waiting),
            &format!("{:.0}", direction.drops),
            &format!("{:.0}", direction.marks),
            &direction.sojourn.map_or("-".to_owned(), time),
            &time(direction.sojourn_p99),
        ])
    }));
    let mut lines: Vec<String> =
        output::table_with_keys(3, &links, screen).lines().map(str::to_owned).collect();
    let ended = now.links.iter().filter(|link| link.ended);
    lines.extend(ended.map(|link| format!("{}  its relay has ended", link.link)));
    lines.extend(now.capture_failure.clone());
    if !flows.is_empty() {
        let mut table =
            vec![row(["link", "flow", "", "delivered", "in link", "drops/s", "marks/s", "from end to end"])];
        table.extend(flows.iter().map(|flow| {
            row([
                &flow.link,
                &flow.name,
                if flow.backward { "back" } else { "" },
                &flow.delivered.to_string(),
                &flow.waiting.to_string(),
                &format!("{:.0}", flow.drops),
                &format!("{:.0}", flow.marks),
                &flow.transit.map_or("-".to_owned(), time),
            ])
        }));
        lines.push(String::new());
        lines.extend(output::table_with_keys(3, &table, screen).lines().map(str::to_owned));
    }
    lines
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn time(length: trunkline_core::Duration) -> String {
    length.to_string().replace("us", "µs")
}

fn waiting(packets: Packets) -> String {
    match packets.packets {
        0 => "0".to_owned(),
        count => format!("{count} ({})", Bytes(packets.bytes)),
    }
}

#[cfg(test)]
mod tests {
    use trunkline_wire::control::{DirectionSnapshot, FlowSide, FlowSnapshot, LinkSnapshot};

    use super::*;

    #[test]
    fn the_view_tells_of_links_and_of_flows() {
        let look = |seconds: u64| WireSnapshot {
            links: vec![
                LinkSnapshot {
                    link: "trunk".into(),
                    at_ns: seconds * 1_000_000_000,
                    up: true,
                    directions: vec![DirectionSnapshot {
                        from: "a".into(),
                        to: Some("b".into()),
                        delivered: Packets { packets: seconds, bytes: 1000 * seconds },
                        waiting: Packets { packets: 3, bytes: 4500 },
                        ..DirectionSnapshot::default()
                    }],
                    flows: vec![FlowSnapshot {
                        flow: 1,
                        name: "udp 198.18.0.1:5004 198.18.0.2:5004".into(),
                        directions: [FlowSide { waiting: 2, ..FlowSide::default() }, FlowSide::default()],
                    }],
                    ended: false,
                },
                LinkSnapshot { link: "tail".into(), ended: true, ..LinkSnapshot::default() },
            ],
            ..WireSnapshot::default()
        };
        assert_eq!(
            view(&look(1), &look(2), Screen::default()),
            [
                "link   from  to  offered  delivered  busy  waiting     drops/s  marks/s  sojourn  p99 so far",
                "trunk  a     b   0 bit/s  8 kbit/s   0 %   3 (4500 B)  0        0        -        0 s",
                "tail  its relay has ended",
                "",
                "link   flow                                   delivered  in link  drops/s  marks/s  from end to end",
                "trunk  udp 198.18.0.1:5004 198.18.0.2:5004    0 bit/s    2        0        0        -",
            ]
        );
    }

    #[test]
    fn a_window_of_another_size_is_drawn_anew_and_says_what_it_has_no_room_for() {
        let lines: Vec<String> = (0..30).map(|line| format!("line {line} {}", "x".repeat(90))).collect();
        let mut window = Window::default();
        let first = window.text(&lines[..5], (80, 24));
        assert!(first.starts_with("line 0") && !first.contains("\x1b[H"), "{first:?}");
        assert!(window.text(&lines[..5], (80, 24)).starts_with("\x1b[5A"));
        assert!(window.text(&lines[..5], (60, 24)).starts_with("\x1b[H\x1b[2J"), "another width");
        let all = window.text(&lines, (80, 24));
        assert!(all.starts_with("\x1b[H\x1b[2J"), "and back");
        let shown: Vec<&str> = all.lines().collect();
        assert!(
            shown.len() == 24 && shown[22].starts_with("8 more lines"),
            "{} {:?}",
            shown.len(),
            shown[22]
        );
        for rows in 0..4 {
            assert!(window.text(&lines, (10, rows)).lines().count() <= rows.max(1));
        }
    }

    #[test]
    fn rows_of_a_narrow_terminal_show_the_direction_with_every_part() {
        let directions = ["client", "server"]
            .map(|from| DirectionSnapshot { from: from.into(), ..DirectionSnapshot::default() });
        let link =
            LinkSnapshot { link: "l".into(), directions: directions.to_vec(), ..LinkSnapshot::default() };
        let look = WireSnapshot { links: vec![link], ..WireSnapshot::default() };
        let lines = view(&look, &look, Screen::of_width(60));
        assert!(
            lines.len() > 4 && lines.iter().filter(|line| line.contains("client")).count() > 1,
            "{lines:#?}"
        );
    }

    #[test]
    fn assignments_have_two_sides() {
        assert_eq!(
            assignment("trunk.queue = { kind = \"codel\" }").unwrap(),
            ("trunk.queue", "{ kind = \"codel\" }")
        );
        for bad in ["trunk.rate", "=5mbit", "trunk.rate="] {
            assert!(assignment(bad).unwrap_err().message.contains("LINK.KEY=VALUE"), "{bad}");
        }
    }
}
