//! An agent sends traces to a collector of OpenTelemetry.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use trunkline_control::FromAgent;

use crate::support::{Ground, VOICE, experiment, part, prepare};

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
