//! Puts the page's build, `web/dist`, and the documentation into the program: every file as it is and, where that is shorter,
//! compressed.

#[path = "build/docs.rs"]
mod docs;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
    let out = PathBuf::from(env::var("OUT_DIR").unwrap_or_default());
    let (dist, docs) = (root.join("web/dist"), root.join("docs"));
    for folder in [&dist, &docs] {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    if let Err(error) = embed(&dist, &docs, &out) {
        println!("cargo::error=the page and its documentation cannot be embedded: {error}");
    }
}

fn embed(dist: &Path, docs: &Path, out: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    // Without a build a page takes its place that says how to make one.
    if dist.is_dir() {
        for path in list(dist)? {
            files.push((name_of(&path, dist), fs::read(path)?));
        }
    }
    files.extend(docs::pages(docs)?);
    let mut table = String::from("&[\n");
    for (index, (name, bytes)) in files.iter().enumerate() {
        let plain = out.join(index.to_string());
        fs::write(&plain, bytes)?;
        let compressed = compressed(bytes)?;
        let mut brotli = "None".to_owned();
        if compressed.len() < bytes.len() * 9 / 10 {
            let file = out.join(format!("{index}.br"));
            fs::write(&file, compressed)?;
            brotli = format!("Some(include_bytes!({:?}))", file.display().to_string());
        }
        let plain = plain.display().to_string();
        let etag = fnv(bytes);
        let line = format!(
            "    Embedded {{ name: {name:?}, bytes: include_bytes!({plain:?}), brotli: {brotli}, etag: \"\\\"{etag:016x}\\\"\" }},"
        );
        writeln!(table, "{line}").map_err(io::Error::other)?;
    }
    table.push(']');
    fs::write(out.join("assets.rs"), table)
}

/// The path of a file within its folder.
fn name_of(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

/// All files of a folder and of those in it, in the order of their names.
fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(list(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn compressed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let parameters = brotli::enc::BrotliEncoderParams { quality: 9, ..Default::default() };
    let mut out = Vec::new();
    brotli::BrotliCompress(&mut &*bytes, &mut out, &parameters)?;
    Ok(out)
}

/// FNV-1a: tells one build of a file from another.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
