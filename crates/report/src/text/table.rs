//! Tables of text: as wide as what they hold in a pipe; on a screen no wider than it, with words wrapped and columns that
//! do not fit beside each other below each other.

use anstyle::Style as Ansi;
use textwrap::core::display_width;

use super::{PLAIN, QUIET, Text, clean};

/// Spaces between two columns.
pub(super) const GAP: usize = 2;
/// Words are wrapped to no fewer columns than this, unless they are shorter.
const NARROW: usize = 14;
/// A single word is broken where it is longer than this and there is no room for it.
const LONG_WORD: usize = 24;
/// Where not even the keys and one column fit, words are broken down to this.
const BROKEN: usize = 8;

/// A cell of a table.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    ansi: Ansi,
}

impl Cell {
    /// A cell with this text.
    pub fn new(text: impl AsRef<str>) -> Cell {
        Cell { text: clean(text.as_ref()), ansi: PLAIN }
    }

    /// The same in a colour.
    #[must_use]
    pub fn painted(self, ansi: Ansi) -> Cell {
        Cell { ansi, ..self }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::new(text)
    }
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// The lines of the heading, from top to bottom.
    heading: Vec<String>,
    is_number: bool,
    is_key: bool,
    /// A title over this column and as many after it.
    title: Option<(String, usize)>,
}

impl Column {
    /// A column of words, set flush left and wrapped where there is no room for them.
    pub fn words(heading: impl AsRef<str>) -> Column {
        Column { heading: vec![clean(heading.as_ref())], is_number: false, is_key: false, title: None }
    }

    /// A column of numbers, set flush right and never broken.
    pub fn numbers(heading: impl AsRef<str>) -> Column {
        Column { is_number: true, ..Column::words(heading) }
    }

    /// A column that tells rows apart: it stands again before columns for which the first lines had no room.
    #[must_use]
    pub fn key(self) -> Column {
        Column { is_key: true, ..self }
    }

    /// The same with a heading of several lines.
    #[must_use]
    pub fn headed(self, lines: &[impl AsRef<str>]) -> Column {
        Column { heading: lines.iter().map(clean_line).collect(), ..self }
    }

    /// The same with a title over it and the columns after it, `count` in all, which then stay beside each other.
    #[must_use]
    pub fn titled(self, title: &str, count: usize) -> Column {
        Column { title: Some((clean(title), count.max(1))), ..self }
    }
}

fn clean_line(line: &impl AsRef<str>) -> String {
    clean(line.as_ref())
}

/// A table: columns, and rows with a cell for each.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these columns and no rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Table {
        Table { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a column at the right.
    pub fn column(&mut self, column: Column) {
        self.columns.push(column);
    }

    /// Adds a row. Cells beyond the columns are not shown; missing ones are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        let mut row: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        row.resize_with(self.columns.len(), || Cell::new(""));
        self.rows.push(row);
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// How wide a column wants to be, how narrow it can be, and how narrow at any cost.
#[derive(Clone, Copy)]
struct Room {
    natural: usize,
    least: usize,
    hard: usize,
}

impl Room {
    fn of(column: &Column, place: usize, rows: &[Vec<Cell>]) -> Room {
        let cells = || rows.iter().filter_map(|row| row.get(place));
        let heading = column.heading.iter().map(|line| display_width(line)).max().unwrap_or(0);
        let widest = cells().map(|cell| display_width(&cell.text)).max().unwrap_or(0);
        let word = |text: &str| text.split(' ').map(display_width).max().unwrap_or(0);
        let longest_word = cells().map(|cell| word(&cell.text)).max().unwrap_or(0);
        let heading_word = column.heading.iter().map(|line| word(line)).max().unwrap_or(0);
        let natural = heading.max(widest);
        let body = if column.is_number { widest } else { longest_word.clamp(NARROW, LONG_WORD).min(widest) };
        let least = body.max(heading_word).min(natural);
        Room { natural, least, hard: if column.is_number { least } else { least.min(BROKEN) } }
    }
}

/// Columns that stand beside each other, with their widths.
type Block = Vec<(usize, usize)>;

pub(super) fn lay_out(table: &Table, out: &mut Text) {
    for (place, block) in blocks(table, out.screen().width).into_iter().enumerate() {
        if place > 0 {
            out.blank();
        }
        headings(table, &block, out);
        for row in &table.rows {
            let cells: Vec<(&Cell, Vec<String>)> = block
                .iter()
                .map(|(column, width)| (&row[*column], wrapped(&row[*column].text, *width)))
                .collect();
            let height = cells.iter().map(|(_, lines)| lines.len()).max().unwrap_or(1);
            for line in 0..height {
                let parts =
                    cells.iter().map(|(cell, lines)| (lines.get(line).map_or("", String::as_str), cell.ansi));
                write_line(table, &block, parts, out);
            }
        }
    }
}

/// The columns in groups that fit the width, each behind the keys.
fn blocks(table: &Table, width: Option<usize>) -> Vec<Block> {
    let columns = || table.columns.iter().enumerate();
    let mut rooms: Vec<Room> =
        columns().map(|(place, column)| Room::of(column, place, &table.rows)).collect();
    for (place, column) in columns() {
        widen_for_title(&mut rooms, place, column);
    }
    let natural = |places: &[usize]| places.iter().map(|place| (*place, rooms[*place].natural)).collect();
    let all: Vec<usize> = (0..rooms.len()).collect();
    let Some(width) = width else { return vec![natural(&all)] };
    let keys: Vec<usize> = columns().filter(|(_, column)| column.is_key).map(|(place, _)| place).collect();
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    for unit in units(table) {
        let longer = blocks.last().map(|block| [block.as_slice(), unit.as_slice()].concat());
        match longer.filter(|block| least(&rooms, block) <= width) {
            Some(longer) => *blocks.last_mut().expect("there is one that is longer now") = longer,
            None if blocks.is_empty() => blocks.push(unit),
            None => {
                let keys = keys.iter().copied().filter(|key| !unit.contains(key));
                blocks.push(keys.chain(unit.iter().copied()).collect());
            }
        }
    }
    blocks.iter().map(|block| fitted(&rooms, block, width)).collect()
}

/// Columns that are not taken apart: those under one title.
fn units(table: &Table) -> Vec<Vec<usize>> {
    let mut units = Vec::new();
    let mut place = 0;
    while let Some(column) = table.columns.get(place) {
        let end = (place + column.title.as_ref().map_or(1, |(_, count)| *count)).min(table.columns.len());
        units.push((place..end).collect());
        place = end;
    }
    units
}

/// Makes the columns under a title as wide as it; at the least as wide as its longest part.
fn widen_for_title(rooms: &mut [Room], place: usize, column: &Column) {
    let Some((title, count)) = &column.title else { return };
    let end = (place + count).min(rooms.len());
    let of = |room: fn(&Room) -> usize| {
        rooms[place..end].iter().map(room).sum::<usize>() + GAP * (end - place - 1)
    };
    let longest_part = parts(title).map(display_width).max().unwrap_or(0);
    let natural = display_width(title).saturating_sub(of(|room| room.natural));
    let least = longest_part.saturating_sub(of(|room| room.least));
    rooms[place].natural += natural;
    rooms[place].least += least;
    rooms[place].hard += least;
}

/// Where a title may be broken: behind spaces and underscores.
fn parts(title: &str) -> impl Iterator<Item = &str> {
    title.split_inclusive([' ', '_'])
}

fn title_lines(title: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts(title) {
        match lines.last_mut().filter(|line| display_width(line) + display_width(part.trim_end()) <= width) {
            Some(line) => line.push_str(part),
            None => lines.push(part.to_owned()),
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

fn least(rooms: &[Room], block: &[usize]) -> usize {
    block.iter().map(|place| rooms[*place].least).sum::<usize>() + GAP * block.len().saturating_sub(1)
}

/// Widths at which the columns fit: the widest that can be narrower is, column by column.
fn fitted(rooms: &[Room], block: &[usize], width: usize) -> Block {
    let mut widths: Block = block.iter().map(|place| (*place, rooms[*place].natural)).collect();
    let gaps = GAP * widths.len().saturating_sub(1);
    for bound in [|room: &Room| room.least, |room: &Room| room.hard] {
        while widths.iter().map(|(_, width)| width).sum::<usize>() + gaps > width {
            let shrinkable = widths.iter_mut().filter(|(place, width)| *width > bound(&rooms[*place]));
            let Some((_, widest)) = shrinkable.max_by_key(|(_, width)| *width) else { break };
            *widest -= 1;
        }
    }
    widths
}

/// A column or several under one title, with the lines of their headings from bottom to top.
struct Heading {
    /// Where it begins and ends on the line.
    from: usize,
    to: usize,
    right: bool,
    lines: Vec<String>,
}

fn headings(table: &Table, block: &Block, out: &mut Text) {
    let lines = |(place, width): &(usize, usize)| -> Vec<String> {
        table.columns[*place].heading.iter().flat_map(|line| wrapped(line, *width)).collect()
    };
    let mut headings: Vec<Heading> = Vec::new();
    let mut titles: Vec<Heading> = Vec::new();
    let mut titled_until = 0;
    let mut height_under_titles = 0;
    let mut from = 0;
    for (index, (place, width)) in block.iter().enumerate() {
        let column = &table.columns[*place];
        let mut lines = lines(&(*place, *width));
        lines.reverse();
        if let Some((title, count)) = &column.title {
            let group = &block[index..(index + count).min(block.len())];
            let to = from + group.iter().map(|(_, width)| width).sum::<usize>() + GAP * (group.len() - 1);
            let mut lines = title_lines(title, to - from);
            lines.reverse();
            titles.push(Heading { from, to, right: true, lines });
            titled_until = to;
        }
        if from < titled_until {
            height_under_titles = height_under_titles.max(lines.len());
        }
        headings.push(Heading { from, to: from + width, right: column.is_number, lines });
        from += width + GAP;
    }
    for title in &mut titles {
        title.lines.splice(0..0, vec![String::new(); height_under_titles]);
    }
    let all: Vec<&Heading> = headings.iter().chain(&titles).collect();
    let height = all.iter().map(|heading| heading.lines.len()).max().unwrap_or(0);
    if all.iter().all(|heading| heading.lines.iter().all(String::is_empty)) {
        return;
    }
    for above in (0..height).rev() {
        let at = |heading: &&Heading| heading.lines.get(above).filter(|line| !line.is_empty()).cloned();
        let mut parts: Vec<(usize, String)> = all
            .iter()
            .filter_map(|heading| {
                let line = at(heading)?;
                let start = if heading.right {
                    heading.to.saturating_sub(display_width(&line))
                } else {
                    heading.from
                };
                Some((start, line))
            })
            .collect();
        parts.sort_by_key(|(start, _)| *start);
        let mut line = String::new();
        for (start, part) in parts {
            line.extend(std::iter::repeat_n(' ', start.saturating_sub(display_width(&line))));
            line.push_str(&part);
        }
        out.paint(&line, QUIET);
        out.blank();
    }
}

/// One line of cells; nothing is written behind the last word.
fn write_line<'t>(
    table: &Table,
    block: &Block,
    parts: impl Iterator<Item = (&'t str, Ansi)>,
    out: &mut Text,
) {
    let mut pending = 0;
    for (place, ((text, ansi), (column, width))) in parts.zip(block).enumerate() {
        let padding = width.saturating_sub(display_width(text));
        let (before, after) = if table.columns[*column].is_number { (padding, 0) } else { (0, padding) };
        pending += before + if place == 0 { 0 } else { GAP };
        if !text.is_empty() {
            out.spaces(std::mem::take(&mut pending));
            out.paint(text, ansi);
        }
        pending += after;
    }
    out.blank();
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    if display_width(text) <= width {
        return vec![text.to_owned()];
    }
    textwrap::wrap(text, width.max(1)).into_iter().map(|line| line.into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{BOLD, Screen, Style};
    use super::*;

    fn shown(table: &Table, screen: Screen) -> String {
        let mut text = Text::new(screen);
        text.table(table);
        text.into()
    }

    fn measured() -> Table {
        let mut table = Table::new([
            Column::words("transport").key(),
            Column::numbers("user Mbit/s"),
            Column::numbers("loss %"),
        ]);
        table.row(["sctp streams 1 window 4 MiB", "9.5", "0"]);
        table.row(["sctp streams 64 window 4 MiB", "73.7", "11"]);
        table
    }

    #[test]
    fn a_pipe_gets_every_cell_on_one_line() {
        assert_eq!(
            shown(&measured(), Screen::default()),
            "transport                     user Mbit/s  loss %\n\
             sctp streams 1 window 4 MiB           9.5       0\n\
             sctp streams 64 window 4 MiB         73.7      11\n"
        );
    }

    #[test]
    fn a_narrow_screen_wraps_words_and_cuts_none() {
        assert_eq!(
            shown(&measured(), Screen::of_width(30)),
            "                  user\n\
             transport       Mbit/s  loss %\n\
             sctp streams 1     9.5       0\n\
             window 4 MiB\n\
             sctp streams      73.7      11\n\
             64 window 4\n\
             MiB\n"
        );
    }

    #[test]
    fn columns_without_room_follow_below_behind_the_keys() {
        let mut table = Table::new([Column::words("flow").key()]);
        for number in 0..4 {
            table.column(Column::numbers(format!("figure{number}")));
        }
        table.row(["voice", "1", "2", "3", "4"]);
        assert_eq!(
            shown(&table, Screen::of_width(24)),
            "flow   figure0  figure1\n\
             voice        1        2\n\
             \n\
             flow   figure2  figure3\n\
             voice        3        4\n"
        );
    }

    #[test]
    fn titles_stand_over_their_columns_which_stay_together() {
        let mut table = Table::new([
            Column::words("").headed(&["window_", "bytes"]).key(),
            Column::numbers("published").titled("throughput of all", 2),
            Column::numbers("error"),
            Column::numbers("published").titled("delay", 2),
            Column::numbers("error"),
        ]);
        table.row(["256", "1.0", "+1 %", "2.0", "-1 %"]);
        let wide = "window_  throughput of all             delay\n\
                    bytes     published  error  published  error\n\
                    256             1.0   +1 %        2.0   -1 %\n";
        assert_eq!(shown(&table, Screen::default()), wide);
        let narrow = shown(&table, Screen::of_width(30));
        assert_eq!(narrow.matches("published").count(), 2, "{narrow}");
        assert_eq!(narrow.matches("window_").count(), 2, "{narrow}");
        assert!(narrow.lines().all(|line| line.len() <= 30), "{narrow}");
    }

    #[test]
    fn wide_characters_take_two_columns_and_colour_none() {
        let mut table = Table::new([Column::words("name"), Column::words("")]);
        table.row([Cell::new("東京").painted(BOLD), Cell::new("x")]);
        table.row([Cell::new("abcd"), Cell::new("y")]);
        assert_eq!(shown(&table, Screen::default()), "name\n東京  x\nabcd  y\n");
        let coloured = shown(&table, Screen { style: Style::Colour, width: None });
        assert!(coloured.contains("\u{1b}[1m東京\u{1b}[0m  x\n"), "{coloured:?}");
    }

    proptest::proptest! {
        /// However narrow the screen is: every word stands somewhere, and no line is longer than the screen where
        /// columns can be that narrow.
        #[test]
        fn nothing_is_lost(
            cells in proptest::collection::vec(proptest::collection::vec("[a-z]{1,7}( [a-z]{1,7}){0,6}", 4), 1..6),
            width in 12usize..120,
        ) {
            let mut table = Table::new((0..4).map(|place| match place % 2 {
                0 => Column::words(format!("h{place}")).key(),
                _ => Column::words(format!("h{place}")),
            }));
            for row in &cells {
                table.row(row);
            }
            let text = shown(&table, Screen::of_width(width));
            for word in cells.iter().flatten().flat_map(|cell| cell.split(' ')) {
                proptest::prop_assert!(text.contains(word), "{word} is not in\n{text}");
            }
            // Two keys and one column.
            if width >= 3 * NARROW + 2 * GAP {
                for line in text.lines() {
                    proptest::prop_assert!(line.len() <= width, "{line}");
                }
            }
        }
    }
}
