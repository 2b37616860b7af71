//! Over networks that are known, the advice is the right one.

mod support;

use support::{DSL, LAN, LOSSY, Simulated, WIFI, question};
use trunkline_advisor::{Probed, Transport, Use, choose, probe};

const SIMULATED: [Transport; 8] = [
    Transport::Udp,
    Transport::UdpLite,
    Transport::Dccp,
    Transport::Tcp,
    Transport::Sctp,
    Transport::Xtp,
    Transport::Quic,
    Transport::Urp,
];

fn probed(link: &'static str) -> Probed {
    let mut prober = Simulated::over(link);
    let started = std::time::Instant::now();
    let probed = probe(question(&SIMULATED), &mut prober, &());
    eprintln!(
        "took {:?} of real time, {} steps, virtual {}",
        started.elapsed(),
        prober.steps.len(),
        probed.took
    );
    for step in &prober.steps {
        eprintln!("{:?} {} {} {}", step.stage, step.configuration, step.settling, step.lasting);
    }
    for one in probed.findings.configurations() {
        eprintln!("{one}: {:?}", probed.findings.round_trips(one));
    }
    let advice = trunkline_advisor::advise("studio.example.org", &probed).unwrap();
    eprintln!("{}", trunkline_advisor::terminal(&advice, trunkline_report::Style::Plain, 110));
    std::fs::write(
        format!("/tmp/advice-{}.html", link.len()),
        trunkline_advisor::html(&advice, &probed.findings),
    )
    .unwrap();
    for purpose in Use::ALL {
        let choice = choose(purpose, &probed.question, &probed.findings).unwrap();
        for j in [Some(choice.best), choice.runner_up].into_iter().flatten() {
            eprintln!(
                "{purpose} {}: {} {} {:?} depth {} m2e {} lost {} late {} conc {} R {:.1} MOS {:.2} {}",
                choice.suffices,
                j.transport,
                j.blocks,
                j.protection,
                j.depth,
                j.mouth_to_ear,
                j.lost,
                j.late,
                j.concealed,
                j.r,
                j.mos,
                j.rate
            );
        }
    }
    eprintln!("{:?} {:?}", probed.findings.capacity(), probed.findings.failed().collect::<Vec<_>>());
    probed
}

#[test]
fn lan() {
    probed(LAN);
}
#[test]
fn wifi() {
    probed(WIFI);
}
#[test]
fn lossy() {
    probed(LOSSY);
}
#[test]
fn dsl() {
    probed(DSL);
}
