//! What of a study takes real time.

use trunkline_core::Duration;
use trunkline_experiment::Point;
use trunkline_store::Backend;

use crate::run::{PaperError, Source, sources};
use crate::study::{Rows, Study, Table};

/// An experiment of a study that is measured, or can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealTime {
    /// On what: live always, on the wire if one asks for that.
    pub on: Backend,
    /// The tables that draw on it.
    pub tables: Vec<&'static str>,
    /// How long it takes at most: its points come one after the other, each once.
    pub length: Duration,
    /// Number of blocks that each channel of audio sends, if they are counted; with fewer, it takes less time.
    pub blocks: Option<u64>,
}

/// What of a study is measured live, and what can be measured on the wire.
///
/// # Errors
/// If the study itself is wrong, which is a defect of ours.
pub fn real_time(study: &'static Study) -> Result<Vec<RealTime>, PaperError> {
    let is_live = |table: &Table| matches!(table.rows, Rows::Flows { .. });
    let is_wired = |file: &str| study.wired.iter().any(|wired| wired == file);
    let can_be_measured = |table: &&Table| is_live(table) || table.files().iter().any(|file| is_wired(file));
    let tables: Vec<&'static Table> = study.tables.iter().filter(can_be_measured).collect();
    let measured = sources(study, &tables)?.into_iter().filter_map(|source| {
        let on = match source.on {
            Backend::Sim if is_wired(source.file) => Backend::Wire,
            Backend::Sim => return None,
            on => on,
        };
        let of_it = tables.iter().filter(|table| table.files().contains(&source.file));
        let tables = of_it.map(|table| table.name.as_str()).collect();
        Some(RealTime { on, tables, length: length(&source), blocks: blocks(&source) })
    });
    Ok(measured.collect())
}

fn length(source: &Source) -> Duration {
    source.experiment.points.lengths().fold(Duration::ZERO, |sum, length| sum + length)
}

/// The most that any flow counts: they run beside each other.
fn blocks(source: &Source) -> Option<u64> {
    let (audio, _) = trunkline_traffic::find("audio")?;
    let most = |point: Point| {
        let flows = point.scenario.flows.iter().filter(|flow| flow.source.kind == audio);
        flows.filter_map(|flow| flow.source.values.integer_if_given("blocks")).max()
    };
    source.experiment.points.iter().filter_map(most).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_told_with_its_time() {
        for name in ["hawley1989", "weaver1992", "lamont1998"] {
            assert_eq!(real_time(crate::find(name).unwrap()).unwrap(), [], "{name}");
        }
        let study = crate::find("schiavoni2013").unwrap();
        let measured = real_time(study).unwrap();
        let live: Vec<_> = measured.iter().filter(|one| one.on == Backend::Live).collect();
        assert!(matches!(live[..], [one] if one.tables == ["here"]), "{live:?}");
        // Ten flows beside each other, for 10,000 blocks of 512 frames at 48 kHz.
        assert!(live[0].length > Duration::from_secs(106) && live[0].length < Duration::from_secs(150));
        let wired: Vec<_> = measured.iter().filter(|one| one.on == Backend::Wire).collect();
        assert_eq!(wired.len(), study.wired.len());
        for one in &wired {
            assert_eq!((one.tables.len(), one.blocks), (2, Some(10_000)), "{one:?}");
            assert!(one.length > live[0].length * 9, "{one:?}");
        }
    }
}
