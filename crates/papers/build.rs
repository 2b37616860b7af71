//! Puts every folder of `papers/` into the program: the study, its experiment files and its published tables.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() {
    let papers = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../papers");
    let out = PathBuf::from(env::var("OUT_DIR").unwrap_or_default());
    println!("cargo::rerun-if-changed={}", papers.display());
    if let Err(error) = embed(&papers, &out) {
        println!("cargo::error={}: {error}", papers.display());
    }
}

fn embed(papers: &Path, out: &Path) -> io::Result<()> {
    let papers = papers.canonicalize()?;
    let mut files = Vec::new();
    list(&papers, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for file in files {
        let path = file.strip_prefix(&papers).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        let line = format!(
            "    Embedded {{ path: {path:?}, text: include_str!({:?}) }},",
            file.display().to_string()
        );
        writeln!(table, "{line}").map_err(io::Error::other)?;
    }
    table.push(']');
    fs::write(out.join("files.rs"), table)
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "toml" || ending == "csv") {
            files.push(path);
        }
    }
    Ok(())
}
