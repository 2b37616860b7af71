//! Puts the page's build, `web/dist`, into the program: every file as it is and, where that is shorter, compressed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() {
    let dist = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../web/dist");
    let out = PathBuf::from(env::var("OUT_DIR").unwrap_or_default());
    println!("cargo::rerun-if-changed={}", dist.display());
    if let Err(error) = embed(&dist, &out) {
        println!("cargo::error={}: {error}", dist.display());
    }
}

fn embed(dist: &Path, out: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    // Without a build a page takes its place that says how to make one.
    if dist.is_dir() {
        list(dist, &mut files)?;
    }
    files.sort();
    let mut table = String::from("&[\n");
    for (index, path) in files.iter().enumerate() {
        let bytes = fs::read(path)?;
        let name = path.strip_prefix(dist).unwrap_or(path).to_string_lossy().replace('\\', "/");
        let plain = path.canonicalize()?;
        let compressed = compressed(&bytes)?;
        let mut brotli = "None".to_owned();
        if compressed.len() < bytes.len() * 9 / 10 {
            let file = out.join(format!("{index}.br"));
            fs::write(&file, compressed)?;
            brotli = format!("Some(include_bytes!({:?}))", file.display().to_string());
        }
        let plain = plain.display().to_string();
        let etag = fnv(&bytes);
        let line = format!(
            "    Embedded {{ name: {name:?}, bytes: include_bytes!({plain:?}), brotli: {brotli}, etag: \"\\\"{etag:016x}\\\"\" }},"
        );
        writeln!(table, "{line}").map_err(io::Error::other)?;
    }
    table.push(']');
    fs::write(out.join("assets.rs"), table)
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn compressed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let parameters = brotli::enc::BrotliEncoderParams { quality: 11, ..Default::default() };
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
