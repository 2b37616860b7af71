//! What else should be known of the network.

use trunkline_audio::pipeline::Protection;
use trunkline_core::{Duration, Ratio};

use crate::choose::{Choice, Use};
use crate::configuration::{Configuration, Load, Marking};
use crate::findings::Findings;
use crate::probe::Probed;
use crate::trace::RoundTrips;
use crate::units::{ms, percent, rate};

/// A queue that grows by more than this under load is felt.
const FELT: Duration = Duration::from_millis(20);

/// From this many round trips on, their 99th percentile is not the slowest of them or the next.
const MANY: u64 = 200;

/// Up to some 25 ms from mouth to ear an ensemble keeps its time (Rottondi, Chafe, Allocchio and Sarti, "An overview on
/// networked music performance technologies", IEEE Access 4, 2016, section II).
const ENSEMBLE: Duration = Duration::from_millis(25);

/// So much playout only to even the network out is worth a word.
const JITTER: Duration = Duration::from_millis(3);

/// A gap that is heard as one however it is concealed.
const GAP: Duration = Duration::from_millis(30);

/// One sentence or two for each.
pub(crate) fn warnings(probed: &Probed, choices: &[Choice]) -> Vec<String> {
    let findings = &probed.findings;
    let mut all = Vec::new();
    if probed.is_partial {
        all.push(format!(
            "Stopped after {} of {}: the advice is based on the measurements so far.",
            probed.took, probed.question.budget
        ));
    }
    all.extend(gaps(findings));
    all.extend(bufferbloat(findings));
    all.extend(marking(findings));
    let mut told = Vec::new();
    for choice in choices {
        for warning in of_choice(choice, findings) {
            if !told.contains(&warning) {
                told.push(warning);
            }
        }
    }
    all.extend(told);
    all
}

/// Transports that could not be measured as often as planned; what could not be at all is told elsewhere.
fn gaps(findings: &Findings) -> Option<String> {
    let never = |transport| findings.never_measured().any(|(other, _)| other == transport);
    let gaps: Vec<_> = findings.failed().filter(|(transport, _)| !never(*transport)).collect();
    let (_, why) = gaps.first()?;
    let names: Vec<&str> = gaps.iter().map(|(transport, _)| transport.name()).collect();
    Some(format!("The measurement of {} is incomplete: {why}.", names.join(", ")))
}

/// Round trips of the same blocks, idle and loaded, over the simplest transport that was measured under both.
fn under_both(findings: &Findings) -> Option<(Configuration, RoundTrips, RoundTrips)> {
    let mut loaded = findings.configurations().filter(|one| {
        one.load == Load::Bulk
            && one.marking == Marking::Expedited
            && findings.round_trips(&one.under(Load::Idle)).is_some()
    });
    let one = loaded.next()?;
    Some((*one, findings.round_trips(&one.under(Load::Idle))?, findings.round_trips(one)?))
}

fn bufferbloat(findings: &Findings) -> Option<String> {
    let (configuration, idle, loaded) = under_both(findings)?;
    let are_many = |trips: &RoundTrips| trips.blocks - trips.lost >= MANY;
    let mut figures = vec![("median", idle.median, loaded.median)];
    if are_many(&idle) && are_many(&loaded) {
        figures.push(("99th percentile", idle.p99, loaded.p99));
    }
    figures.iter().any(|(_, idle, loaded)| *loaded > *idle + FELT).then(|| {
        let grown = figures.iter().filter(|(_, idle, loaded)| loaded > idle);
        let grown =
            grown.map(|(at, idle, loaded)| format!("from {} to {} at the {at}", ms(*idle), ms(*loaded)));
        format!(
            "Under bulk load, the round trip over {} grows {}: a queue on the path fills up (bufferbloat). \
            Enable queue management in the router (FQ-CoDel, CAKE), or avoid file transfers during sessions.",
            configuration.transport,
            grown.collect::<Vec<_>>().join(" and "),
        )
    })
}

fn marking(findings: &Findings) -> Option<String> {
    let (_, idle, _) = under_both(findings)?;
    let unmarked = findings.configurations().find(|one| one.marking == Marking::BestEffort)?;
    let marked = findings.round_trips(&Configuration { marking: Marking::Expedited, ..*unmarked })?;
    let unmarked = findings.round_trips(unmarked)?;
    if unmarked.median <= idle.median + FELT {
        return None; // there is no queue that they could pass
    }
    let figures = format!("{} against {} at the median under load", ms(marked.median), ms(unmarked.median));
    Some(if marked.median * 2 < unmarked.median {
        format!(
            "The network prioritises packets marked for expedited forwarding (DSCP 46): {figures}. Keep \
            the mark."
        )
    } else {
        format!(
            "The network does not prioritise packets marked for expedited forwarding (DSCP 46): \
            {figures}."
        )
    })
}

fn of_choice(choice: &Choice, findings: &Findings) -> Vec<String> {
    let best = &choice.best;
    let mut all = Vec::new();
    if choice.purpose == Use::Rehearsal && best.mouth_to_ear > ENSEMBLE {
        all.push(format!(
            "{} from mouth to ear exceeds the {} up to which most ensembles keep their tempo.",
            ms(best.mouth_to_ear),
            ms(ENSEMBLE)
        ));
    }
    // A block that is restored from others waits for them.
    let waits = best.protection != Protection::None;
    let jitter = best.depth.saturating_sub(best.blocks.interval());
    if !waits && choice.purpose == Use::Rehearsal && jitter > JITTER {
        all.push(format!(
            "{} of the latency is needed only to absorb jitter. If part of the path is Wi-Fi, a cable avoids \
            most of it.",
            ms(jitter)
        ));
    }
    if best.longest_gap > GAP {
        all.push(format!(
            "The longest gap in the audio was {}, which no concealment can hide. Find out what interrupts the \
            network.",
            ms(best.longest_gap)
        ));
    }
    if choice.purpose == Use::Recording && !best.transport.is_reliable() && best.concealed == Ratio::ZERO {
        all.push(format!(
            "None of {} blocks was lost, which shows with 95 % confidence only that the loss is below {}; {} \
            does not retransmit lost blocks.",
            best.measured,
            percent(Ratio::new(3.0 / best.measured.max(3) as f64).unwrap_or(Ratio::ONE)),
            best.transport,
        ));
    }
    if let Some(capacity) = findings.capacity().filter(|capacity| best.rate > *capacity) {
        all.push(format!(
            "{} needs {} in each direction, more than the throughput of {} of a bulk transfer.",
            choice.purpose,
            rate(best.rate),
            rate(capacity)
        ));
    }
    all
}
