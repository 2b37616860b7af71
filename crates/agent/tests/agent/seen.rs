//! What an agent shows of itself: metrics, traces, status.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use trunkline_control::{FromAgent, Identity, Peers, RefusalKind, ToAgent};

use crate::support::{Desk, Ground, VOICE, experiment, part, prepare};

fn get(address: std::net::SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{request} HTTP/1.1\r\nHost: agent\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn metrics_tell_what_has_happened() {
    let ground = Ground::new();
    let near = ground.agent("near", "127.0.0.2", "metrics = \"127.0.0.2:0\"\n");
    let far = ground.agent("far", "127.0.0.3", "");
    let desk = ground.controller("studio", &[&near, &far]);
    let metrics = near.metrics.unwrap();
    let mut line = desk.connect(&near);
    let endpoint = desk.connect(&far).offer(&far, &part(0), &near);
    line.prepare(&part(0), &experiment("1 s", VOICE), endpoint);
    let text = get(metrics, "GET /metrics");
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.contains("\ntrunkline_agent_parts{end=\"near\"} 1\n"), "{text}");
    assert!(text.contains("\ntrunkline_agent_sessions{peer=\"controller\"} 1\n"), "{text}");
    line.attach(&part(0), 0);
    line.start(&part(0));
    assert!(matches!(line.hear(), FromAgent::Finished(_)));
    let text = get(metrics, "GET /metrics");
    assert!(text.contains("\ntrunkline_agent_parts_total{became=\"finished\"} 1\n"), "{text}");
    // 100 packets of 80 bytes, with 40 below.
    assert!(text.contains("\ntrunkline_agent_sent_bytes_total 12000\n"), "{text}");
    assert!(get(metrics, "GET /").starts_with("HTTP/1.1 404 "));
    assert!(get(metrics, "POST /metrics").starts_with("HTTP/1.1 405 "));
}

/// A collector: gives every span that comes.
fn collector() -> (String, Receiver<Span>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (give, spans) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            // Several requests may come over one connection.
            loop {
                let mut header = Vec::new();
                loop {
                    let mut line = String::new();
                    if stream.read_line(&mut line).unwrap_or(0) <= 2 {
                        break;
                    }
                    header.push(line.trim().to_ascii_lowercase());
                }
                let Some(first) = header.first() else { break };
                assert!(first.starts_with("post /v1/traces "), "{header:?}");
                assert!(header.contains(&"content-type: application/x-protobuf".to_owned()), "{header:?}");
                let length =
                    header.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                let mut body = vec![0; length.unwrap()];
                stream.read_exact(&mut body).unwrap();
                let request = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
                let resource = &request.resource_spans[0].resource.as_ref().unwrap().attributes;
                assert!(resource.iter().any(|attribute| attribute.key == "service.name"));
                let of_all = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
                of_all.flat_map(|scope| scope.spans).for_each(|span| _ = give.send(span));
                stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
            }
        }
    });
    (address, spans)
}

#[test]
fn traces_tell_how_parts_went() {
    let (address, spans) = collector();
    let ground = Ground::new();
    let mut near = ground.agent("near", "127.0.0.2", &format!("traces = \"{address}\"\n"));
    let far = ground.agent("far", "127.0.0.3", "");
    let desk = ground.controller("studio", &[&near, &far]);
    let mut line = desk.connect(&near);
    let endpoint = desk.connect(&far).offer(&far, &part(0), &near);
    line.prepare(&part(0), &experiment("1 s", VOICE), endpoint.clone());
    line.attach(&part(0), 0);
    line.start(&part(0));
    assert!(matches!(line.hear(), FromAgent::Finished(_)));
    // One that does not come about.
    line.say(prepare(&part(1), &experiment("1 s", VOICE), endpoint));
    line.refusal();
    drop(line);
    near.stop();
    let mut all: Vec<Span> = Vec::new();
    while all.iter().filter(|span| span.name == "part").count() < 2
        || !["connection", "collect"].iter().all(|name| all.iter().any(|span| span.name == *name))
    {
        all.push(spans.recv_timeout(std::time::Duration::from_secs(30)).unwrap());
    }
    let named = |name: &str| all.iter().filter(move |span| span.name == name).collect::<Vec<_>>();
    let (done, failed) = match named("part")[..] {
        [one, other] if one.status.as_ref().is_some_and(|status| status.code == 2) => (other, one),
        [one, other] => (one, other),
        _ => panic!("{all:?}"),
    };
    // The controller's span is above it.
    assert_eq!(done.parent_span_id, 0xb7ad6b7169203331u64.to_be_bytes());
    assert_eq!(done.trace_id, 0x0af7651916cd43dd8448eb211c80319cu128.to_be_bytes());
    for step in ["prepare", "wait", "run", "settle", "collect"] {
        assert!(named(step).iter().any(|span| span.parent_span_id == done.span_id), "{step}: {all:?}");
    }
    let why = failed.status.as_ref().unwrap();
    assert!(why.code == 2 && why.message.contains("invalid token"), "{why:?}");
    assert!(!named("connection").is_empty());
}

#[test]
fn the_owner_looks_with_the_agents_own_key_and_does_nothing_with_it() {
    let ground = Ground::new();
    let near = ground.agent("near", "127.0.0.2", "");
    let identity = trunkline_control::Identity::open(&near.state.join("identity")).unwrap();
    let mut line = crate::support::Desk { identity }.connect(&near);
    line.say(ToAgent::Status);
    let FromAgent::Status(status) = line.hear() else { panic!("no status") };
    assert_eq!((status.name.as_str(), status.sessions), ("near", 1));
    line.say(ToAgent::Offer(crate::support::offer(&part(0), &near)));
    assert_eq!(line.refusal().kind, trunkline_control::RefusalKind::Permission);
    let address = std::fs::read_to_string(near.state.join(trunkline_agent::ADDRESS_FILE)).unwrap();
    assert_eq!(address, near.address);
}

#[test]
fn a_controller_sees_its_own_and_the_owner_sees_all() {
    let ground = Ground::new();
    let (near, far) = (ground.agent("near", "127.0.0.2", ""), ground.agent("far", "127.0.0.3", ""));
    let [studio, other] = ["studio", "other"].map(|name| ground.controller(name, &[&near, &far]));
    let owner = Desk { identity: Identity::open(&near.state.join("identity")).unwrap() };
    let mut line = studio.connect(&near);
    let endpoint = studio.connect(&far).offer(&far, &part(0), &near);
    line.prepare(&part(0), &experiment("50 s", VOICE), endpoint);
    let status = |desk: &Desk| {
        let mut line = desk.connect(&near);
        line.say(ToAgent::Status);
        let FromAgent::Status(status) = line.hear() else { panic!("no status") };
        line.say(ToAgent::Facts);
        let FromAgent::Facts(facts) = line.hear() else { panic!("no facts") };
        (status, facts)
    };
    let (theirs, facts) = status(&other);
    let names: Vec<&str> = theirs.controllers.iter().map(|controller| controller.name.as_str()).collect();
    assert_eq!((names, theirs.parts.len(), theirs.sessions), (vec!["other"], 0, 1));
    assert_eq!((facts.busy.parts, theirs.spool.count()), (0, 0));
    assert!(theirs.notices.is_empty(), "{:?}", theirs.notices);
    let (own, facts) = status(&studio);
    assert_eq!((own.parts.len(), own.sessions, facts.busy.parts), (1, 2, 1));
    let (all, _) = status(&owner);
    assert_eq!((all.controllers.len(), all.parts.len()), (2, 1));
    assert!(all.sessions >= 2);
    // The owner may delete what is kept, and nothing else.
    let mut line = owner.connect(&near);
    line.say(ToAgent::Discard { part: part(0) });
    assert!(matches!(line.hear(), FromAgent::Discarded { .. }));
    assert!(status(&owner).0.parts.is_empty());
    line.say(ToAgent::Stop { part: part(0) });
    assert_eq!(line.refusal().kind, RefusalKind::Permission);
}

#[test]
fn nothing_is_left_of_a_controller_that_is_revoked() {
    let ground = Ground::new();
    let (near, far) = (ground.agent("near", "127.0.0.2", ""), ground.agent("far", "127.0.0.3", ""));
    let [studio, other] = ["studio", "other"].map(|name| ground.controller(name, &[&near, &far]));
    for (number, desk) in [&studio, &other].into_iter().enumerate() {
        let part = part(number as u32);
        let mut line = desk.connect(&near);
        let endpoint = desk.connect(&far).offer(&far, &part, &near);
        line.prepare(&part, &experiment("10 ms", VOICE), endpoint);
        line.attach(&part, 0);
        line.start(&part);
        assert!(matches!(line.hear(), FromAgent::Finished(_)));
    }
    assert_eq!(near.kept(), 2, "never acknowledged");
    Peers::open(&near.state.join("controllers")).unwrap().remove("studio").unwrap();
    let is_gone = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        near.kept() == 1
    });
    assert!(is_gone, "{} parts are left", near.kept());
    let mut line = other.connect(&near);
    line.say(ToAgent::Status);
    let FromAgent::Status(status) = line.hear() else { panic!("no status") };
    assert_eq!((status.parts.len(), status.parts[0].controller.as_str()), (1, "other"));
}
