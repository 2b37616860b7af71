//! Replays every corpus: the seeds, and every input that once found something.

use std::path::Path;

#[test]
fn every_corpus_replays() {
    for (name, body) in trunkline_fuzz::TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        let inputs = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let mut replayed = 0;
        for input in inputs {
            let path = input.expect("the folder can be listed").path();
            body(&std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())));
            replayed += 1;
        }
        assert!(replayed > 0, "{} is empty", folder.display());
    }
}
