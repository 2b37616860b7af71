//! What must hold of the reader for any bytes: run by the fuzzer, by its corpus in the tests, and by proptest.

use trunkline_core::Seed;

use crate::{Experiment, Files, FilesError};

/// A file of every name: what ends in `.wav` is not one, what ends in `.toml` is a profile of hosts, all else is a trace of
/// either kind.
struct Anything;

impl Files for Anything {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        match path {
            _ if path.len() > 100 => Err(FilesError::new("does not exist")),
            _ if path.ends_with(".toml") => Ok(b"send-message = \"1 ms\"\n".to_vec()),
            _ => Ok(b"10\n20\n".to_vec()),
        }
    }
}

/// Reads arbitrary bytes as an experiment file and panics where the reader breaks its word:
/// 1. it never panics, and refuses with at least one problem, each with a place within the text;
/// 2. what it accepts has every point of the product, and links and sources can be built of it;
/// 3. it gives the same answer twice.
#[doc(hidden)]
pub fn fuzz_parse(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    const FILE: &str = "fuzz.toml";
    let read = Experiment::parse(&text, FILE, &Anything);
    let again = Experiment::parse(&text, FILE, &Anything);
    match read {
        Err(problems) => {
            assert!(problems.iter().next().is_some(), "refused without a reason");
            let lines = text.matches('\n').count() + 1;
            for problem in &problems {
                let lines = if &*problem.file == FILE { lines } else { usize::MAX };
                assert!((1..=lines).contains(&problem.line) && problem.column >= 1, "{problem}");
                assert!(!problem.message.is_empty() && !problem.message.contains('\n'), "{problem:?}");
            }
            assert_eq!(again.err(), Some(problems), "another answer the second time");
        }
        Ok(experiment) => {
            let product: usize = experiment.axes.iter().map(|axis| axis.values.len()).product();
            assert_eq!(experiment.points.len(), product);
            let same = again.expect("accepted once").points.len() == product;
            assert!(same, "another answer the second time");
            let scenario = experiment.points.at(product - 1).scenario;
            assert_eq!(scenario.build_links(Seed::new(1, 0)).len(), scenario.links.len());
            // Channels cost memory, and members are alike.
            for flow in (0..scenario.flows.len()).filter(|flow| scenario.flows[*flow].meta.channels < 100) {
                assert!(
                    scenario.build_source(flow, 0, Seed::new(1, 0)).is_ok(),
                    "a source that cannot be built"
                );
            }
        }
    }
}
