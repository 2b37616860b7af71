//! Against a reflector on this machine: real sockets, in real time.

use std::sync::Arc;

use trunkline_advisor::{Live, Probed, Question, Transport, Use, advise, html, json, probe, terminal};
use trunkline_calls::{Server, ServerOptions, Stop};
use trunkline_core::{Duration, Ratio};
use trunkline_report::Screen;

const BUDGET: Duration = Duration::from_secs(4);

/// Probes a reflector that is there for this long.
fn probed(transports: &[Transport]) -> Probed {
    let options = ServerOptions { address: ([127, 0, 0, 1], 0).into(), ..ServerOptions::default() };
    let server = Server::bind(options, ()).expect("a port is free");
    let address = server.local_address().expect("it has an address");
    let stop = Arc::new(Stop::new().expect("a pipe can be made"));
    let serving = Arc::clone(&stop);
    let thread = std::thread::spawn(move || server.serve(&serving).expect("it serves"));
    let question = Question {
        budget: BUDGET,
        transports: transports.to_vec(),
        uses: Use::ALL.to_vec(),
        channels: 2,
        sample_rate: 48_000,
        sample_bytes: 2,
        concealed: Ratio::new(0.005).expect("a share"),
        load: true,
    };
    let mut prober = Live::new(&address.to_string(), BUDGET).expect("the reflector is there");
    let probed = probe(question, &mut prober, &());
    stop.stop();
    thread.join().expect("it ends");
    probed
}

#[test]
fn a_reflector_is_measured_within_the_budget_and_advice_comes_of_it() {
    let probed = probed(&[Transport::UDP, Transport::TCP]);
    assert!(probed.took <= BUDGET + BUDGET / 10, "{}", probed.took);
    assert_eq!(probed.findings.failed().collect::<Vec<_>>(), []);
    let advice = advise("127.0.0.1", &probed).expect("both transports work here");
    assert_eq!(advice.recommendations.len(), 3);
    for recommendation in &advice.recommendations {
        let best = &recommendation.choice.best;
        // Between two processes of a machine the sound cards are what takes time, if anything.
        assert!(best.stages.network < Duration::from_millis(20), "{best:?}");
        assert!(best.measured > 0 && best.mouth_to_ear >= best.stages.network + best.depth);
    }
    assert!(advice.capacity.is_some(), "the network was loaded");

    let text = terminal(&advice, Screen::of_width(100));
    assert!(text.contains("rehearsal  ") && text.contains("trunkline send 127.0.0.1 --channels 2"), "{text}");
    let json = json(&advice);
    assert_eq!(json["recommendations"].as_array().map(Vec::len), Some(3));
    assert_eq!(json["recommendations"][0]["for"], "rehearsal");
    let page = html(&advice, &probed.findings);
    assert!(page.contains("<svg") && page.contains("All measurements"));
}

#[test]
fn a_server_that_is_not_there_is_told() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = Live::new(&address.to_string(), Duration::from_secs(1)).unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}
