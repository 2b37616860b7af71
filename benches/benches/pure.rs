//! Nanoseconds of each pure part alone: every queue and medium in the registries, framing, endpoints, codecs, sources.
//!
//! `cargo bench -p trunkline-benches --bench pure`

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use trunkline_audio::{g711, wav};
use trunkline_hot::Part;
use trunkline_hot::codecs::{self, Chunk, Speech};
use trunkline_hot::metrics::{Percentiles, SentAndReceived};
use trunkline_hot::network::MediumHop;
use trunkline_hot::queues::{Order, QueueHop};
use trunkline_hot::traffic::Production;
use trunkline_hot::transport::{TcpBulk, UdpExchange};
use trunkline_network::{medium, queue};
use trunkline_traffic as traffic;
use trunkline_transport::framing::{Header, decode_message};

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(20)
        .configure_from_args();
    network(&mut criterion);
    framing(&mut criterion);
    endpoints(&mut criterion);
    audio(&mut criterion);
    sources(&mut criterion);
    metrics(&mut criterion);
    criterion.final_summary();
}

fn network(criterion: &mut Criterion) {
    for kind in queue::KINDS {
        for flows in [1, 100, 1000] {
            let name = format!("queue/{}/{flows} active flows", kind.name);
            bench(criterion, &name, Throughput::Elements(1), || QueueHop::new(kind, flows, Order::Steady));
        }
    }
    for kind in medium::KINDS {
        for (load, waiting) in [("uncongested", 0), ("congested", 50)] {
            let name = format!("medium/{}/{load}", kind.name);
            bench(criterion, &name, Throughput::Elements(1), || MediumHop::new(kind, waiting));
        }
    }
}

fn framing(criterion: &mut Criterion) {
    let (header, message) = (codecs::header(1, 80), codecs::datagram(1, 80));
    let mut group = criterion.benchmark_group("framing");
    group.throughput(Throughput::Elements(1));
    group.bench_function("encode", |bencher| {
        let mut into = message.clone();
        bencher.iter(|| black_box(&header).encode(black_box(&mut into)));
    });
    group.bench_function("decode", |bencher| {
        bencher
            .iter(|| decode_message(black_box(&message), header.key).map(|(header, _): (Header, _)| header));
    });
    group.finish();
    for payload in [80, 940, 8 << 10] {
        bench(criterion, &format!("framing/deframe/{payload} B"), Throughput::Elements(1), || {
            Chunk::new(payload)
        });
    }
}

fn endpoints(criterion: &mut Criterion) {
    for payload in [80, 940] {
        let name = format!("udp/send to receive/{payload} B");
        bench(criterion, &name, Throughput::Elements(1), || UdpExchange::new(payload));
    }
    bench(criterion, "tcp/bulk/8 KiB messages", Throughput::Bytes(TcpBulk::PAYLOAD as u64), TcpBulk::new);
}

fn audio(criterion: &mut Criterion) {
    let speech = Speech::default();
    let mut group = criterion.benchmark_group("audio, a second of speech");
    group.throughput(Throughput::Elements(speech.samples.len() as u64));
    group.bench_function("mu-law encode", |bencher| {
        let mut codes = speech.codes.clone();
        bencher.iter(|| {
            for (code, &sample) in codes.iter_mut().zip(black_box(&speech.samples)) {
                *code = g711::encode_mu_law(sample);
            }
            black_box(&codes);
        });
    });
    group.bench_function("mu-law decode", |bencher| {
        let mut samples = speech.samples.clone();
        bencher.iter(|| {
            for (sample, &code) in samples.iter_mut().zip(black_box(&speech.codes)) {
                *sample = g711::decode_mu_law(code);
            }
            black_box(&samples);
        });
    });
    group.bench_function("WAV read", |bencher| bencher.iter(|| wav::read_pcm(black_box(&speech.wav))));
    group.finish();
}

fn sources(criterion: &mut Criterion) {
    for kind in traffic::KINDS {
        for channels in [1, 1000] {
            let name = format!("source/{}/{channels} channels", kind.name);
            bench(criterion, &name, Throughput::Elements(1), || Production::new(kind, channels));
        }
    }
}

fn metrics(criterion: &mut Criterion) {
    for channels in [1, 1000] {
        let name = format!("meter/sent and received/{channels} channels");
        bench(criterion, &name, Throughput::Elements(1), || SentAndReceived::new(channels));
    }
    bench(criterion, "percentiles/of 100000 values", Throughput::Elements(1), || Percentiles::new(100_000));
}

/// Times units of a part's work; a step may do several.
fn bench<P: Part>(criterion: &mut Criterion, name: &str, unit: Throughput, part: impl Fn() -> P) {
    let (group, of_group) = name.split_once('/').unwrap_or((name, ""));
    let mut group = criterion.benchmark_group(group);
    group.throughput(unit);
    group.bench_function(of_group, |bencher| {
        let mut part = part();
        bencher.iter_custom(|units| {
            let (start, mut done) = (Instant::now(), 0);
            while done < units {
                done += part.step();
            }
            // The last step may have done more than was asked for.
            start.elapsed().mul_f64(units as f64 / done as f64)
        });
    });
    group.finish();
}
