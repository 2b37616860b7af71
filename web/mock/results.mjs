// The mock's runs, jobs, studies, advice and agents: made up, but of the right shape. A run that is begun "measures" for some
// seconds and says so in events, 64 channels at 100 packets a second.
import { gaussian, latencyBlock } from './numbers.mjs';
import { advice, agents, definitions, figures, linkFigures, plan, studies, study } from './texts.mjs';

const FLOWS = ['voice', 'bulk'];
const started = (days) => new Date(Date.now() - days * 86_400_000).toISOString();
const text = `name = "voice beside bulk"
duration = "30 s"
repetitions = 5
seed = 7

[hosts]
ottawa = {}
berlin = {}

[link.trunk]
between = ["berlin", "ottawa"]
rate = "1594 kbit/s"
delay = "51.5 ms"
queue = { kind = "round-robin", quantum = "64 B" }

[flow.voice]
from = "berlin"
to = "ottawa"
transport = "udp"
source = { kind = "voice", samples = 80 }

[flow.bulk]
from = "berlin"
to = "ottawa"
transport = { kind = "tcp", window = "16 KiB" }
source = { kind = "bulk", message = "8 KiB" }

[sweep]
"flow.voice.count" = [1, 4, 8, 16]

[limits]
"flow.voice.loss" = "< 1 %"
"flow.voice.latency.p999" = "< 150 ms"
`;

const info = (id, more = {}) => ({
  id, name: 'voice beside bulk', backend: 'sim', status: 'complete', started: started(id / 3), finished: started(id / 3 - 0.0007), version: '0.1.0',
  machine: 'a mock, 2 cores, Linux 6.18', seed: '7', repetitions: 5, points: 4, repetitions_done: 20, repetition_length_s: 31, directory: `/nowhere/runs/${id}`,
  file: 'voice-beside-bulk.toml', experiment_hash: 'cafe', tags: [], key: String(id).padStart(32, '0'), settings: [], ...more,
});
let runs = [
  info(1, { tags: ['paper', 'weekly'] }), info(2, { backend: 'live', machine: 'studio, 8 cores, Linux 6.12' }), info(3, { status: 'partial', repetitions_done: 7, finished: null }),
  info(4, { name: 'A rehearsal over a very long line with a name that does not end soon', backend: 'wire', tags: ['before the concert', 'seven', 'eight'] }),
];
const jobs = new Map();

const counts = [1, 4, 8, 16];
const estimate = (mean, share = 0.02) => ({ mean, sd: Math.abs(mean) * share, ci95: Math.abs(mean) * share * 1.24, repetitions: 5 });

function figuresOf(flow, count, live) {
  const slower = live ? 1.08 : 1;
  const latency = (0.052 + 0.004 * count) * (flow === 'bulk' ? 2.4 : 1) * slower;
  return {
    throughput_user: estimate(flow === 'voice' ? 64_000 * count : 1_300_000 - 90_000 * count),
    loss: estimate(count > 8 ? 0.013 : 0, 0.3), late: estimate(0), latency_mean: estimate(latency), latency_p50: estimate(latency * 0.99),
    latency_p99: estimate(latency * 1.3), latency_p999: estimate(latency * 1.35, 0.05), latency_max: estimate(latency * 1.6, 0.2),
    jitter_mean_absolute_deviation: estimate(0.0004 * count), jitter_interarrival: estimate(0.0006 * count), sent: estimate(3000 * count, 0), received: estimate(2990 * count, 0),
    ...(flow === 'voice' ? { mos: estimate(4.3 - 0.03 * count), r: estimate(91 - count / 2), mouth_to_ear: estimate(latency + 0.01), voice_channels: estimate(count, 0) } : {}),
  };
}

function report(run) {
  const sides = run.id === 1 || run.id === 2 ? [run, runs.find((one) => one.id === 3 - run.id)].filter(Boolean) : [run];
  const side = (one, count) => ({
    run: one.id, backend: one.backend, repetitions: 5, cut_short: false,
    flows: FLOWS.map((flow) => ({ flow, transport: flow === 'voice' ? 'udp' : 'tcp', members: count, channels: 1, measured: 'one-way', codec: null, percentiles_exact: true, figures: figuresOf(flow, count, one.backend === 'live'), sinks: [] })),
    bundles: [],
    links: one.backend === 'live' ? [] : [{ link: 'trunk: berlin → ottawa', utilisation: estimate(0.4 + count / 40), offered: estimate(9000), delivered: estimate(8990), sojourn_mean: estimate(0.002 * count), sojourn_p50: null, sojourn_p99: estimate(0.005 * count), sojourn_p999: null, sojourn_max: estimate(0.011 * count), backlog_max: estimate(1200 * count), backlog_packets_max: estimate(9 * count), dropped: [{ 'queue full': count }], marked: [0] }],
    media: [],
  });
  const limit = (key, condition, figure, bound, value) => ({
    key, condition, figure, bound,
    runs: sides.map((one) => ({ run: one.id, outcome: value(16) < bound ? 'holds' : 'broken', worst: 3, points: counts.map((count, point) => ({ point, outcome: value(count) < bound ? 'holds' : 'broken', uncertain: count === 8, mean: value(count), ci95: value(count) / 20 })) })),
  });
  return {
    format: 1, name: run.name, text, axes: axes(),
    runs: sides.map((one) => ({ ...one, headline: 'breaks voice.latency.p999 < 150 ms at voice.count = 16 (157.1 ± 9.7 ms)', outcome: 'broken' })),
    limits: [limit('flow.voice.loss', '< 1 %', 'loss', 0.01, (count) => (count > 8 ? 0.013 : 0.001)), limit('flow.voice.latency.p999', '< 150 ms', 'latency_p999', 0.15, (count) => (0.052 + 0.004 * count) * 1.35)],
    points: counts.map((count, index) => ({ index, values: { 'flow.voice.count': String(count) }, runs: sides.map((one) => side(one, count)) })),
    figures, bundle_figures: {}, link_figures: linkFigures, medium_figures: {},
  };
}

const axes = () => [{ key: 'flow.voice.count', values: counts.map(String), numbers: counts, unit: '' }];

function stored(id) {
  const run = runs.find((one) => one.id === id);
  if (!run) throw Object.assign(new Error(`there is no run ${id} in this store`), { status: 404 });
  const done = (point) => Math.max(0, Math.min(5, run.repetitions_done - point * 5));
  const points = counts.map((count, index) => ({
    index, choice: [index], values: [String(count)],
    repetitions: Array.from({ length: done(index) }, (_, repetition) => ({ index: repetition, partial: false, summarised: true, traces: FLOWS.map((flow) => ({ flow })), audio: [] })),
  }));
  return { info: run, text, axes: axes(), limits: [], points, counterpart: id === 1 ? 2 : id === 2 ? 1 : null, figures: report(run) };
}

function compared(a, b) {
  const rows = counts.flatMap((count, point) => FLOWS.flatMap((flow) => Object.entries(figuresOf(flow, count, false)).map(([metric, first]) => {
    const second = figuresOf(flow, count, b.backend === 'live')[metric] ?? first;
    const difference = second.mean - first.mean;
    const confidence = first.ci95 * 1.4;
    return { point: `voice.count = ${count}`, a_point: point, b_point: point, flow, metric, label: figures[metric]?.name ?? metric, unit: figures[metric]?.unit ?? '', quantity: figures[metric]?.quantity ?? 'number', a: { mean: first.mean, ci: first.ci95, repetitions: 5 }, b: { mean: second.mean, ci: second.ci95, repetitions: 5 }, difference, relative: first.mean ? difference / first.mean : null, confidence, significant: Math.abs(difference) > confidence, telling: ['loss', 'latency_mean', 'latency_p999', 'throughput_user', 'mos'].includes(metric) };
  })));
  return { run: a, with: b, same_experiment: a.id !== 4 && b.id !== 4, rows, unmatched: [], definitions };
}

/** A job that goes on by itself for some seconds. `result` is what it gives. */
function begin(kind, title, seconds, more = {}) {
  const id = String(jobs.size + 1);
  const job = { id, kind, title, state: 'running', progress: { points: 4, points_done: 0, repetitions: 20, repetitions_done: 0, fraction: 0, left_s: seconds }, ...more };
  const from = Date.now();
  jobs.set(id, { job, from, seconds, watchers: new Set(), seq: 0 });
  const timer = setInterval(() => {
    const entry = jobs.get(id);
    const fraction = Math.min(1, (Date.now() - from) / 1000 / seconds);
    const isOver = fraction >= 1 || job.state === 'stopping';
    job.progress = { ...job.progress, fraction, repetitions_done: Math.floor(fraction * 20), points_done: Math.floor(fraction * 4), left_s: isOver ? null : Math.ceil(seconds * (1 - fraction)) };
    if (isOver) {
      clearInterval(timer);
      job.state = fraction >= 1 ? 'done' : 'stopped';
      const run = runs.find((one) => one.id === job.run);
      if (run) Object.assign(run, { status: fraction >= 1 ? 'complete' : 'partial', repetitions_done: job.progress.repetitions_done, finished: new Date().toISOString(), job: undefined });
    }
    for (const send of entry.watchers) {
      send('job', job);
      if (kind === 'run' && !isOver) send('records', records(entry, fraction));
      if (isOver) send('end', { state: job.state });
    }
  }, 100);
  return job;
}

function records(entry, fraction) {
  const done = Math.floor(fraction * 20);
  const since = (Date.now() - entry.from) / 1000;
  const t0 = (since * 5) % (entry.seconds / 4);
  const size = 640;
  const t = Array.from({ length: size }, (_, i) => t0 + (i / size) * 0.1);
  return {
    seq: entry.seq++, point: Math.floor(done / 5), repetition: done % 5, values: [String(counts[Math.min(3, Math.floor(done / 5))])], flows: FLOWS, t, flow: t.map((_, i) => Number(i % 8 === 0)), channel: t.map((_, i) => i % 64),
    latency: t.map((_, i) => (Math.random() < 0.002 ? null : 0.052 + (i % 8 === 0 ? 0.06 : 0) + Math.abs(gaussian()) * 0.004)),
    throughput: [{ flow: 0, bps: 64_000 * 8 + gaussian() * 4000 }, { flow: 1, bps: 1_000_000 + gaussian() * 60_000 }],
    queues: [{ link: 'trunk', direction: 'berlin → ottawa', bytes: Math.round(Math.abs(gaussian()) * 6000), packets: 4, t: t0 }], shown: size, counted: size,
  };
}

const numbered = (path) => path.split('/').filter(Boolean).map(decodeURIComponent);

/** Answers a request, or returns `undefined` if it is none of these. A function as an answer writes the response itself. */
export function answer(method, path, query, body) {
  const [first, second, third, ...rest] = numbered(path);
  const id = Number(second);
  const route = `${method} ${first}${second === undefined ? '' : '/:'}${third === undefined ? '' : `/${third}`}`;
  switch (route) {
    case 'GET runs': {
      const found = runs.filter((run) => (!query.get('name') || run.name.toLowerCase().includes(query.get('name').toLowerCase())) && (!query.get('backend') || run.backend === query.get('backend')) && (!query.get('status') || run.status === query.get('status')) && (!query.get('tag') || run.tags.includes(query.get('tag'))));
      return { runs: found.toReversed(), total: found.length, next: null };
    }
    case 'POST runs': {
      const run = info(runs.length + 1, { name: /^name = "(.*)"/m.exec(body.text)?.[1] ?? 'unnamed', backend: body.backend, status: 'running', started: new Date().toISOString(), finished: null, repetitions_done: 0 });
      const job = begin('run', run.name, body.backend === 'sim' ? 5 : 30, { run: run.id });
      runs.push({ ...run, job: job.id });
      return { job: job.id, run: run.id };
    }
    case 'GET runs/:':
      return stored(id);
    case 'DELETE runs/:':
      runs = runs.filter((run) => run.id !== id);
      return {};
    case 'PUT runs/:/tags':
      stored(id).info.tags.push(rest[0]);
      return {};
    case 'DELETE runs/:/tags': {
      const run = stored(id).info;
      run.tags = run.tags.filter((tag) => tag !== rest[0]);
      return {};
    }
    case 'POST runs/:/resume': {
      const job = begin('run', 'voice beside bulk', 20, { run: id });
      Object.assign(stored(id).info, { status: 'running', job: job.id });
      return { job: job.id };
    }
    case 'GET runs/:/figures':
      if (rest[0]) return undefined;
      return [];
    case 'GET runs/:/points':
      if (rest.at(-1) === 'latency') return bytes(latencyBlock(Number(query.get('from') ?? 0), Number(query.get('to') ?? 300)));
      if (rest.at(-1) === 'cdf') {
        const p = Array.from({ length: 1000 }, (_, i) => (i + 1) / 1000);
        return { quantity: 'latency', unit: 's', p, value: p.map((share) => 0.05 + id * 0.001 - Math.log(1.0005 - share) * (rest.includes('bulk') ? 0.02 : 0.004)) };
      }
      return undefined;
    case 'GET compare':
      return compared(stored(Number(query.get('run'))).info, stored(Number(query.get('with'))).info);
    case 'GET definitions':
      return definitions;
    case 'GET jobs':
      return [...jobs.values()].map(({ job }) => job).toReversed();
    case 'GET jobs/:':
      return jobOf(second).job;
    case 'POST jobs/:/stop': {
      const { job } = jobOf(second);
      if (job.state === 'running') job.state = 'stopping';
      return job;
    }
    case 'GET jobs/:/result':
      return jobOf(second).job.kind === 'plan' ? plan(text) : advice(text);
    case 'GET events':
      return events(query.get('job'));
    case 'GET papers':
      return studies;
    case 'GET papers/:':
      return study(second);
    case 'POST papers/:':
      return { job: begin('paper', second, 12).id };
    case 'POST plan':
      return { job: begin('plan', `largest ${body.maximise ?? body.minimise}`, 4).id };
    case 'POST probe':
      return { job: begin('probe', `probe of ${body.host}`, 4).id };
    case 'GET agents':
      return agents(query.get('status') === 'true');
    case 'POST agents':
      throw Object.assign(new Error(`${body.address} does not answer: is \`trunkline agent\` running there, and may this host reach it?`), { status: 500 });
    case 'DELETE agents/:':
      return {};
    default:
      return undefined;
  }
}

function jobOf(id) {
  const entry = jobs.get(id);
  if (!entry) throw Object.assign(new Error(`there is no job ${id}: it may have ended long ago`), { status: 404 });
  return entry;
}

function bytes(buffer) {
  return (response) => {
    response.writeHead(200, { 'content-type': 'application/octet-stream' });
    response.end(Buffer.from(buffer));
  };
}

function events(id) {
  const entry = id ? jobOf(id) : undefined;
  return (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    let count = 0;
    const send = (event, data) => response.write(`id: ${count++}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    if (!entry) return;
    send('job', entry.job);
    if (['done', 'stopped', 'failed'].includes(entry.job.state)) send('end', { state: entry.job.state });
    entry.watchers.add(send);
    response.on('close', () => entry.watchers.delete(send));
  };
}
