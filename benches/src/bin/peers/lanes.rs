//! The lanes: what is compared, with which commands, and how their outputs are read.

use serde_json::Value;

/// Something that several programs do, and the figures by which they are compared.
pub(crate) struct Lane {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// The task, and what the figures leave out.
    pub(crate) text: &'static str,
    pub(crate) figures: &'static [Figure],
    /// Ours come first.
    pub(crate) programs: &'static [Program],
}

/// A figure of a lane.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) digits: usize,
    pub(crate) better: Better,
}

/// The better of two values of a figure.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Better {
    More,
    Less,
}

/// A program in a lane.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) ours: bool,
    /// The Debian package that has it, or how else it is had.
    pub(crate) from: &'static str,
    /// A program that must be there.
    pub(crate) needs: &'static str,
    /// A shell line that runs beside the command, until that has ended.
    pub(crate) beside: Option<&'static str>,
    /// The shell line that is measured.
    pub(crate) command: &'static str,
    /// The figures, from its output and the processor time.
    pub(crate) read: fn(&Output) -> Option<Vec<f64>>,
}

/// Outcome of a program that has run.
pub(crate) struct Output {
    pub(crate) text: String,
    /// Processor seconds of both lines and everything that they started.
    pub(crate) processor: f64,
}

pub(crate) const LANES: [Lane; 8] = [
    Lane {
        name: "calls",
        title: "Simulating calls",
        text: "1,000 voice channels of 80 bytes every 10 ms cross one link of 200 Mbit/s for 20 simulated seconds. A hop is a packet that \
               crosses the link. The whole command counts: Trunkline also reads its file, meters every message and stores the run with \
               its records; ns-3 counts packets only.",
        figures: &[per_second("packet-hops")],
        programs: &[
            Program::ours("Trunkline", "taskset -c 0 \"$TRUNKLINE\" run \"$LANES/calls.toml\" --jobs 1 --no-report --quiet --json", |output| {
                let hops = figure(&output.json()?, "links", "delivered")?;
                Some(vec![hops / output.processor / 1e6])
            }),
            Program::peer("ns-3", "libns3-dev", "$BUILT/ns3-voice", "taskset -c 0 \"$BUILT/ns3-voice\" 1000 20", |output| Some(vec![output.number(0)? / output.processor / 1e6])),
        ],
    },
    Lane {
        name: "tcp",
        title: "Simulating TCP",
        text: "16 downloads with CUBIC share a link of 100 Mbit/s and 20 ms with a FIFO of 250 packets for 30 simulated seconds. Segments \
               are the bytes that arrived, in units of 1,448.",
        figures: &[per_second("segments")],
        programs: &[
            Program::ours("Trunkline", "taskset -c 0 \"$TRUNKLINE\" run \"$LANES/tcp.toml\" --jobs 1 --no-report --quiet --json", |output| {
                let messages = figure(&output.json()?, "flows", "received")?;
                Some(vec![messages * 8192.0 / 1448.0 / output.processor / 1e6])
            }),
            Program::peer("ns-3", "libns3-dev", "$BUILT/ns3-tcp", "taskset -c 0 \"$BUILT/ns3-tcp\" 16 30", |output| Some(vec![output.number(0)? / 1448.0 / output.processor / 1e6])),
        ],
    },
    Lane {
        name: "channels",
        title: "Sending 50,000 datagrams a second",
        text: "Datagrams of 160 bytes go from one process to another over loopback for five seconds: 1,000 calls of G.711. Trunkline sends \
               1,000 channels, each at its own times, and meters the latency of every message; the others send one stream. What was not \
               sent in time counts as not delivered.",
        figures: &[
            more("delivered", "%", 2),
            less("processor time per delivered datagram", "us", 1),
        ],
        programs: &[
            Program::ours("Trunkline", "\"$TRUNKLINE\" run \"$LANES/channels.toml\" --on live --no-report --quiet --json", |output| delivered(figure(&output.json()?, "flows", "received")?, output)),
            Program::peer("iperf3", "iperf3", "iperf3", "iperf3 -c 127.0.0.1 -p 5299 -u -b 64M -l 160 -t 5 --json", |output| {
                let sum = &output.json()?["end"]["sum"];
                delivered(sum["packets"].as_f64()? - sum["lost_packets"].as_f64()?, output)
            }).beside("iperf3 -s -1 -p 5299"),
            Program::peer("iperf 2", "iperf", "iperf", "iperf -c 127.0.0.1 -u -p 5298 -b 64m -l 160 -t 5", |output| {
                let report = output.text.lines().rev().find(|line| line.contains(" ms "))?;
                let (lost, all) =
                    report.split_once(" ms ")?.1.split_once('(')?.0.trim().split_once('/')?;
                let (lost, all): (f64, f64) = (lost.trim().parse().ok()?, all.trim().parse().ok()?);
                delivered(all - lost, output)
            }).beside("iperf -s -u -p 5298"),
            Program::peer("nuttcp", "nuttcp", "nuttcp", "nuttcp -P 5301 -u -l160 -R64m -T5 -fparse 127.0.0.1", |output| {
                let value = |name: &str| {
                    output
                        .text
                        .split_whitespace()
                        .find_map(|word| word.strip_prefix(name)?.parse::<f64>().ok())
                };
                delivered(value("pkt=")? - value("drop=")?, output)
            }).beside("nuttcp -S --nofork -P 5301"),
            Program::peer("D-ITG", "d-itg", "ITGSend", "ITGSend -a 127.0.0.1 -T UDP -C 50000 -c 160 -t 5000 >/dev/null && sleep 0.5 && ITGDec \"$SCRATCH/received\"", |output| {
                let line = output.text.lines().rev().find(|line| line.starts_with("Total packets"))?;
                delivered(line.split('=').nth(1)?.trim().parse().ok()?, output)
            }).beside("ITGRecv -l \"$SCRATCH/received\""),
        ],
    },
    Lane {
        name: "round-trip",
        title: "Measuring a round trip",
        text: "A datagram of 160 bytes every 10 ms goes to another process over loopback and back, for five seconds. Trunkline spins before \
               each departure unless told otherwise, which occupies a core and keeps it awake.",
        figures: &[
            less("median", "us", 0),
            less("p99", "us", 0),
            less("processor time", "s", 2),
        ],
        programs: &[
            Program::ours("Trunkline", "\"$TRUNKLINE\" run \"$LANES/round-trip.toml\" --on live --no-report --quiet --json", round_trip),
            Program::ours("Trunkline, sleeping", "\"$TRUNKLINE\" run \"$LANES/round-trip.toml\" --on live --spin never --no-report --quiet --json", round_trip),
            Program::peer("irtt", "irtt", "irtt", "irtt client -i 10ms -d 5s -l 160 -Q -o - 127.0.0.1:2112", |output| {
                let json = output.json()?;
                let trips = json["round_trips"].as_array()?;
                let mut trips: Vec<f64> =
                    trips.iter().filter_map(|trip| trip["delay"]["rtt"].as_f64()).collect();
                trips.sort_by(f64::total_cmp);
                let at = |share: f64| {
                    trips.get((share * trips.len() as f64).ceil() as usize - 1).map(|nanos| nanos / 1e3)
                };
                Some(vec![at(0.5)?, at(0.99)?, output.processor])
            }).beside("irtt server -b 127.0.0.1:2112"),
            Program::peer("sockperf", "sockperf", "sockperf", "sockperf under-load -i 127.0.0.1 -p 11111 --mps 100 --reply-every 1 -m 160 -t 5 --full-rtt", |output| {
                let at = |share: &str| {
                    let line = output.text.lines().find(|line| line.contains(share))?;
                    line.split('=').next_back()?.trim().parse::<f64>().ok()
                };
                Some(vec![at("percentile 50.000")?, at("percentile 99.000")?, output.processor])
            }).beside("sockperf server -i 127.0.0.1 -p 11111"),
        ],
    },
    Lane {
        name: "wire-tcp",
        title: "An emulated link without limits: TCP",
        text: "One TCP connection of iperf3 for five seconds between two namespaces: over our relay, mahimahi's, or over a veth pair alone, \
               which is the limit.",
        figures: &[
            more("goodput", "Gbit/s", 2),
            less("processor time per gigabyte", "s", 2),
        ],
        programs: &[
            Program::ours("Trunkline", "\"$TRUNKLINE\" wire --link '0 ms' --with server='iperf3 -s -1 >/dev/null' -- iperf3 -c server -t 5 --json", tcp).needs("iperf3", "iperf3"),
            Program::peer("mahimahi", "", "mm-delay", "mm-delay 0 sh -c 'iperf3 -c $MAHIMAHI_BASE -p 5297 -t 5 --json'", tcp).beside("iperf3 -s -1 -p 5297"),
            Program::peer("veth alone", "iperf3", "iperf3", "\"$LANES/veth.sh\" 'iperf3 -s -1' -- iperf3 -c 10.77.0.2 -t 5 --json", tcp),
        ],
    },
    Lane {
        name: "wire-small",
        title: "An emulated link without limits: small packets",
        text: "Datagrams of 64 bytes as fast as iperf3 sends them, for five seconds, over the same links.",
        figures: &[
            more("delivered", "thousand per second", 0),
            less("processor time per delivered datagram", "us", 1),
        ],
        programs: &[
            Program::ours("Trunkline", "\"$TRUNKLINE\" wire --link '0 ms' --with server='iperf3 -s -1 >/dev/null' -- iperf3 -c server -u -b 0 -l 64 -t 5 --json", small).needs("iperf3", "iperf3"),
            Program::peer("mahimahi", "", "mm-delay", "mm-delay 0 sh -c 'iperf3 -c $MAHIMAHI_BASE -p 5297 -u -b 0 -l 64 -t 5 --json'", small).beside("iperf3 -s -1 -p 5297"),
            Program::peer("veth alone", "iperf3", "iperf3", "\"$LANES/veth.sh\" 'iperf3 -s -1' -- iperf3 -c 10.77.0.2 -u -b 0 -l 64 -t 5 --json", small),
        ],
    },
    Lane {
        name: "sound-128",
        title: "Playing together, 128 frames",
        text: SOUND,
        figures: &SOUND_FIGURES,
        programs: &[
            Program::ours("Trunkline", "\"$LANES/sound.sh\" trunkline 128 5", heard).needs("jackd2", "jackd"),
            Program::peer("JackTrip", "jacktrip", "jacktrip", "\"$LANES/sound.sh\" jacktrip 128 5", heard),
        ],
    },
    Lane {
        name: "sound-64",
        title: "Playing together, 64 frames",
        text: SOUND,
        figures: &SOUND_FIGURES,
        programs: &[
            Program::ours("Trunkline", "\"$LANES/sound.sh\" trunkline 64 5", heard).needs("jackd2", "jackd"),
            Program::peer("JackTrip", "jacktrip", "jacktrip", "\"$LANES/sound.sh\" jacktrip 64 5", heard),
        ],
    },
];

const SOUND: &str = "Two channels at 48 kHz from one JACK client to another over loopback, with the programs' defaults. jack_iodelay plays \
                     tones into the sender and hears the receiver: the delay is that of the samples, both JACK connections included. The \
                     last figure counts readings in which the delay had changed by more than a period, or no tone was heard.";

const SOUND_FIGURES: [Figure; 3] = [
    less("mouth to ear", "ms", 2),
    less("processor time of both ends", "% of a core", 1),
    less("disturbed readings", "%", 0),
];

impl Program {
    const fn ours(
        name: &'static str,
        command: &'static str,
        read: fn(&Output) -> Option<Vec<f64>>,
    ) -> Program {
        Program { name, ours: true, from: "", needs: "", beside: None, command, read }
    }

    const fn peer(
        name: &'static str,
        from: &'static str,
        needs: &'static str,
        command: &'static str,
        read: fn(&Output) -> Option<Vec<f64>>,
    ) -> Program {
        Program { name, ours: false, from, needs, beside: None, command, read }
    }

    /// The same, which needs another program.
    const fn needs(self, from: &'static str, needs: &'static str) -> Program {
        Program { from, needs, ..self }
    }

    const fn beside(self, line: &'static str) -> Program {
        Program { beside: Some(line), ..self }
    }
}

const fn more(name: &'static str, unit: &'static str, digits: usize) -> Figure {
    Figure { name, unit, digits, better: Better::More }
}

const fn less(name: &'static str, unit: &'static str, digits: usize) -> Figure {
    Figure { name, unit, digits, better: Better::Less }
}

/// Millions of something that a second of processor time does.
const fn per_second(name: &'static str) -> Figure {
    more(name, "million per processor second", 2)
}

impl Output {
    fn json(&self) -> Option<Value> {
        serde_json::from_str(&self.text[self.text.find('{')?..]).ok()
    }

    /// The number that is this word of the output.
    fn number(&self, word: usize) -> Option<f64> {
        self.text.split_whitespace().nth(word)?.parse().ok()
    }
}

/// Sum of the means of a figure over all flows, or over all links, of the first point in `run --json`.
fn figure(run: &Value, of: &str, name: &str) -> Option<f64> {
    let all = run["points"][0]["runs"][0][of].as_array()?;
    // Those of links stand in the link itself.
    let mean = |each: &Value| each["figures"][name]["mean"].as_f64().or_else(|| each[name]["mean"].as_f64());
    all.iter().map(mean).sum()
}

/// Share of 250,000 datagrams, and the processor time of each in us.
fn delivered(datagrams: f64, output: &Output) -> Option<Vec<f64>> {
    (datagrams > 0.0).then(|| vec![100.0 * datagrams / 250_000.0, 1e6 * output.processor / datagrams])
}

fn round_trip(output: &Output) -> Option<Vec<f64>> {
    let run = output.json()?;
    let micros = |name| figure(&run, "flows", name).map(|seconds| 1e6 * seconds);
    Some(vec![micros("latency_p50")?, micros("latency_p99")?, output.processor])
}

fn tcp(output: &Output) -> Option<Vec<f64>> {
    let sum = &output.json()?["end"]["sum_received"];
    Some(vec![sum["bits_per_second"].as_f64()? / 1e9, 1e9 * output.processor / sum["bytes"].as_f64()?])
}

fn small(output: &Output) -> Option<Vec<f64>> {
    let sum = &output.json()?["end"]["sum"];
    let arrived = sum["packets"].as_f64()? - sum["lost_packets"].as_f64()?;
    Some(vec![arrived / sum["seconds"].as_f64()? / 1e3, 1e6 * output.processor / arrived])
}

/// From what `sound.sh` prints.
fn heard(output: &Output) -> Option<Vec<f64>> {
    let found = output.json()?;
    let delays: Vec<f64> = found["delays_ms"].as_array()?.iter().filter_map(Value::as_f64).collect();
    let mut sorted = delays.clone();
    sorted.sort_by(f64::total_cmp);
    let median = *sorted.get(sorted.len() / 2)?;
    let period = 64.0 / 48.0;
    let jumps = delays.windows(2).filter(|pair| (pair[1] - pair[0]).abs() > period).count() as f64;
    let unclear = found["unclear"].as_f64()?;
    let disturbed = 100.0 * (jumps + unclear) / (delays.len() as f64 + unclear);
    // Five seconds.
    Some(vec![median, 100.0 * found["cpu_s"].as_f64()? / 5.0, disturbed])
}
