// Made-up definitions, studies, advice, plans and agents for the mock.
import { readFileSync, readdirSync } from 'node:fs';

const quantities = { s: 'time', 'bit/s': 'rate', B: 'bytes', count: 'count' };
const figure = (name, unit, definition, source = '') => ({ name, unit, quantity: quantities[unit] ?? (/MOS|R-factor/.test(name) ? 'number' : 'share'), definition, source });
const latency = ['From the moment a message was sent to the moment it arrived where latency is measured.', 'RFC 7679 section 3; RFC 2681 section 2'];
const percentile = ['The smallest latency that at least that share of the received messages does not exceed (nearest rank).', 'RFC 2330 section 11.3'];

export const figures = {
  throughput_user: figure('user throughput', 'bit/s', "Payload received, each message once, per second of the flow's active time."),
  loss: figure('loss', '1', 'Messages not received by the end of the run plus its drain time, as a share of those due.', 'RFC 7680 section 2'),
  late: figure('late', '1', 'Received after the playout deadline.'),
  latency_mean: figure('latency mean', 's', ...latency),
  latency_p50: figure('latency p50', 's', ...percentile),
  latency_p99: figure('latency p99', 's', ...percentile),
  latency_p999: figure('latency p99.9', 's', ...percentile),
  latency_max: figure('latency maximum', 's', ...latency),
  jitter_mean_absolute_deviation: figure('jitter, mean absolute deviation', 's', 'Mean of the absolute differences between each latency and the mean latency.', 'Schiavoni and Queiroz 2013, equation 2'),
  jitter_interarrival: figure('interarrival jitter (RFC 3550)', 's', 'J = J + (|D| - J)/16.', 'RFC 3550 section 6.4.1'),
  mos: figure('MOS (estimated)', '1', 'Mean opinion score of a conversation, from 1 to 4.5.', 'ITU-T G.107 (06/2015), Annex B'),
  r: figure('R-factor', '1', 'Transmission rating of a conversation, from 0 to 100.', 'ITU-T G.107'),
  mouth_to_ear: figure('mouth-to-ear delay, mean', 's', 'Until a message is played.', 'ITU-T G.107 (06/2015), Ta'),
  voice_channels: figure('voice channels', 'count', 'How many telephone channels of 64 kbit/s the user throughput holds.', 'ITU-T G.711'),
  sent: figure('messages sent', 'count', 'Due = sent + refused.'),
  received: figure('messages received in time', 'count', 'Due = sent + refused.'),
};

const first = ['throughput_user', 'loss', 'late', 'latency_mean', 'latency_p99', 'latency_p999', 'latency_max', 'jitter_mean_absolute_deviation', 'jitter_interarrival', 'voice_channels', 'mos', 'mouth_to_ear'];
first.forEach((id, i) => (figures[id].rank = i + 1));

const inQueue = ["Time from a packet's arrival at a queue to its departure."];
export const linkFigures = {
  utilisation: figure('utilisation', '1', 'Share of the measured time, without the drain time, in which the line was busy.'),
  sojourn_mean: figure('sojourn time, mean', 's', ...inQueue),
  sojourn_p99: figure('sojourn time, p99', 's', ...inQueue),
  sojourn_max: figure('sojourn time, longest', 's', ...inQueue),
  backlog_max: figure('backlog, largest', 'B', 'What waits in a queue; the largest seen.'),
  backlog_packets_max: figure('backlog, most packets', 'count', 'What waits in a queue; the largest seen.'),
};

export const definitions = Object.entries(figures).map(([metric, one]) => ({ metric, title: one.name, text: one.definition, source: one.source }));

const papers = new URL('../../papers/', import.meta.url);
const titles = { hawley1989: ['Performance Analysis of Queueing Algorithms on Datakit T1 Trunk Lines', 'Hawley'], weaver1992: ['Digitized Voice Distribution Using XTP and FDDI', 'Weaver, McNabb'], lamont1998: ['Bundling Internet Traffic over VBR ATM Networks', 'Lamont and others'], schiavoni2013: ['Alternatives in Network Transport Protocols for Audio Streaming Applications', 'Schiavoni, Queiroz, Wanderley'] };

const goals = [{ title: 'Median error of throughput at most 5 %', met: true, found: '1.2 %' }, { title: 'Round robin keeps delay within 20 %', met: false, found: '26 %' }, { title: 'Order of the queues as published', met: null, found: 'not simulated' }];
const classes = ['fitted', 'predicted', 'blind'].map((name, i) => ({ class: name, cells: 40 * (i + 1), median: 0.02 * (i + 1), worst: -0.3, blind_median: i === 2 ? 0.03 : null, blind_worst: i === 2 ? 0.6 : null, zeros: 0, zeros_alike: 0 }));

export const studies = Object.entries(titles).map(([name, [title, authors]]) => ({
  name, title, authors, year: Number(name.slice(-4)), reproduced: 'Throughput and delay, alone and beside bulk transfers, over the links of that time.',
  tables: tables(name).map((table) => ({ name: table, title: `${table}: as printed` })), figures: [], classes, goals,
}));

function tables(name) {
  return readdirSync(new URL(`${name}/reference/`, papers)).filter((file) => file.endsWith('.csv') && !/INDEX|flagged/.test(file)).map((file) => file.replace('.csv', '')).slice(0, 6);
}

/** The published tables, with ours a little beside them. */
export function study(name) {
  const paper = studies.find((one) => one.name === name);
  if (!paper) throw Object.assign(new Error(`there is no study \`${name}\``), { status: 404 });
  const of = (table) => {
    const [head, ...lines] = readFileSync(new URL(`${name}/reference/${table}.csv`, papers), 'utf8').trim().split('\n').map((line) => line.split(','));
    const keys = head.slice(0, 1);
    const columns = head.slice(1, 5);
    const cell = (published, i) => {
      const number = Number(published);
      if (published === undefined || published === '' || Number.isNaN(number)) return { published: published || null, doubtful: false, ours: null, error: null, repeats: false };
      const ours = number * (1 + [0.004, -0.06, 0.18, 0.5][i % 4]);
      return { published, doubtful: i % 17 === 3, class: ['fitted', 'predicted', 'blind'][i % 3], repeats: i % 11 === 5, ours, error: number ? (ours - number) / Math.abs(number) : null };
    };
    return { name: table, title: `${table}: as printed`, keys, columns: columns.map((name) => ({ name, decimals: 2 })), rows: lines.map((line, i) => ({ keys: { [keys[0]]: line[0] }, cells: columns.map((_, c) => cell(line[c + 1], i + c)), note: i === 2 ? 'The machine of that time had a timer of 10 ms here.' : undefined })), ours: true };
  };
  return { paper, tables: paper.tables.map((table) => of(table.name)), constants: 9, assumed: 4, files: ['throughput.toml', 'hosts/crab.toml'] };
}

const value = (number) => ({ value: String(number), number });

export function plan(text) {
  const trial = (number, p999, verdict, repetitions = 5) => ({ ...value(number), verdict, repetitions, refused: null, limits: [{ key: 'flow.voice.loss', verdict: 'kept', mean: 0, sd: 0, half_width: 0 }, { key: 'flow.voice.latency.p999', verdict, mean: p999, sd: 0.002, half_width: 0.004 }] });
  return {
    format: 1, run: 1, goal: 'maximise', key: 'flow.voice.count', unit: '', from: value(1), to: value(65535), confidence: 0.95, repetitions: 5, most_repetitions: 40,
    limits: [{ key: 'flow.voice.loss', condition: '< 1 %' }, { key: 'flow.voice.latency.p999', condition: '< 150 ms' }], stopped: false, experiment: text,
    answers: [{ values: {}, kept: value(6), broken: value(8), undecided: [value(7), value(7)], kept_behind: [], finished: true, sentence: '6 is the largest value shown to keep the limits; 8, the smallest shown to break one, breaks voice.latency.p999 < 150 ms (176.0 ms, at least 167.3 ms).', trials: [trial(1, 0.067, 'kept'), trial(2, 0.0674, 'kept'), trial(4, 0.09, 'kept'), trial(8, 0.176, 'broken'), trial(6, 0.139, 'kept'), trial(7, 0.151, 'undecided', 40)] }],
  };
}

export function advice(text) {
  const blocks = { sample_rate: 48_000, frames: 128, channels: 2, sample_bytes: 2 };
  const way = (transport, depth, more = {}) => ({ transport, blocks, protection: { kind: 'repeat', repeats: 1 }, depth, stages: { capture: 0.0027, block: 0.0027, network: 0.0123, playout: depth, playback: 0.0027 }, mouth_to_ear: 0.02 + depth, measured: 4000, lost: 0.0001, late: 0.0004, concealed: 0.0005, longest_gap: 0.0053, burst_r: 1.1, r: 91.2, mos: 4.38, rate: 3.1e6, ...more });
  const row = (transport, load, median) => ({ transport, blocks, load, marking: 'expedited', sent: 4000, lost: load === 'bulk' ? 31 : 0, fastest: median * 0.8, median, p99: median * 1.6, slowest: median * 4, deviation: median / 20 });
  return {
    format: 1, host: 'studio.example.org', budget: 60, took: 58.2, partial: false, concealed: 0.005, capacity: 48e6, experiment: text,
    recommendations: [
      { for: 'rehearsal', best: way('udp', 0.004), suffices: true, runner_up: way('udp', 0.008), why: 'UDP with 128 frames has 24 ms from mouth to ear, of which 12.3 ms are the network; every block is sent twice because 0.8 % are lost under load.', runner_up_costs: 'The next best costs 4 ms more.', send: 'trunkline send --to studio.example.org --frames 128 --repeat 1', answer: 'trunkline receive --playout "4 ms"', loaded: way('udp', 0.004, { concealed: 0.021, late: 0.018 }), by_depth: [way('udp', 0.012), way('udp', 0.02)] },
      { for: 'recording', best: way('tcp', 0.5), suffices: false, runner_up: null, why: 'TCP loses nothing, but half a second of buffer is not enough under load.', runner_up_costs: null, send: 'trunkline send --to studio.example.org --transport tcp', answer: 'trunkline receive --playout "500 ms"', loaded: null, by_depth: [] },
    ],
    warnings: ['Under bulk load 0.8 % of the blocks are lost: the queue in front of the slowest link is short.'],
    measured: [row('udp', 'idle', 0.0241), row('udp', 'bulk', 0.0412), row('tcp', 'idle', 0.0252)], failed: [{ transport: 'sctp', why: 'this kernel has no SCTP' }],
  };
}

export function agents(asked) {
  const one = (name, more) => ({ name, address: `${name}.example.org:4781`, fingerprint: 'K7QD-MZ3F-2XLA-PP4C-QY7N-H2BR-T5VE-JW6S', enrolled: new Date(Date.now() - 9e8).toISOString(), ...(asked ? more : {}) });
  return [
    one('ottawa', { reachable: true, status: { version: '0.1.0', cpu: 0.04, parts: 1, sessions: 2, spool_bytes: 4_200_000, since: new Date(Date.now() - 4e8).toISOString(), limits: { rate: '100 Mbit/s', flows: 1000 }, controllers: ['studio', 'office'] } }),
    one('berlin', { reachable: false, unreachable: 'berlin.example.org:4781 did not answer within 3 s: is `trunkline agent` running there?' }),
  ];
}
