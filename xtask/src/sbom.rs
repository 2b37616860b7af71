//! A list of everything that the program is built of, as CycloneDX describes such lists.
//!
//! It follows the dependencies that Cargo resolves for one target and set of features, from the program on: normal ones and
//! those of build scripts, but not those of tests. The same sources give the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Map, Value, json};

/// The program and where the list goes.
#[derive(clap::Args)]
pub(crate) struct Sbom {
    /// The target that the program is built for
    #[arg(long, default_value = "x86_64-unknown-linux-gnu")]
    target: String,
    /// Features of the program, as its package has them
    #[arg(long, default_value = "full")]
    features: String,
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(sbom: &Sbom) -> Result<(), String> {
    let features = format!("trunkline/{}", sbom.features.replace(',', ",trunkline/"));
    let mut command = crate::test::cargo();
    command.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &sbom.target]);
    command.args(["--features", &features]).current_dir(crate::root()).stderr(std::process::Stdio::inherit());
    let output = command.output().map_err(|e| format!("cargo does not start: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed ({})", output.status));
    }
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
    let tree = tree(sbom)?;
    let lock = crate::root().join("Cargo.lock");
    let lock = std::fs::read_to_string(&lock).map_err(|e| format!("{}: {e}", lock.display()))?;
    let list = describe(&metadata, &tree, &checksums(&lock))?;
    let text = serde_json::to_string_pretty(&list).map_err(|e| e.to_string())?;
    match &sbom.out {
        Some(path) => std::fs::write(path, text + "\n").map_err(|e| format!("{}: {e}", path.display())),
        None => {
            anstream::println!("{text}");
            Ok(())
        }
    }
}

/// The name and version of every crate of the program. Cargo's metadata has features that only tests of other crates need.
fn tree(sbom: &Sbom) -> Result<BTreeSet<(String, String)>, String> {
    let mut command = crate::test::cargo();
    command.args([
        "tree",
        "--package",
        "trunkline",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--locked",
    ]);
    command.args(["--features", &sbom.features, "--target", &sbom.target]);
    command.current_dir(crate::root()).stderr(std::process::Stdio::inherit());
    let output = command.output().map_err(|e| format!("cargo does not start: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree failed ({})", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let words = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
    };
    Ok(text.lines().filter_map(words).collect())
}

/// The SHA-256 of each crate, by name and version, from the text of Cargo.lock.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut all = BTreeMap::new();
    for package in lock.split("[[package]]") {
        let value = |key: &str| {
            let start = format!("{key} = \"");
            package.lines().find_map(|line| Some(line.strip_prefix(&start)?.trim_end_matches('"').to_owned()))
        };
        if let (Some(name), Some(version), Some(sum)) = (value("name"), value("version"), value("checksum")) {
            all.insert((name, version), sum);
        }
    }
    all
}

/// The list, in the order of names and versions.
fn describe(
    metadata: &Value,
    tree: &BTreeSet<(String, String)>,
    checksums: &BTreeMap<(String, String), String>,
) -> Result<Value, String> {
    let packages = by_id(&metadata["packages"]);
    let nodes = by_id(&metadata["resolve"]["nodes"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let program = packages.values().find(|package| package["name"] == "trunkline");
    let program = text(&program.ok_or("cargo metadata names no package `trunkline`")?["id"]);

    let mut wanted = vec![program.clone()];
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    while let Some(id) = wanted.pop() {
        if edges.contains_key(&id) {
            continue;
        }
        let node = nodes.get(id.as_str()).ok_or_else(|| format!("cargo metadata does not resolve `{id}`"))?;
        let needed = node["deps"].as_array().into_iter().flatten().filter(|dependency| is_built(dependency));
        let is_of_tree = |id: &String| {
            let package = packages.get(id.as_str());
            package.is_some_and(|package| tree.contains(&(text(&package["name"]), text(&package["version"]))))
        };
        let needed: BTreeSet<String> =
            needed.map(|dependency| text(&dependency["pkg"])).filter(is_of_tree).collect();
        wanted.extend(needed.iter().cloned());
        edges.insert(id, needed);
    }

    let reference = |id: &str| {
        let package = &packages[id];
        format!("pkg:cargo/{}@{}", text(&package["name"]), text(&package["version"]))
    };
    let component = |id: &str| {
        let package = &packages[id];
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        let mut component = Map::new();
        let kind = if id == program { "application" } else { "library" };
        component.insert("type".into(), kind.into());
        component.insert("bom-ref".into(), reference(id).into());
        component.insert("name".into(), name.clone().into());
        component.insert("version".into(), version.clone().into());
        component.insert("purl".into(), reference(id).into());
        if let Some(licence) = package["license"].as_str() {
            // Older crates write "MIT/Apache-2.0".
            component.insert("licenses".into(), json!([{ "expression": licence.replace('/', " OR ") }]));
        }
        if let Some(sum) = checksums.get(&(name, version)) {
            component.insert("hashes".into(), json!([{ "alg": "SHA-256", "content": sum }]));
        }
        Value::from(component)
    };
    let mut others: Vec<&String> = edges.keys().filter(|id| **id != program).collect();
    others.sort_by_key(|id| reference(id));
    let mut dependencies: Vec<(String, BTreeSet<String>)> = edges
        .iter()
        .map(|(id, needed)| (reference(id), needed.iter().map(|id| reference(id)).collect()))
        .collect();
    dependencies.sort();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": component(&program) },
        "components": others.into_iter().map(|id| component(id)).collect::<Vec<_>>(),
        "dependencies": dependencies
            .into_iter()
            .map(|(of, needed)| json!({ "ref": of, "dependsOn": needed }))
            .collect::<Vec<_>>(),
    }))
}

/// The objects of a list, by their `id`.
fn by_id(list: &Value) -> BTreeMap<&str, &Value> {
    list.as_array().into_iter().flatten().filter_map(|entry| Some((entry["id"].as_str()?, entry))).collect()
}

/// True for a dependency of the program or of a build script, and not only of tests.
fn is_built(dependency: &Value) -> bool {
    dependency["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"] != "dev")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_what_the_program_is_built_of_and_nothing_of_tests() {
        let package = |name: &str, licence: &str| json!({ "id": format!("{name} 1.0.0"), "name": name, "version": "1.0.0", "license": licence });
        let needs = |name: &str, kind: Value| json!({ "pkg": format!("{name} 1.0.0"), "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [package("trunkline", "MIT"), package("a", "MIT/Apache-2.0"), package("b", "ISC"), package("t", "MIT"), package("o", "MIT"),],
            "resolve": { "nodes": [
                { "id": "trunkline 1.0.0", "deps": [needs("a", Value::Null), needs("o", Value::Null), needs("t", "dev".into())] },
                { "id": "a 1.0.0", "deps": [needs("b", "build".into())] },
                { "id": "b 1.0.0", "deps": [] },
                { "id": "o 1.0.0", "deps": [] },
                { "id": "t 1.0.0", "deps": [] },
            ] },
        });
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"0a0b\"\n\n[[package]]\nname = \"trunkline\"\nversion = \"1.0.0\"\n";
        let tree = ["trunkline", "a", "b", "t"].map(|name| (name.to_owned(), "1.0.0".to_owned())).into();
        let list = describe(&metadata, &tree, &checksums(lock)).unwrap();
        let names: Vec<&str> =
            list["components"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(list["metadata"]["component"]["purl"], "pkg:cargo/trunkline@1.0.0");
        assert_eq!(list["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(list["components"][0]["hashes"][0]["content"], "0a0b");
        assert_eq!(
            list["dependencies"][0],
            json!({ "ref": "pkg:cargo/a@1.0.0", "dependsOn": ["pkg:cargo/b@1.0.0"] })
        );
    }
}
