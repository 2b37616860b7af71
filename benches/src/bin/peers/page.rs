//! The page of the comparison, in Markdown, and its JSON.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use trunkline_benches::Spread;

use crate::lanes::{Better, Figure};
use crate::run::{Done, Measured, Options};

/// One table of all lanes: our first program beside the best of the others.
pub(crate) fn summary(done: &[Done]) -> String {
    let mut text = String::from(
        "| lane | figure | Trunkline | best peer | | |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for lane in done {
        for (at, figure) in lane.lane.figures.iter().enumerate() {
            let ours = best(lane, at, figure, true);
            let theirs = best(lane, at, figure, false);
            let value = |found: Option<(&str, Spread)>| {
                found.map_or_else(
                    || "-".to_owned(),
                    |(_, spread)| format!("{:.*} {}", figure.digits, spread.median, figure.unit),
                )
            };
            let verdict = match (ours, theirs) {
                (Some((_, ours)), Some((_, theirs))) => verdict(figure, ours, theirs),
                _ => "not compared".to_owned(),
            };
            let peer = theirs.map_or("", |(name, _)| name);
            writeln!(
                text,
                "| [{}](#{}) | {} | {} | {} | {peer} | {verdict} |",
                lane.lane.name,
                anchor(lane.lane.title),
                figure.name,
                value(ours),
                value(theirs)
            )
            .expect("text");
        }
    }
    text
}

/// Ours against theirs in words: won or lost with the ratio, or ranges that overlap.
fn verdict(figure: &Figure, ours: Spread, theirs: Spread) -> String {
    let shown = |spread: Spread| format!("{:.*}", figure.digits, spread.median);
    if shown(ours) == shown(theirs) {
        return "equal".to_owned();
    }
    let won =
        if figure.better == Better::More { ours.median > theirs.median } else { ours.median < theirs.median };
    let apart = ours.max < theirs.min || theirs.max < ours.min;
    let (more, less) = (ours.median.max(theirs.median), ours.median.min(theirs.median));
    let times = if less > 0.0 { format!(", x {:.2}", more / less) } else { String::new() };
    match (apart, won) {
        (false, _) => "ranges overlap".to_owned(),
        (true, true) => format!("won{times}"),
        (true, false) => format!("lost{times}"),
    }
}

/// The best of our programs, or of the others.
fn best<'a>(done: &'a Done, at: usize, figure: &Figure, ours: bool) -> Option<(&'a str, Spread)> {
    let programs = done.lane.programs.iter().zip(&done.programs);
    let spreads = programs.filter_map(|(program, measured)| match measured {
        Measured::Figures(spreads, _) if program.ours == ours => Some((program.name, spreads[at])),
        _ => None,
    });
    spreads.min_by(|(_, a), (_, b)| match figure.better {
        Better::Less => a.median.total_cmp(&b.median),
        Better::More => b.median.total_cmp(&a.median),
    })
}

/// A lane: its text, its table, and its commands.
pub(crate) fn lane(done: &Done) -> String {
    let lane = done.lane;
    let mut text = format!("## {}\n\n{}\n\n| |", lane.title, wrapped(lane.text));
    for figure in lane.figures {
        write!(text, " {}, {} |", figure.name, figure.unit).expect("text");
    }
    text += "\n| --- |";
    text += &" --- |".repeat(lane.figures.len());
    text.push('\n');
    for (program, measured) in lane.programs.iter().zip(&done.programs) {
        write!(text, "| {} |", program.name).expect("text");
        match measured {
            Measured::Figures(spreads, _) => {
                for (spread, figure) in spreads.iter().zip(lane.figures) {
                    write!(text, " {spread:.*} |", figure.digits).expect("text");
                }
            }
            Measured::Missing(why) => {
                write!(text, " {} |", why.replace('|', "\\|")).expect("text");
                text += &" |".repeat(lane.figures.len() - 1);
            }
        }
        text.push('\n');
    }
    writeln!(
        text,
        "\nThe machine stood still for {:.1} % of the time, for {:.0} ms at most.\n\n```sh",
        100.0 * done.stalled,
        1e3 * done.longest_stall.as_secs_f64()
    )
    .expect("text");
    for program in lane.programs {
        let beside = program.beside.map(|line| format!("{line} & ")).unwrap_or_default();
        writeln!(text, "{beside}{}", program.command).expect("text");
    }
    text + "```\n"
}

/// The whole page.
pub(crate) fn whole(done: &[Done], options: &Options, took: Duration) -> String {
    let mut text = format!(
        "# Peers\n\n\
         `cargo xtask peers` has written this page: it installs the peers, builds Trunkline for release and runs each lane's programs in\n\
         turn, {} times. Figures are medians (minimum to maximum). Processor time is that of all processes of both ends. A program wins or\n\
         loses only where the ranges do not overlap. Losses stay in the table.\n\n\
         {}, {}. The run took {:.0} minutes.\n\n",
        options.rounds,
        trunkline_live::machine_description(),
        jiff::Zoned::now().strftime("%-d %B %Y"),
        took.as_secs_f64() / 60.0
    );
    text += &summary(done);
    text += "\nIn the commands below, `$TRUNKLINE` is the program, `$LANES` is `benches/peers`, `$BUILT` has the programs that are compiled from\n\
             it, and `$SCRATCH` is an empty folder.\n";
    for lane_done in done {
        text.push('\n');
        text += &lane(lane_done);
    }
    text
}

/// The same as JSON, with the values of every round.
pub(crate) fn json(done: &[Done], options: &Options) -> String {
    let program = |(program, measured): (&crate::lanes::Program, &Measured)| -> Value {
        let figures = match measured {
            Measured::Figures(_, values) => json!(values),
            Measured::Missing(_) => Value::Null,
        };
        let missing = match measured {
            Measured::Figures(..) => Value::Null,
            Measured::Missing(why) => json!(why),
        };
        json!({ "name": program.name, "ours": program.ours, "beside": program.beside, "command": program.command, "rounds": figures, "missing": missing })
    };
    let lanes: Vec<Value> = done
        .iter()
        .map(|done| {
            let figures: Vec<Value> = done
                .lane
                .figures
                .iter()
                .map(|figure| json!({ "name": figure.name, "unit": figure.unit, "more_is_better": figure.better == Better::More }))
                .collect();
            json!({
                "name": done.lane.name,
                "title": done.lane.title,
                "figures": figures,
                "stalled": done.stalled,
                "longest_stall_s": done.longest_stall.as_secs_f64(),
                "programs": done.lane.programs.iter().zip(&done.programs).map(program).collect::<Vec<_>>(),
            })
        })
        .collect();
    let all =
        json!({ "rounds": options.rounds, "machine": trunkline_live::machine_description(), "lanes": lanes });
    serde_json::to_string_pretty(&all).expect("JSON") + "\n"
}

/// Lines of at most 130 characters.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is one");
        if last.is_empty() {
            last.push_str(word);
        } else if last.len() + 1 + word.len() <= 130 {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}

/// The anchor that mdBook gives a heading.
fn anchor(title: &str) -> String {
    let kept = title
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-')
        .collect::<String>();
    kept.replace(' ', "-")
}
