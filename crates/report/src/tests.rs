use std::fs;
use crate::fixtures;

/// Not a check: writes every made-up report to a folder, to be looked at. `cargo test -p trunkline-report -- --ignored`.
#[test]
#[ignore = "writes files for people to look at"]
fn sample_reports_are_written() {
    let directory = std::env::temp_dir().join("trunkline-report-samples");
    fs::create_dir_all(&directory).unwrap();
    for (name, run, counterpart) in fixtures::all() {
        fs::write(directory.join(format!("{name}.html")), crate::html(&run, counterpart.as_ref())).unwrap();
        crate::png(&run, counterpart.as_ref(), &directory.join(name)).unwrap();
    }
    println!("{}", directory.display());
}
