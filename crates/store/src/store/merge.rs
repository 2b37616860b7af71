//! One run of several that have measured parts of it.

use std::io::Write;
use std::path::Path;

use super::{EXPERIMENT, Store};
use crate::model::{RunInfo, Status};
use crate::run_writer::{Adopted, NewRun};
use crate::{StoreError, archive};

/// A run that was made of others.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The run: complete if nothing is missing.
    pub run: RunInfo,
    /// Repetitions that each part has brought.
    pub parts: Vec<Adopted>,
    /// Repetitions of points that no part has measured.
    pub missing: u64,
}

impl Store {
    /// Makes a run of what several runs of one experiment have measured, each in its store: each repetition once, from the first
    /// that has it. The parts stay as they are.
    ///
    /// # Errors
    /// [`StoreError::Different`] if a part is not of the same experiment: then there is no new run.
    pub fn merge(&self, parts: &[(&Store, u64)]) -> Result<Merged, StoreError> {
        let Some((store, id)) = parts.first() else {
            return Err(StoreError::NoArchive { why: "nothing to merge".to_owned() });
        };
        let first = store.run(*id)?;
        store.fetch_all(&first.info)?;
        let writer = self.begin(NewRun { shard: None, ..NewRun::again(&first) })?;
        let made = writer.info()?.id;
        drop(first.points);
        let adopted = writer.adopt_named(&first.info).and_then(|()| {
            let each = parts.iter().map(|(store, id)| {
                let run = store.run(*id)?;
                if run.info.status == Status::Running {
                    return Err(StoreError::InUse { id: *id });
                }
                store.fetch_all(&run.info)?;
                writer.adopt(&run)
            });
            each.collect::<Result<Vec<Adopted>, StoreError>>()
        });
        match adopted {
            Ok(parts) => {
                let missing = writer.missing()?.len() as u64;
                let status = if missing == 0 { Status::Complete } else { Status::Partial };
                Ok(Merged { run: writer.finish(status)?, parts, missing })
            }
            Err(error) => {
                drop(writer);
                self.remove(made)?;
                Err(error)
            }
        }
    }

    /// Writes what was measured of a run as an archive for [`RunWriter::adopt_archive`](crate::RunWriter::adopt_archive),
    /// without the points of which nothing was measured, and without the experiment's text.
    ///
    /// # Errors
    /// As [`export`](Store::export).
    pub fn export_measured(&self, id: u64, to: impl Write) -> Result<(), StoreError> {
        let mut run = self.run(id)?;
        run.points.retain(|point| !point.repetitions.is_empty());
        run.text.clear();
        self.fetch_all(&run.info)?;
        archive::write(run, to, |inside| inside != Path::new(EXPERIMENT))
    }
}
