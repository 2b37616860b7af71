//! The layers of docs/architecture.md, held against what Cargo resolves: a crate uses lower layers only, and nothing
//! that a pure crate uses can open a socket, start a thread pool or read a clock.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

/// Crates by layer. Siblings of one layer do not know each other, except those in `SIBLINGS`.
const LAYERS: &[&[&str]] = &[
    &["core"],
    &["network", "transport", "traffic", "audio", "metrics"],
    &["adapters", "experiment"],
    &["flows"],
    &["peer"],
    &["simulator", "io", "live", "wire", "sound", "session", "control", "fleet"],
    &["store", "runner"],
    &["report", "papers", "planner", "advisor", "agent"],
    &["server"],
    &["trunkline"],
];

/// Allowed between siblings, with the reason.
const SIBLINGS: &[(&str, &str, &str)] = &[
    ("traffic", "audio", "voice sources encode speech"),
    ("experiment", "adapters", "an experiment names transports that adapters declare"),
    ("live", "io", "live is what io was cut out of, beside the wire"),
    ("session", "io", "its clock, its sockets and its waiting are io's"),
    ("session", "sound", "its programs join devices with lines"),
    ("session", "live", "what carries an engine through a socket"),
    ("wire", "io", "its devices, its clock and its waiting are io's"),
    ("sound", "io", "clocks, pacing and real-time scheduling are io's"),
    ("fleet", "io", "its clock is io's"),
    ("fleet", "control", "what it says to agents"),
    ("fleet", "live", "what agents measure is what live measures"),
    ("runner", "store", "the runner streams records into the store"),
    ("planner", "report", "figures of a plan are charts of the report, its page looks like one"),
    ("advisor", "report", "figures of advice are charts of the report, its page looks like one"),
    ("papers", "report", "figures of a study are charts of the report, its page looks like one"),
];

const PURE: &[&str] =
    &["core", "network", "transport", "traffic", "audio", "metrics", "adapters", "experiment", "flows"];

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
            let allowed = SIBLINGS
                .iter()
                .any(|(user, used, _)| (*user, *used) == (short(&package.name), short(&dependency.name)));
            if other >= own && !allowed {
                wrong
                    .push(format!("{} (layer {own}) uses {} (layer {other})", package.name, dependency.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_crate_has_a_layer() {
    let beside = ["testkit", "references", "xtask", "benches", "fuzz", "interop"];
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
            assert!(!FORBIDDEN.contains(&name), "{} is pure but reaches {name}", package.name);
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
