//! The feature table tells the truth: every transport, in every mode that has a row, does what its row says, and does not
//! what its row denies.

use std::thread;

use trunkline_core::Seed;
use trunkline_experiment::{Experiment, TRANSPORTS};
use trunkline_flows::{FlowSpec, Made};
use trunkline_testkit::promises::{Group, Placed, Subject, untrue};
use trunkline_transport::features::table;
use trunkline_transport::kind::FeatureMode;

#[test]
fn every_row_is_as_the_transport_behaves() {
    // The kernel's own has no endpoints here.
    let (rows, kernels): (Vec<_>, Vec<_>) =
        table(TRANSPORTS).into_iter().partition(|row| row.features.name != "mptcp");
    assert_eq!(kernels.len(), 1);
    let untrue: Vec<_> = thread::scope(|scope| {
        let begin = |row: FeatureMode| {
            let thread = thread::Builder::new().name(format!("{} {}", row.features.name, row.option));
            (row, thread.spawn_scoped(scope, move || prove(&row)).expect("a thread can be had"))
        };
        let proofs: Vec<_> = rows.into_iter().map(begin).collect();
        let untrue =
            proofs.into_iter().map(|(row, proof)| (row, proof.join().unwrap_or(vec!["a proof failed"])));
        untrue.filter(|(_, untrue)| !untrue.is_empty()).collect()
    });
    assert!(untrue.is_empty(), "not as declared: {untrue:#?}");
}

/// The features for which the row is wrong.
fn prove(row: &FeatureMode) -> Vec<&'static str> {
    let [one, two] = ["\"b\"", "[\"b\", \"c\"]"].map(|sinks| move || spec(row, sinks));
    let group = |spec: FlowSpec| {
        let group = spec.group(0, Seed::new(1, 0)).expect("it is multicast");
        let receivers = group.far.into_iter().map(placed).collect();
        Group { address: group.address, sender: placed(group.near), receivers }
    };
    let pair = || match one().pair(0, Seed::new(1, 0)) {
        Ok(pair) => [placed(pair.near), placed(pair.far)],
        Err(_) => {
            let Group { sender, mut receivers, .. } = group(one());
            [sender, receivers.swap_remove(0)]
        }
    };
    let group = || group(two());
    assert_eq!(*pair()[0].1.features(), *row.features, "declared by the endpoint and by the table");
    let group: &dyn Fn() -> Group = &group;
    untrue(Subject { pair: &pair, group: row.features.multicast.then_some(group) })
}

fn placed(made: Made) -> Placed {
    (made.address, made.endpoint)
}

/// Of a flow over this transport to these sinks.
fn spec(FeatureMode { option: mode, features }: &FeatureMode, sinks: &str) -> FlowSpec {
    let comma = if mode.is_empty() { "" } else { ", " };
    let reflect = mode.contains("transaction");
    let text = format!(
        "name = \"test\"\nduration = \"1 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\nc = {{}}\n\
         [link.first]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n\
         [link.second]\nbetween = [\"b\", \"c\"]\nrate = \"1 Mbit/s\"\n\
         [flow.voice]\nfrom = \"a\"\nto = {sinks}\nreflect = {reflect}\n\
         transport = {{ kind = \"{}\"{comma}{mode} }}\nsource = {{ kind = \"voice\", samples = 80 }}\n",
        features.name
    );
    let experiment =
        Experiment::parse(&text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
    FlowSpec::of(&experiment.points.first().scenario, 0)
}
