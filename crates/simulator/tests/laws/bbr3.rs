//! BBR version 3 over a FIFO: what draft-ietf-ccwg-bbr aims at.

use trunkline_metrics::RepetitionSummary;

use crate::support::{flow, parse, simulate};

const MEGABITS: f64 = 10.0;
/// In ms.
const ROUND_TRIP: f64 = 40.0;

/// Flows of 30 s over 10 Mbit/s and 40 ms, through a byte FIFO of a number of bandwidth-delay products, with random loss.
fn run(products: f64, loss: &str, flows: &[&str]) -> RepetitionSummary {
    let limit = (products * MEGABITS * 125.0 * ROUND_TRIP) as u64;
    let delay = ROUND_TRIP / 2.0;
    let mut text = format!(
        "name = \"test\"\nduration = \"30 s\"\ndrain = \"1 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"{MEGABITS} Mbit/s\"\ndelay = \"{delay} ms\"\n\
         queue = {{ kind = \"fifo\", limit = \"{limit} B\" }}\nforward.loss = \"{loss}\"\n"
    );
    for (number, name) in flows.iter().enumerate() {
        text += &format!(
            "[flow.bulk-{number}]\nfrom = \"a\"\nto = \"b\"\n\
             transport = {{ kind = \"tcp\", congestion-control = \"{name}\" }}\n\
             source = {{ kind = \"bulk\", message = \"8 KiB\" }}\n"
        );
    }
    simulate(&parse(&text))
}

/// Goodput of a flow as a share of what the line carries of payload.
fn share(summary: &RepetitionSummary, number: usize) -> f64 {
    let rate = flow(summary, &format!("bulk-{number}")).throughput.user.bits_per_second() as f64;
    rate / (MEGABITS * 1e6 * 1448.0 / 1500.0)
}

/// Whole segments of a bandwidth-delay product.
const PRODUCT: u32 = 33;

/// Section "ProbeRTT Design Rationale": 2 % of the throughput are given for a queue that is seldom there. One product waits at
/// most while the rate is looked for.
#[test]
fn a_deep_fifo_keeps_no_queue() {
    let summary = run(4.0, "0 %", &["bbr3"]);
    let link = &summary.links[0];
    let [mean, p50] = [link.sojourn_mean, link.sojourn_p50.expect("packets left the queue")];
    // The whole run, startup and the first probe included.
    assert!(share(&summary, 0) > 0.95, "{}", share(&summary, 0));
    assert!(mean.as_secs_f64() * 1e3 < ROUND_TRIP / 4.0, "a quarter of a product on average: {mean:?}");
    assert!(p50.as_secs_f64() * 1e3 < ROUND_TRIP / 10.0, "{p50:?}");
    assert_eq!(link.dropped.len(), 0, "{:?}", link.dropped);
}

/// Section "Design Considerations for Choosing Constant Parameters": between two probes, which are as many round trips apart as a
/// product has segments, the rate falls with every round trip by the share that is lost.
#[test]
fn random_loss_lowers_the_rate_between_probes_as_the_draft_has_it() {
    for (loss, name) in [(0.01_f64, "1 %"), (0.03, "3 %")] {
        let rates = core::iter::successors(Some(1.0), |rate| Some(rate * (1.0 - loss)));
        let model = rates.take(PRODUCT as usize).sum::<f64>() / f64::from(PRODUCT);
        let bbr3 = share(&run(1.0, name, &["bbr3"]), 0);
        assert!((0.85..1.15).contains(&(bbr3 / model)), "{name}: {bbr3}, the model has {model}");
    }
}

/// Section "Bandwidth Probing and Coexistence with Reno/CUBIC".
#[test]
fn cubic_and_bbr3_live_beside_each_other_in_two_products() {
    let summary = run(2.0, "0 %", &["bbr3", "cubic"]);
    let [bbr3, cubic] = [0, 1].map(|number| share(&summary, number));
    assert!(bbr3 + cubic > 0.97, "{bbr3} and {cubic}");
    assert!((0.2..0.8).contains(&(bbr3 / (bbr3 + cubic))), "{bbr3} and {cubic}");
}

/// `LossThresh`: a probe ends at 2 %; version 1 loses 3 % here.
#[test]
fn a_shallow_fifo_drops_less_than_the_loss_threshold() {
    let losses = |name| {
        let summary = run(0.25, "0 %", &[name]);
        let link = &summary.links[0];
        assert!(share(&summary, 0) > 0.95, "{name}: {}", share(&summary, 0));
        link.dropped.values().sum::<u64>() as f64 / link.offered as f64
    };
    let [bbr3, bbr] = ["bbr3", "bbr"].map(losses);
    assert!(bbr3 < 0.02 && bbr3 < bbr, "{bbr3} and {bbr}");
}
