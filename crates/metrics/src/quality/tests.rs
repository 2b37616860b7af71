use proptest::prelude::*;
use trunkline_core::{Duration, Ratio};

use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn percent(percent: f64) -> Ratio {
    Ratio::new(percent / 100.0).unwrap()
}

fn named(name: &str) -> &'static Codec {
    CODECS.iter().find(|codec| codec.name == name).unwrap()
}

#[track_caller]
fn assert_near(value: f64, published: f64, tolerance: f64) {
    assert!((value - published).abs() <= tolerance, "{value} is not {published} ± {tolerance}");
}

#[test]
fn the_defaults_have_the_rating_of_the_recommendation() {
    // G.107 (06/2015) clause 7.7: R = 93.2; MOS 4.41 follows by Annex B.
    let r = EModel::default().r();
    assert_near(r, 93.2, 0.05);
    assert_near(mos(r), 4.41, 0.005);
    // To more digits: the program `manucorporat/e-model`, which others wrote from the same edition, prints 93.206208.
    assert_near(r, 93.206_208, 1e-6);
}

#[test]
fn opinions_are_those_of_annex_b() {
    // G.107 Table B.1: lower limits of R, MOS-CQE, GoB in % and PoW in %. It prints 4.03 for 4.024, and "~0" of PoW.
    for (r, score, gob, pow) in [
        (90.0, 4.34, 97.0, 0.0),
        (80.0, 4.03, 89.0, 0.0),
        (70.0, 3.60, 73.0, 6.0),
        (60.0, 3.10, 50.0, 17.0),
        (50.0, 2.58, 27.0, 38.0),
    ] {
        assert_near(mos(r), score, 0.007);
        assert_near(good_or_better(r).value() * 100.0, gob, 0.5);
        assert_near(poor_or_worse(r).value() * 100.0, pow, 1.5);
    }
}

#[test]
fn the_rating_falls_with_delay_as_published() {
    // Cole and Rosenbluth, "Voice over IP performance monitoring", ACM CCR 31(2), 2001: with G.107's defaults and
    // T = Ta = Tr / 2 the delay impairment is 0.024 d + 0.11 (d - 177.3) H(d - 177.3), a fit for d below 400 ms.
    for d in [25, 50, 75, 100, 125, 150, 177, 200, 225, 250, 275, 300] {
        let ms = d as f64;
        let published = 0.024 * ms + 0.11 * (ms - 177.3).max(0.0);
        let r = EModel::call(&Codec::G711, MS(d), Ratio::ZERO, 1.0).r();
        assert_near(EModel::default().r() - r, published, 1.0);
    }
}

#[test]
fn absolute_delay_uses_up_what_a_codec_leaves() {
    // "Controlling Voice Quality", Telektronikk, Internet Traffic Engineering, table 3: the delay at which R is 70 with
    // perfect echo control. The codecs' Ie (G.113 Appendix I) and the delay impairment then are 24 together.
    for (ie, bound) in [
        (0.0, 400),  // G.711
        (2.0, 375),  // G.726, 40 kbit/s
        (5.0, 342),  // GSM EFR
        (7.0, 322),  // G.728, 16 kbit/s; G.726, 32 kbit/s
        (10.0, 294), // G.729
        (15.0, 251), // G.723.1, 6.3 kbit/s
        (19.0, 219), // G.723.1, 5.3 kbit/s
        (20.0, 210), // G.728, 12.8 kbit/s
        (23.0, 177), // GSM HR
    ] {
        let factors = EModel { ta: MS(bound), ie, ..EModel::default() }.factors();
        assert_near(factors.idd + factors.ie_eff, 24.1, 0.1);
    }
}

#[test]
fn a_call_that_is_less_interactive_bears_more_delay() {
    // G.107 clause 7.4, Table 1: mT and sT of low and very low delay sensitivity.
    let r = |mt, st| EModel { ta: MS(400), mt: MS(mt), st, ..EModel::default() }.r();
    assert!(r(100, 1.0) < r(120, 0.55) && r(120, 0.55) < r(150, 0.4));
}

#[test]
fn the_impairment_of_codecs_under_loss_is_that_of_g113() {
    // G.113 Appendix I of 2002, for random loss, as printed in table B-1 of ICAO's WG-I working paper 306: at 2 %.
    for (codec, loss, published) in [("g711-plc", 2.0, 7.0), ("g729a", 2.0, 19.0), ("g723.1", 2.0, 24.0)] {
        let model = EModel::call(named(codec), Duration::ZERO, percent(loss), 1.0);
        assert_near(model.factors().ie_eff, published, 0.5);
    }
}

#[test]
fn codecs_suffer_from_loss_in_the_published_order() {
    // "Controlling Voice Quality", Telektronikk, Internet Traffic Engineering, figure 5 and its text: at low loss codecs that
    // conceal lose about 4 points of R for each percent, G.711 without concealment 25; G.711 with it suffers a little less
    // than G.729, that a bit less than G.723.1, and GSM EFR more than these.
    let points = |name: &str| {
        let ie = |loss| EModel::call(named(name), Duration::ZERO, percent(loss), 1.0).factors().ie_eff;
        (ie(0.1) - ie(0.0)) / 0.1
    };
    let in_order = ["g711-plc", "g729a", "g723.1", "gsm-efr", "g711"].map(points);
    assert!(in_order.is_sorted(), "{in_order:?}");
    assert_near(in_order[0], 4.0, 0.5);
    assert_near(in_order[1], 4.0, 0.5);
    // The editions since 2002 have a curve there in place of the table, and it begins at 22.
    assert_near(in_order[4], 25.0, 4.0);
}

#[test]
fn the_definitions_have_the_factors_of_all_codecs() {
    let definitions = include_str!("../../../../docs/metrics.md");
    for Codec { name, ie, bpl, doc, .. } in CODECS {
        let row = definitions.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).expect(name);
        assert!(row.contains(&format!("| {ie} | {bpl} |")), "{row}");
        assert!(doc.contains(&format!("Ie {ie}, Bpl {bpl}")), "{doc}");
    }
}

#[test]
fn loss_in_bursts_is_worse_than_random_loss() {
    let r = |burst_r| EModel::call(named("g729a"), MS(100), percent(2.0), burst_r).r();
    assert!(r(2.0) < r(1.0));
    // By hand: 11 + 84 * 2 / (2 / 2 + 19).
    let bursty = EModel::call(named("g729a"), MS(100), percent(2.0), 2.0).factors();
    assert_near(bursty.ie_eff, 19.4, 1e-9);
    assert_near(r(0.5), r(1.0), 0.0);
}

#[test]
fn echo_counts_by_its_loss() {
    let r = |telr, stmr| EModel { telr, stmr, t: MS(50), ..EModel::default() }.r();
    assert!(r(45.0, 15.0) < r(55.0, 15.0) && r(55.0, 15.0) < r(65.0, 15.0));
    // Without and with too much sidetone other equations hold.
    assert!(r(65.0, 21.0) < r(65.0, 15.0) && r(65.0, 8.0) < r(65.0, 15.0));
    let listener = |wepl| EModel { wepl, tr: MS(200), ..EModel::default() }.r();
    assert!(listener(20.0) < listener(40.0));
}

#[test]
fn the_burst_ratio_is_the_recommendations() {
    // One message in ten, ten in a row of a hundred: random loss would have bursts of 1 / 0.9.
    let losses = Losses { messages: 100, unheard: 10, bursts: 1 };
    assert_near(losses.burst_r(), 9.0, 1e-9);
    assert_near(losses.ppl().value(), 0.1, 1e-12);
    assert_near(Losses::default().burst_r(), 1.0, 0.0);
}

#[test]
fn bursts_are_found_whatever_overtakes() {
    let mut losses = Losses::default();
    let mut channel = Unheard::default();
    (0..12).for_each(|sequence| channel.due(sequence));
    // 0, 3 and 4, and from 9 on all are missing.
    [2, 1, 6, 5, 8, 7].into_iter().for_each(|sequence| channel.heard(sequence, &mut losses));
    channel.finish(&mut losses);
    assert_eq!(losses, Losses { messages: 12, unheard: 6, bursts: 3 });
}

#[test]
fn what_is_overtaken_by_too_many_is_missing() {
    let mut losses = Losses::default();
    let mut channel = Unheard::default();
    channel.due(0);
    (1..=128).for_each(|sequence| channel.heard(sequence, &mut losses));
    channel.heard(0, &mut losses);
    channel.finish(&mut losses);
    assert_eq!(losses, Losses { messages: 129, unheard: 1, bursts: 1 });
}

#[test]
fn a_flow_is_judged_by_what_was_heard() {
    let listening = Listening { codec: *named("g729a"), packet: MS(20) };
    let heard = Losses { messages: 100, unheard: 2, bursts: 2 };
    let quality = listening.judge(Some(MS(75)), &heard).unwrap();
    assert_eq!(quality.mouth_to_ear, Some(MS(100)));
    let r = EModel::call(named("g729a"), MS(100), percent(2.0), 1.0).r();
    assert_near(quality.r, r, 1e-9);
    assert_near(quality.mos, mos(r), 1e-9);
    let nothing = Losses { messages: 100, unheard: 100, bursts: 1 };
    let quality = listening.judge(None, &nothing).unwrap();
    assert_eq!((quality.r, quality.mos, quality.mouth_to_ear), (0.0, 1.0, None));
    assert_eq!(listening.judge(None, &Losses::default()), None);
}

#[test]
fn a_late_listener_misses_what_it_was_sent_only() {
    let mut losses = Losses::default();
    let mut channel = Unheard::default();
    // Numbers wrap meanwhile, and the third message of four is lost.
    for sequence in [u32::MAX - 1, u32::MAX, 0, 1] {
        channel.due(sequence);
        if sequence != 0 {
            channel.heard(sequence, &mut losses);
        }
    }
    channel.finish(&mut losses);
    assert_eq!(losses, Losses { messages: 4, unheard: 1, bursts: 1 });
}

fn codecs() -> impl Strategy<Value = &'static Codec> {
    (0..CODECS.len()).prop_map(|index| &CODECS[index])
}

proptest! {
    #[test]
    fn r_falls_with_delay(codec in codecs(), loss in 0.0..20.0, delay in 1u64..2_000, more in 1u64..1_000) {
        let r = |delay| EModel::call(codec, MS(delay), percent(loss), 1.0).r();
        prop_assert!(r(delay + more) < r(delay));
    }

    #[test]
    fn r_falls_with_loss_and_its_bursts(
        codec in codecs(), delay in 0u64..1_000, loss in 0.0..50.0, more in 0.001..50.0, burst_r in 1.0..8.0,
    ) {
        let r = |loss, burst_r| EModel::call(codec, MS(delay), percent(loss), burst_r).r();
        prop_assert!(r(loss + more, burst_r) < r(loss, burst_r));
        prop_assert!(r(loss, burst_r + more) <= r(loss, burst_r));
    }

    #[test]
    fn a_score_is_from_1_to_4_5_and_grows_with_r(r in -50.0..150.0, more in 0.001..50.0) {
        prop_assert!((1.0..=4.5).contains(&mos(r)));
        prop_assert!(mos(r + more) >= mos(r));
    }

    #[test]
    fn r_is_found_again_from_its_score(r in 6.52..99.9) {
        prop_assert!((r_of_mos(mos(r)).unwrap() - r).abs() < 1e-9);
    }

    #[test]
    fn bursts_are_those_of_the_sequence_whatever_the_order(
        messages in prop::collection::vec((any::<bool>(), 0u32..100), 1..400),
    ) {
        let mut losses = Losses::default();
        let mut channel = Unheard::default();
        // Nothing is overtaken by 100 others or more.
        let mut arrivals: Vec<u32> = (0..messages.len() as u32).collect();
        arrivals.sort_by_key(|&sequence| sequence + messages[sequence as usize].1);
        let heard: Vec<bool> = messages.into_iter().map(|(is_heard, _)| is_heard).collect();
        channel.due(0);
        for sequence in arrivals {
            channel.due(sequence);
            if heard[sequence as usize] {
                channel.heard(sequence, &mut losses);
            }
        }
        channel.finish(&mut losses);
        let runs = heard.split(|is_heard| *is_heard).filter(|run| !run.is_empty());
        prop_assert_eq!(losses.messages, heard.len() as u64);
        prop_assert_eq!(losses.unheard, heard.iter().filter(|is_heard| !**is_heard).count() as u64);
        prop_assert_eq!(losses.bursts, runs.count() as u64);
    }
}
