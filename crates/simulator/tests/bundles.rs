//! A bundle beside the figures of its flows.

mod support;

use support::{experiment, flow, simulate};
use trunkline_core::Rate;

#[test]
fn connections_add_up_to_their_flows_and_the_bundle_to_no_more_than_the_link() {
    let summary = simulate(&experiment(
        "queue = { kind = \"fifo\", limit = \"8 KiB\" }",
        "[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = { kind = \"voice\", samples = 80 }\ncount = 5\n\
         [flow.bulk]\nfrom = \"a\"\nto = \"b\"\ntransport = \"tcp\"\nsource = { kind = \"bulk\", message = \"8 KiB\" }\n\
         [flow.beside]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = { kind = \"voice\", samples = 80 }\n\
         [bundle.trunk]\nflows = [\"bulk\", \"voice\"]\n",
    ));
    let [bundle] = summary.bundles.as_slice() else { panic!("one bundle") };
    assert_eq!((bundle.bundle.as_str(), bundle.members), ("trunk", 6));
    let [tcp, udp] = bundle.classes.as_slice() else { panic!("two classes") };

    let voice = flow(&summary, "voice");
    let throughput = udp.throughput.unwrap();
    assert!(throughput.min <= throughput.mean && throughput.mean <= throughput.max);
    // Each over its own active time, which begins and ends with its own phase.
    let together = 5.0 * throughput.mean.bits_per_second() as f64;
    let of_flow = voice.throughput.user.bits_per_second() as f64;
    assert!((together / of_flow - 1.0).abs() < 0.005, "{together}, {of_flow}");
    // The same here: a connection whose last message was lost was active for 10 ms of 10 s less.
    assert!(
        (udp.fairness.unwrap() - voice.fairness.unwrap()).abs() < 1e-4,
        "{:?} {:?}",
        udp.fairness,
        voice.fairness
    );
    // Every connection has the same number of messages due, and some of each were lost.
    let loss = udp.loss.unwrap();
    assert!(loss.min.value() > 0.0 && (loss.mean.value() - voice.loss.value()).abs() < 1e-12);
    let latency = udp.latency_p999.unwrap();
    let longest = voice.latency.unwrap().max;
    assert!(udp.latency_mean.unwrap().max < latency.min && latency.max <= longest);

    let bulk = flow(&summary, "bulk");
    assert_eq!(tcp.throughput.unwrap().mean, bulk.throughput.user);
    assert_eq!(tcp.latency_p999.unwrap().mean, bulk.latency.unwrap().p999);
    let network = bundle.network.unwrap();
    assert!(bundle.user < network && network < Rate::from_bits_per_second(1_000_000), "{network}");
}
