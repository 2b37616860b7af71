//! What a part of an experiment will ask of its host, before it runs.

use trunkline_core::schema::Value;
use trunkline_core::{Bytes, Duration, Rate, Seed, Time};
use trunkline_experiment::{Flow, Scenario};
use trunkline_live::on_network;
use trunkline_traffic::{Feedback, KINDS, MessageBuffer, Source};

use crate::permission::{Demand, Greedy};

/// So much of a source is looked at.
const LOOK: Duration = Duration::from_secs(20);
/// And so many messages of it, so that the look is short.
const MESSAGES: usize = 100_000;

/// What the near end of these flows sends and holds.
///
/// The sources of paced flows are run ahead, with every answer coming at once, and their busiest second counts; members
/// are alike. A source whose pace is that of its transport or of its answers is greedy.
///
/// # Errors
/// If a source cannot be built.
pub fn of_near_end(scenario: &Scenario, flows: &[usize], seed: Seed) -> Result<Demand, String> {
    let mut demand = Demand { duration: scenario.duration + scenario.drain, ..Demand::default() };
    for &index in flows {
        let flow =
            scenario.flows.get(index).ok_or_else(|| format!("there is no flow with the index {index}"))?;
        let members = flow.meta.members;
        demand.conversations += u64::from(members);
        if members == 0 {
            continue;
        }
        let busiest = if (KINDS[flow.source.kind].needs_flow_control)(&flow.source.values) {
            None
        } else {
            busiest_second(flow, &mut *scenario.build_source(index, 0, seed)?)
        };
        match busiest {
            Some(bytes) => {
                let rate = Rate::of(bytes, Duration::from_secs(1)).bits_per_second();
                let looked_at = rate.saturating_mul(members.into());
                // A rate over time may rise after the look.
                let at_most = paced(flow).filter(|_| changes_over_time(flow)).unwrap_or_default();
                let sum =
                    demand.rate.bits_per_second().saturating_add(looked_at.max(at_most.bits_per_second()));
                demand.rate = Rate::from_bits_per_second(sum);
            }
            None => {
                let message =
                    on_network(flow, Bytes((KINDS[flow.source.kind].max_message)(&flow.source.values)));
                let greedy = demand.greedy.get_or_insert_with(Greedy::default);
                greedy.flows.push(index);
                greedy.burst = Bytes(greedy.burst.0.saturating_add(message.0.saturating_mul(members.into())));
            }
        }
    }
    Ok(demand)
}

/// What the sources of a flow send together at their highest rate; `None` if they have no pace of their own.
pub(crate) fn paced(flow: &Flow) -> Option<Rate> {
    let (kind, values) = (&KINDS[flow.source.kind], &flow.source.values);
    let interval = (kind.interval)(values).filter(|interval| !interval.is_zero())?;
    let message = on_network(flow, Bytes((kind.max_message)(values)));
    let one = Rate::of(message, interval).bits_per_second();
    let channels = u64::from(flow.meta.members) * u64::from(flow.meta.channels);
    Some(Rate::from_bits_per_second(one.saturating_mul(channels)))
}

fn changes_over_time(flow: &Flow) -> bool {
    let values = &flow.source.values;
    let mut parameters = KINDS[flow.source.kind].parameters.iter();
    parameters.any(|parameter| matches!(values.value(parameter.name), Value::Series(_)))
}

/// What a source sends in its busiest second, headers included; `None` if nothing but answers holds it back.
fn busiest_second(flow: &Flow, source: &mut dyn Source) -> Option<Bytes> {
    let mut buffer = MessageBuffer::default();
    // Messages of the second before the last one looked at.
    let mut window: std::collections::VecDeque<(Time, Bytes)> = Default::default();
    let (mut sum, mut most) = (Bytes::ZERO, Bytes::ZERO);
    let (mut count, mut begin) = (0, None);
    let mut sequences: std::collections::BTreeMap<u16, u32> = Default::default();
    while let Some(now) = source.next_due() {
        let begin = *begin.get_or_insert(now);
        if now.since(begin) > LOOK {
            break;
        }
        buffer.clear();
        source.produce(now, &mut buffer);
        for message in buffer.messages() {
            let bytes = on_network(flow, Bytes(message.range.len() as u64));
            window.push_back((now, bytes));
            sum += bytes;
            count += 1;
        }
        while let Some(&(at, bytes)) =
            window.front().filter(|(at, _)| now.since(*at) >= Duration::from_secs(1))
        {
            debug_assert!(at <= now);
            sum = Bytes(sum.count() - bytes.count());
            window.pop_front();
        }
        most = most.max(sum);
        if count >= MESSAGES {
            // So much within a moment is no pace.
            return (now.since(begin) >= Duration::from_secs(1)).then_some(most);
        }
        for channel in buffer.messages().iter().map(|message| message.channel).collect::<Vec<_>>() {
            let sequence = sequences.entry(channel).or_default();
            source.notify(now, Feedback::Answered { channel, sequence: *sequence });
            *sequence += 1;
            while source.take_transfer().is_some() {}
        }
        if buffer.messages().is_empty() && source.next_due().is_some_and(|next| next <= now) {
            break;
        }
    }
    Some(most)
}

#[cfg(test)]
mod tests {
    use trunkline_experiment::Experiment;

    use super::*;

    fn demand(flows: &str) -> Demand {
        let text = format!(
            "name = \"x\"\nduration = \"30 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\nbetween = [\"a\", \"b\"]\nrate = \"1 Gbit/s\"\n{flows}"
        );
        let experiment = Experiment::parse(&text, "x.toml", &()).unwrap();
        let scenario = &experiment.points.first().scenario;
        let all: Vec<usize> = (0..scenario.flows.len()).collect();
        of_near_end(scenario, &all, Seed::new(7, 0)).unwrap()
    }

    #[test]
    fn a_rate_that_rises_later_counts() {
        let steps = "[[\"0 s\", \"1 Mbit/s\"], [\"25 s\", \"20 Mbit/s\"]]";
        let source =
            format!("{{ kind = \"cross-traffic\", rate = {{ kind = \"steps\", steps = {steps} }} }}");
        let rate = demand(&flow("udp", &source)).rate.bits_per_second();
        assert!((3 * 20_000_000..3 * 24_000_000).contains(&rate), "{rate}");
    }

    fn flow(transport: &str, source: &str) -> String {
        format!(
            "[flow.f]\nfrom = \"a\"\nto = \"b\"\ncount = 3\ntransport = \"{transport}\"\nsource = {source}\n"
        )
    }

    #[test]
    fn voice_asks_for_its_packets_with_their_headers() {
        let voice = demand(&flow("udp", "{ kind = \"voice\", samples = 80 }"));
        assert_eq!((voice.conversations, voice.greedy), (3, None));
        // 100 packets of 80 bytes a second, with 40 bytes for UDP and IP, three times.
        assert_eq!(voice.rate, Rate::from_bits_per_second(3 * 100 * (80 + 40) * 8));
        assert!(voice.duration > Duration::from_secs(30), "with the drain time");
    }

    #[test]
    fn unlimited_bulk_is_greedy_and_a_paced_one_is_not() {
        let greedy = demand(&flow("tcp", "{ kind = \"bulk\", message = \"8 KiB\" }")).greedy.unwrap();
        // Six packets' headers.
        assert_eq!(greedy, Greedy { flows: vec![0], burst: Bytes(3 * (8192 + 6 * 40)) });
        let paced = demand(&flow("tcp", "{ kind = \"bulk\", message = \"1 KB\", interval = \"100 ms\" }"));
        assert_eq!(paced.greedy, None);
        assert_eq!(paced.rate, Rate::from_bits_per_second(3 * 10 * (1000 + 40) * 8));
    }
}
