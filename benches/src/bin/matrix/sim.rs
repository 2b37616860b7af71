//! A cell in the simulator.

use std::error::Error;

use trunkline_benches::{GoOn, experiment};
use trunkline_core::{Duration, FlowId, Seed, Time};
use trunkline_metrics::{FlowMeta, Meter, Observation, Recorder};

use crate::cell::{Cell, INTERVAL, Measured, OVERHEAD, Queue, SECONDS, VOICE};

/// Simulates a cell, with the random numbers of one run.
pub(crate) fn measure(cell: &Cell, run: u32) -> Result<Measured, Box<dyn Error>> {
    let experiment = experiment(&file(cell));
    let scenario = &experiment.points.first().scenario;
    let metas: Vec<FlowMeta> = scenario.flows.iter().map(|flow| flow.meta.clone()).collect();
    let [load, voice] = &metas[..] else { return Err("a cell has two flows".into()) };
    let seen = Seen {
        load: load.first,
        voice: voice.first,
        transfers: vec![(0, Time::ZERO); cell.flows as usize],
        delays: Vec::new(),
    };
    let mut nobody = ();
    let mut both = (Meter::new(&metas, &mut nobody), seen);
    let outcome = trunkline_simulator::run(scenario, Seed::new(7, run), &mut both, &mut GoOn)?;
    let (meter, seen) = both;
    let summary = meter.finish(outcome);
    let counters = &summary.flows[0].transport_counters;

    let sent = summary.flows[1].counts.sent as usize;
    let bytes: Vec<u64> = seen.transfers.iter().map(|(bytes, _)| *bytes).collect();
    let last = seen.transfers.iter().map(|(_, at)| at.since(Time::ZERO).as_secs_f64()).fold(0.0, f64::max);
    let is_endless = cell.volume == 0;
    let measured = Measured::of_call(seen.delays, sent)
        .with_transfers(&bytes, if is_endless { f64::from(SECONDS) } else { last });
    Ok(Measured {
        completion: if is_endless { 0.0 } else { last * 1000.0 },
        retransmitted: counters.get("retransmissions").copied().unwrap_or_default(),
        ..measured
    })
}

/// The experiment of a cell.
fn file(cell: &Cell) -> String {
    let Cell { rate, round_trip, queue, flows, control, loss, volume } = cell;
    let queue = match queue {
        Queue::Fifo(products) => {
            format!("{{ kind = \"fifo\", limit = \"{:.0} B\" }}", products * cell.product())
        }
        Queue::Codel => "\"codel\"".to_owned(),
        Queue::CodelEcn => "{ kind = \"codel\", ecn = true }".to_owned(),
        Queue::FqCodel | Queue::FqCodelEcn => "\"fq-codel\"".to_owned(),
        Queue::Marking(milliseconds) => {
            format!("{{ kind = \"fq-codel\", ce-threshold = \"{milliseconds} ms\" }}")
        }
        // What Linux's `sch_pie` always does.
        Queue::Pie => {
            "{ kind = \"pie\", derandomise = true, cap-increase = true, raise-above-250ms = true }".to_owned()
        }
    };
    let bytes = if *volume == 0 { String::new() } else { format!(", bytes = \"{volume} B\"") };
    let ecn = if cell.negotiates_ecn() { ", ecn = \"on\"" } else { "" };
    let delay = *round_trip as f64 / 2.0;
    let interval = Duration::from_nanos(INTERVAL).as_secs_f64();
    format!(
        "name = \"matrix\"\nduration = \"{SECONDS} s\"\ndrain = \"1 s\"\nseed = 7\n\
         [hosts]\na = {{}}\nb = {{}}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"{rate} Mbit/s\"\ndelay = \"{delay} ms\"\noverhead = \"{OVERHEAD} B\"\n\
         queue = {queue}\n[link.trunk.forward]\nloss = \"{loss} %\"\n\
         [flow.load]\nfrom = \"a\"\nto = \"b\"\ncount = {flows}\nframing = \"none\"\n\
         transport = {{ kind = \"tcp\", congestion-control = \"{control}\"{ecn} }}\n\
         source = {{ kind = \"bulk\", message = \"1 KB\"{bytes} }}\n\
         [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
         source = {{ kind = \"load\", message = \"{VOICE} B\", interval = \"{interval} s\" }}\n"
    )
}

/// Arrivals at the sinks.
struct Seen {
    load: FlowId,
    voice: FlowId,
    /// The bytes of each transfer, and the time of the last of them.
    transfers: Vec<(u64, Time)>,
    /// The delay of each packet of the call, in milliseconds.
    delays: Vec<f64>,
}

impl Recorder for Seen {
    fn record(&mut self, at: Time, flow: FlowId, what: Observation) {
        let Observation::Received { sent, payload, .. } = what else { return };
        if flow == self.voice {
            self.delays.push(at.since(sent).as_secs_f64() * 1000.0);
        } else if at <= Time::ZERO + Duration::from_secs(u64::from(SECONDS)) {
            let (bytes, last) = &mut self.transfers[(flow.0 - self.load.0) as usize];
            *bytes += payload.count();
            *last = at;
        }
    }
}
