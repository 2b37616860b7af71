import { describe, expect, test } from 'vitest';
import { searchable } from '../src/advise/keys';
import { bound, limitQuantity } from '../src/advise/plan';
import { blocksText, hostAndPort, protectionText, stagesOf, transportText } from '../src/advise/words';
import { measured, verb, warning } from '../src/papers/repeat';
import { parse } from 'smol-toml';
import { between } from '../src/agents/draw';
import { allowed, facts, notices, pasted } from '../src/agents/status';
import type { Drawing } from '../src/api/types';
import { classesOf, classMark, shareText } from '../src/papers/classes';
import { fit, nearness } from '../src/papers/errors';
import { goalText } from '../src/papers/names';
import type { PaperCell, PaperTable } from '../src/papers/types';
import { fileName, outcomeWord, shortKey, statusText } from '../src/results/words';
import { detail, isOver, pageOf } from '../src/run/job';

describe('where to measure', () => {
  test.each([
    ['studio.example.org', { host: 'studio.example.org' }],
    [' studio:4780 ', { host: 'studio', port: 4780 }],
    ['[::1]:4780', { host: '::1', port: 4780 }],
    ['[fe80::1]', { host: 'fe80::1' }],
    ['fe80::1', { host: 'fe80::1' }],
  ])('%s', (text, found) => {
    expect(hostAndPort(text)).toEqual(found);
  });

  test.each(['', 'a b', 'studio:0', 'studio:70000', '[::1', 'http://studio:1/'])('not %s', (text) => {
    expect(hostAndPort(text)).toBeUndefined();
  });
});

describe('advice in words', () => {
  test('blocks, protection, transports', () => {
    expect(blocksText({ sample_rate: 48_000, frames: 128, channels: 2, sample_bytes: 2 })).toBe('128 frames, 2 channels, 48 kHz');
    expect(blocksText({ sample_rate: 8_000, frames: 160, channels: 1, sample_bytes: 1 })).toContain('of G.711');
    expect(protectionText({ kind: 'repeat', repeats: 1 })).toBe('every block again with the next');
    expect(protectionText({ kind: 'reed-solomon', data: 8, parity: 2 })).toBe('2 Reed-Solomon blocks for every 8');
    expect(transportText('udp')).toBe('udp');
    expect(transportText({ kind: 'tcp', window: '8 KiB' })).toBe('tcp');
  });

  test('stages stand in the order in which sound meets them', () => {
    const way = { stages: { playback: 5, capture: 1, network: 3, block: 2, playout: 4 } } as Parameters<typeof stagesOf>[0];
    expect(stagesOf(way).map((stage) => stage.seconds)).toEqual([1, 2, 3, 4, 5]);
  });
});

describe('plans', () => {
  test.each([
    ['< 150 ms', 0.15],
    ['<= 1 %', 0.01],
    ['> 64 kbit/s', 64_000],
    ['>= 3.6', 3.6],
    ['< 2 bananas', undefined],
    ['150 ms', undefined],
  ])('the bound of %s', (condition, value) => {
    if (value === undefined) expect(bound(condition)).toBeUndefined();
    else expect(bound(condition)).toBeCloseTo(value);
  });

  test('what limits are in', () => {
    expect(limitQuantity('flow.voice.loss').unit).toBe('ratio');
    expect(limitQuantity('flow.voice.latency.p999').unit).toBe('s');
    expect(limitQuantity('flow.voice.jitter.interarrival').unit).toBe('s');
    expect(limitQuantity('flow.bulk.throughput').unit).toBe('bit/s');
    expect(limitQuantity('flow.voice.mos').quantity).toBe('number');
    expect(limitQuantity('flow.voice.underflows').quantity).toBe('count');
  });

  test('keys that can be searched are amounts: what is swept first, words and places never', () => {
    const drawing: Drawing = {
      title: '', bundles: [], limits: [], experiment: { seed: 7 },
      hosts: [{ name: 'a', x: 0, y: 0, placed: true, count: 1, keys: { position: [1, 2] } }],
      links: [{ name: 'trunk', between: ['a', 'b'], medium: 'serial', label: '', keys: { between: ['a', 'b'], rate: '2 Mbit/s', queue: { kind: 'fifo', packets: 10 } } }],
      flows: [{ name: 'voice', from: 'a', to: ['b'], transport: 'udp', source: 'voice', count: '1', label: '', keys: { from: 'a', source: { kind: 'voice', samples: 80 } } }] as unknown as Drawing['flows'],
      sweep: [{ key: 'flow.voice.transport', values: ['udp', { kind: 'tcp' }], shown: ['udp', 'tcp'] }, { key: 'link.trunk.queue.packets', values: [1, 2], shown: ['1', '2'] }],
    };
    expect(searchable(drawing)).toEqual(['link.trunk.queue.packets', 'flow.voice.count', 'link.trunk.rate', 'flow.voice.source.samples']);
  });
});

describe('studies', () => {
  const cell = (error: number | null, doubtful = false): PaperCell => ({ published: '1', doubtful, ours: 1, error, repeats: false });
  const table = (errors: PaperCell[]): PaperTable => ({ name: '', title: '', keys: [], columns: [], rows: [{ keys: {}, cells: errors }], ours: true });

  test('how near a table comes leaves out what is in doubt or cannot be compared', () => {
    expect(fit(table([cell(0.02), cell(-0.4), cell(5, true), cell(null), cell(0.06)]))).toEqual({ compared: 3, median: 0.06, worst: -0.4, within10: 2 });
    expect(fit(table([cell(0.1), cell(-0.2)])).median).toBeCloseTo(0.15);
    expect(fit(table([]))).toEqual({ compared: 0, median: null, worst: null, within10: 0 });
  });

  test('have a class each, in brackets where they repeat another', () => {
    const of = (one: 'blind' | 'fitted', repeats = false) => ({ ...cell(0.1), class: one, repeats });
    expect(classMark(of('blind'))).toEqual({ letter: 'b', words: 'blind' });
    expect(classMark(of('fitted', true))).toEqual({ letter: '(f)', words: 'fitted, repeats another cell' });
    expect(classMark(cell(0.1))).toBeUndefined();
    expect(classesOf(table([of('blind'), of('fitted'), cell(1)]))).toEqual(['fitted', 'blind']);
  });

  test('have their errors by class with the digits of the terminal', () => {
    expect([0.0274, 0.02, 1.27, 0, null].map((share) => shareText(share))).toEqual(['2.7\u202f%', '2\u202f%', '127\u202f%', '0\u202f%', '–']);
    expect([0.02, -0.093, 1.156, -0.0001].map((share) => shareText(share, true))).toEqual(['+2.0\u202f%', '\u22129.3\u202f%', '+116\u202f%', '0.0\u202f%']);
  });

  test('have goals in words', () => {
    const tables = [{ name: 'loaded', title: 'Delay beside bulk' }];
    expect(goalText('loaded mean_ms: median error at most 10 %', tables)).toBe('Delay beside bulk, mean, ms: median error at most 10 %');
    expect(goalText('loaded mean_ms, a formula of the paper: as printed', tables)).toBe('Delay beside bulk, mean, ms, a formula of the paper: as printed');
    expect(goalText('loaded delay of the FIFO over that of round robin', tables)).toBe('loaded delay of the FIFO over that of round robin');
  });

  test('nearness in words', () => {
    expect([0, -0.01, 0.1, -0.3, 0.31].map(nearness)).toEqual(['equal', 'equal', 'near', 'apart', 'far']);
  });
});

describe('repeating a study', () => {
  const realTime = [
    { on: 'live' as const, tables: ['here'], length_s: 123, blocks: 10_000 },
    { on: 'wire' as const, tables: ['table03', 'jitter03'], length_s: 1230, blocks: 10_000 },
  ];

  test('what is measured takes its time', () => {
    expect(measured(realTime, ['table02', 'table03'], false)).toEqual({ tables: [], seconds: 0, isAbout: false });
    expect(measured(realTime, ['table03', 'jitter03'], true)).toEqual({ tables: ['table03', 'jitter03'], seconds: 1230, isAbout: false });
    expect(measured(realTime, ['here', 'table03'], true, 1000)).toEqual({ tables: ['here', 'table03'], seconds: 135.3, isAbout: true });
    expect(warning(measured(realTime, ['here'], false))).toMatch(/^`here` is measured in real time, for at most 2\smin 3\ss\./);
  });

  test('the button says what it does', () => {
    expect(verb(0, 9, 0)).toBe('Simulate all tables');
    expect(verb(0, 9, 1)).toBe('Simulate and measure all tables');
    expect(verb(1, 9, 1)).toBe('Measure this table');
    expect(verb(3, 9, 0)).toBe('Simulate 3 tables');
  });
});

describe('agents', () => {
  const value = (lines: readonly { name: string; value: string }[], name: string) => lines.find((line) => line.name === name)?.value.replace(/\u202f/g, ' ');

  test('what an agent says becomes lines', () => {
    const status = {
      name: 'berlin', program: '0.1.0', since: '2026-11-22T16:27:18Z', sessions: 3, spool: 4_200_000, disk_free: 2e10, cpu: 0.042, memory: 29_220_864, clock_steps: 0,
      parts: [{ state: 'running' }, { state: 'running' }, { state: 'finished' }], controllers: [{ name: 'studio', connected: true }, { name: 'desk', connected: false }], notices: [], something_new: 7, nothing: null,
    };
    const lines = facts(status);
    expect(lines[0]).toEqual({ name: 'measuring', value: '2 parts running, 1 finished' });
    expect(value(lines, 'kept for controllers')).toBe('4.20 MB');
    expect(value(lines, 'processor')).toBe('4.2 % of a core');
    expect(value(lines, 'controllers')).toBe('studio (connected), desk');
    expect(value(lines, 'version')).toBe('0.1.0');
    expect(value(lines, 'something new')).toBe('7');
    expect(lines.some(({ name }) => ['nothing', 'name', 'clock'].includes(name))).toBe(false);
    expect(value(facts({ ...status, clock_steps: 1, parts: [] }), 'clock')).toBe('stepped 1 time');
    expect(value(facts({ parts: [] }), 'measuring')).toBe('nothing now');
    expect(facts(undefined)).toEqual([]);
  });

  test('what its owner allows is the smaller of both limits', () => {
    const lines = allowed({ limits: { rate: 1e8, flows: 4096, duration_ns: 3.6e12 }, permissions: { rate: 2e7, flows: null, to: ['10.0.0.0/8', '192.0.2.7'] } });
    expect(lines.map(({ name }) => value(lines, name))).toEqual(['20.0 Mbit/s', '4,096', '60 min', '10.0.0.0/8, 192.0.2.7']);
    const free = allowed({ limits: { rate: null, flows: null, duration_ns: null }, permissions: { rate: null, flows: null, to: ['0.0.0.0/0', '::/0'] } });
    expect(free.map(({ value }) => value)).toEqual(['no limit', 'no limit', 'no limit', 'anywhere']);
    expect(allowed(undefined)).toEqual([]);
  });

  test('an experiment between them is begun', () => {
    expect(between([{ name: 'ottawa', address: '192.0.2.7:4781' }, { name: 'lost', address: null }])).toBeUndefined();
    const text = between([{ name: 'ottawa', address: '192.0.2.7:4781' }, { name: 'Berlin.example', address: '192.0.2.8:5000' }, { name: 'berlin-example', address: '[2001:db8::1]:4781' }]);
    expect(parse(text ?? '')).toMatchObject({
      hosts: { ottawa: { agent: '192.0.2.7:4781' }, 'berlin-example': { agent: '192.0.2.8:5000' }, 'berlin-example-2': { agent: '[2001:db8::1]:4781' } },
      link: { 'berlin-example': { between: ['ottawa', 'berlin-example'] }, 'berlin-example-2': { between: ['ottawa', 'berlin-example-2'] } },
      flow: { voice: { from: 'ottawa', to: 'berlin-example' } },
    });
  });

  test('notices are told, the newest first', () => {
    const told = ['a', 'b', 'c', 'd'].map((text, i) => ({ at: `2026-11-22T16:27:1${i}Z`, text }));
    expect(notices({ notices: told }).map(({ text }) => text)).toEqual(['d', 'c', 'b']);
    expect(notices({ notices: 'none' })).toEqual([]);
  });

  test('what the host printed is understood as a whole', () => {
    const code = 'G771-JR96-537V-MT1G-H1JD-MFVB-Z72Z-FFGK1';
    expect(pasted(`Within 10 minutes, run this on the controller:\n\n    trunkline agent enrol 192.0.2.7:5001 ${code}\n\nThe code is for one controller.`)).toEqual({ address: '192.0.2.7:5001', code });
    expect(pasted(code)).toBeUndefined();
  });
});

describe('jobs and names', () => {
  const job = (more: object) => ({ id: 'a/b', kind: 'run', title: '', state: 'running', progress: { points: 4, points_done: 1, repetitions: 20, repetitions_done: 3, fraction: 0.15 }, ...more }) as Parameters<typeof detail>[0];

  test('how far a job is', () => {
    expect(detail(job({}))).toBe('3 of 20 repetitions, 4 points');
    expect(detail(job({ progress: { points: 0, points_done: 0, repetitions: 0, repetitions_done: 0, fraction: 0.4 } }))).toBe('40 %');
    expect(isOver(job({ state: 'stopping' }))).toBe(false);
    expect(isOver(job({ state: 'stopped' }))).toBe(true);
  });

  test('every kind of job has a page', () => {
    expect(pageOf(job({}))).toBe('/jobs/a%2Fb');
    expect(pageOf(job({ kind: 'plan' }))).toBe('/plan?job=a%2Fb');
    expect(pageOf(job({ kind: 'probe' }))).toBe('/advise?job=a%2Fb');
  });

  test('names', () => {
    expect(shortKey('flow.voice.count, flow.bulk.count')).toBe('voice.count, bulk.count');
    expect(fileName('Voice beside bulk!')).toBe('voice-beside-bulk');
    expect(fileName('???')).toBe('experiment');
    expect(outcomeWord('holds', true).kind).toBe('warn');
    expect(outcomeWord(null).text).toBe('not measured');
    const run = { status: 'partial', repetitions_done: 2, points: 3, repetitions: 3 } as Parameters<typeof statusText>[0];
    expect(statusText(run)).toBe('partial, 2 of 9 repetitions');
    const shard = { index: 1, of: 4, repetitions: 3 };
    expect(statusText({ ...run, shard })).toBe('part 1 of 4, partial, 2 of 3 repetitions');
    expect(statusText({ ...run, shard, status: 'complete' })).toBe('part 1 of 4, complete');
  });
});
