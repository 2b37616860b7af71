//! The layers of docs/architecture.md, held against what Cargo resolves: a crate uses lower layers only, and nothing
//! that a pure crate uses can open a socket, start a thread pool or read a clock.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

/// Crates by layer. Siblings of one layer do not know each other.
const LAYERS: &[&[&str]] = &[
    &["core"],
    &["network", "transport", "audio", "metrics"],
    &["adapters", "traffic"],
    &["experiment"],
    &["flows"],
    &["editor", "peer", "io"],
    &["simulator", "live", "wire", "sound", "control"],
    &["calls", "agent", "store", "kernel"],
    &["runner"],
    &["report"],
    &["papers", "planner", "advisor", "learn"],
    &["server", "python"],
    &["trunkline"],
];

const PURE: &[&str] =
    &["core", "network", "transport", "traffic", "audio", "metrics", "adapters", "experiment", "flows"];

/// Descriptions of an API are for the crates above the pure ones.
const FOR_FACES: &[&str] = &["utoipa", "clap", "axum"];

/// Packages that do IO, threads or global randomness, which no pure crate may reach through normal dependencies.
const FORBIDDEN: &[&str] = &[
    "tokio",
    "mio",
    "socket2",
    "rayon",
    "crossbeam-channel",
    "rand",
    "getrandom",
    "nix",
    "rustix",
    "async-std",
    "fastrand",
];

/// What of that a foreign package brings along all the same: which package, what, and why it does no harm. That it shows
/// in no result is what the test "same seed, same packets" of its transport is for.
const TOLERATED: &[(&str, &[&str], &str)] = &[
    (
        "quinn-proto",
        &["rand", "getrandom"],
        "the generator is seeded; the system's numbers only fill connection IDs",
    ),
    ("ring", &["getrandom"], "keys of encryption are the system's: they show in the bytes of packets only"),
];

fn metadata() -> Metadata {
    MetadataCommand::new().exec().expect("cargo metadata runs in this workspace")
}

fn short(name: &str) -> &str {
    name.strip_prefix("trunkline-").unwrap_or(name)
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|crates| crates.contains(&short(name)))
}

#[test]
fn crates_use_lower_layers_only() {
    let metadata = metadata();
    let mut wrong = Vec::new();
    for package in metadata.workspace_packages() {
        let Some(own) = layer(&package.name) else { continue };
        for dependency in package.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal) {
            let Some(other) = layer(&dependency.name) else { continue };
            if other >= own {
                wrong
                    .push(format!("{} (layer {own}) uses {} (layer {other})", package.name, dependency.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_crate_has_a_layer() {
    let beside = ["testkit", "references", "xtask", "benches", "hot", "fuzz", "interop"];
    let metadata = metadata();
    for package in metadata.workspace_packages() {
        let name = short(&package.name);
        assert!(layer(name).is_some() || beside.contains(&name), "{name} has no layer in this test");
    }
}

#[test]
fn pure_crates_reach_no_io() {
    let metadata = metadata();
    let resolve = metadata.resolve.as_ref().expect("metadata resolves");
    let nodes: BTreeMap<&PackageId, _> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    for package in metadata.workspace_packages() {
        if !PURE.contains(&short(&package.name)) {
            continue;
        }
        let (mut seen, mut open) = (BTreeSet::new(), vec![&package.id]);
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            for dependency in &nodes[id].deps {
                let (user, used) = (metadata[id].name.as_str(), metadata[&dependency.pkg].name.as_str());
                if TOLERATED.iter().any(|(package, brings, _)| *package == user && brings.contains(&used)) {
                    continue;
                }
                if dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal) {
                    open.push(&dependency.pkg);
                }
            }
        }
        for id in seen {
            let name = metadata[id].name.as_str();
            let forbidden = FORBIDDEN.iter().chain(FOR_FACES).any(|other| *other == name);
            assert!(!forbidden, "{} is pure but reaches {name}", package.name);
        }
    }
}

#[test]
fn pure_crates_forbid_clocks_and_sockets_by_lint() {
    let metadata = metadata();
    let text = |name: &str| {
        let file = metadata.workspace_root.join("crates").join(name).join("clippy.toml");
        std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"))
    };
    let core = text("core");
    for rule in ["Instant::now", "SystemTime::now", "thread::sleep", "HashMap", "UdpSocket", "fs::File"] {
        assert!(core.contains(rule), "crates/core/clippy.toml does not forbid {rule}");
    }
    for name in PURE {
        assert_eq!(text(name), core, "crates/{name}/clippy.toml differs from crates/core/clippy.toml");
    }
}
