import { describe, expect, test } from 'vitest';
import { curve, valueAt } from '../src/results/cdf';
import { figuresOf, isOfFlow, pointName, swept } from '../src/results/figures';
import { isLogarithmic, kindOver, sweptAxis } from '../src/results/sweep';
import { settle, traceOf } from '../src/results/pick';
import { commonUnit, showEstimate } from '../src/results/quantity';
import type { Report, Run } from '../src/results/types';
import { decodeLatency } from '../src/results/latency';
import { decibels, matched } from '../src/results/wave';
import { differing } from '../src/results/settings';
import type { Drawing } from '../src/api/types';

function block(t: number[], latency: number[], lost: number[], exact: boolean): ArrayBuffer {
  const bytes = new ArrayBuffer(9 + t.length * 12 + lost.length * 8);
  const view = new DataView(bytes);
  view.setUint32(0, t.length, true);
  view.setUint8(4, exact ? 1 : 0);
  t.forEach((value, i) => view.setFloat64(5 + i * 8, value, true));
  latency.forEach((value, i) => view.setFloat32(5 + t.length * 8 + i * 4, value, true));
  const second = 5 + t.length * 12;
  view.setUint32(second, lost.length, true);
  lost.forEach((value, i) => view.setFloat64(second + 4 + i * 8, value, true));
  return bytes;
}

test.each([
  ['flow.voice.loss', true],
  ['flow.voice.latency.p99', true],
  ['flow.voice-2.loss', false],
  ['flow.voice.sink.far.loss', false],
  ['flow.voice.each.loss', false],
  ['bundle.voice.loss', false],
])('%s is a limit on all of the flow voice: %s', (key, isOf) => {
  expect(isOfFlow(key, 'voice')).toBe(isOf);
});

describe('the latency block', () => {
  test.each([0, 1, 2, 3, 7])('%i points are read as they were written', (count) => {
    const t = Array.from({ length: count }, (_, i) => i * 0.01);
    const latency = t.map((value) => Math.fround(value / 3));
    const lost = t.slice(1).map((value) => value + 0.005);
    const read = decodeLatency(block(t, latency, lost, count % 2 === 0));
    expect([...read.t]).toEqual(t);
    expect([...read.latency]).toEqual(latency);
    expect([...read.lost]).toEqual(lost);
    expect(read.exact).toBe(count % 2 === 0);
  });

  test('one that was cut is refused', () => {
    const whole = block([1, 2], [3, 4], [5], true);
    for (let length = 0; length < whole.byteLength; length += 1) {
      expect(() => decodeLatency(whole.slice(0, length))).toThrow('ends too early');
    }
  });

  test('a count that lies is refused without reserving memory for it', () => {
    const bytes = block([], [], [], true);
    new DataView(bytes).setUint32(0, 0xffffffff, true);
    expect(() => decodeLatency(bytes)).toThrow('ends too early');
  });
});

describe('distributions', () => {
  const cdf = { p: [0.25, 0.5, 1], value: [1, 2, 4] };

  test('tails leave out what a logarithm cannot show', () => {
    expect(curve('a', cdf, true).y).toEqual([0.75, 0.5, null]);
    expect(curve('a', cdf, false).y).toEqual(cdf.p);
  });

  test('the value of a share', () => {
    expect([0.25, 0.3, 0.5, 1].map((p) => valueAt(cdf, p))).toEqual([1, 2, 2, 4]);
    expect(valueAt({ p: [], value: [] }, 0.5)).toBeUndefined();
  });
});

describe('figures over what was swept', () => {
  const axes = [
    { key: 'flow.voice.count', values: ['1', '4'], numbers: [1, 4], unit: '' },
    { key: 'link.trunk.queue', values: ['fifo', 'codel'], numbers: null, unit: '' },
  ];
  const side = (run: number, mean: number) => ({
    run, backend: 'sim' as const, repetitions: 3, cut_short: false, bundles: [], links: [], media: [],
    flows: [{ flow: 'voice', transport: 'udp', members: 1, channels: 1, measured: 'one-way', codec: null, percentiles_exact: true, sinks: [], figures: { loss: { mean, ci95: mean / 10 } } }],
  });
  const choices = new Map([[0, [1, 0]], [1, [0, 0]], [2, [0, 1]]]);
  const report = {
    points: [0, 1, 2].map((index) => ({ index, values: {}, runs: [side(7, index + 1)] })),
  } as unknown as Report;

  test('a line for every combination of the others, in the order of the axis', () => {
    const lines = swept(report, axes, choices, 0, 'voice', 'loss', [{ id: 7, name: 'simulated' }]);
    expect(lines).toEqual([
      { label: 'trunk.queue fifo', x: [1, 4], mean: [2, 1], half: [0.2, 0.1] },
      { label: 'trunk.queue codel', x: [1], mean: [3], half: [0.3] },
    ]);
  });

  test('those with a rank come first, all in the words of the report', () => {
    const figure = (name: string, rank?: number) => ({ name, unit: '1', quantity: 'share' as const, definition: `${name}.`, source: '', rank });
    const estimates = { burst_r: { mean: 1, repetitions: 3 }, loss: { mean: 0, repetitions: 3 }, late: { mean: 0, repetitions: 3 } };
    const flows = [{ flow: 'voice', figures: estimates }];
    const figures = { affected: figure('time affected'), burst_r: figure('burst ratio'), late: figure('late', 3), loss: figure('loss', 2) };
    const shown = figuresOf({ figures, points: [{ runs: [{ flows }] }] } as unknown as Report);
    expect(shown.map(({ name, rank }) => [name, rank])).toEqual([['loss', 2], ['late', 3], ['burst ratio', undefined]]);
  });

  test('words stand one after the other; what was not measured is left out', () => {
    const lines = swept(report, axes, choices, 1, 'voice', 'loss', [{ id: 7, name: 'sim' }, { id: 8, name: 'live' }]);
    expect(lines.map(({ label, x }) => [label, x])).toEqual([['voice.count 4, sim', [0]], ['voice.count 1, sim', [0, 1]]]);
    expect(pointName(axes, ['4', 'fifo'])).toBe('voice.count = 4, trunk.queue = fifo');
  });
});

describe('the axis of what was swept', () => {
  const axis = (values: string[], numbers: number[] | null, unit = '') => sweptAxis({ key: 'flow.voice.count', values, numbers, unit });

  test('its ticks are the values, in rising order and each once', () => {
    const { label, log, ticks, min, max } = axis(['4 ms', '1 ms', '2.5 ms', '1 ms'], [4, 1, 2.5, 1], 'ms');
    expect([label, log, ticks]).toEqual(['voice.count, ms', false, [{ at: 1, text: '1' }, { at: 2.5, text: '2.5' }, { at: 4, text: '4' }]]);
    expect([min, max]).toEqual([0.88, 4.12]);
  });

  test('words have their names, tables their kind', () => {
    const { ticks, log, min, max } = axis(['fifo', '{ kind = "round-robin", quantum = "64 B" }'], null);
    expect(ticks?.map(({ at, text }) => [at, text])).toEqual([[0, 'fifo'], [1, 'round-robin']]);
    expect([log, min, max]).toEqual([false, -0.3, 1.3]);
    // Nothing lies between two words, so no line joins them.
    const over = (numbers: number[] | null) => kindOver({ key: '', unit: '', values: [], numbers } as Parameters<typeof kindOver>[0]);
    expect([over(null), over([1, 2])]).toEqual(['scatter', 'line']);
    const alike = axis(['codel', '{ kind = "fifo", limit = "16 KiB" }', 'fifo'], null);
    expect(alike.ticks?.map(({ text }) => text)).toEqual(['codel', 'fifo, limit 16 KiB', 'fifo']);
  });

  test('it is logarithmic where the values were chosen so', () => {
    expect(isLogarithmic([1, 2, 4, 8, 16])).toBe(true);
    expect(isLogarithmic([1, 10, 100])).toBe(true);
    expect(isLogarithmic([1, 2, 3, 16])).toBe(false);
    expect(isLogarithmic([0, 1, 100])).toBe(false);
    expect(isLogarithmic([1, 1000])).toBe(false);
    const { label, ticks, log, min } = axis(['64 B', '512 B', '4 KiB'], [0.0625, 0.5, 4], 'KiB');
    expect([label, log, ticks?.map(({ text }) => text)]).toEqual(['voice.count', true, ['64 B', '512 B', '4 KiB']]);
    expect(min).toBeGreaterThan(0.05);
  });

  test('a single value stands in the middle', () => {
    expect(axis(['3'], [3])).toMatchObject({ min: 2.5, max: 3.5, log: false });
  });
});

describe('traces of a run', () => {
  const repetition = (index: number, flows: string[]) => ({ index, partial: false, summarised: true, audio: [], traces: flows.map((flow) => ({ flow })) });
  const run = {
    axes: [],
    points: [
      { index: 0, choice: [], values: [], repetitions: [] },
      { index: 1, choice: [], values: [], repetitions: [repetition(0, []), repetition(1, ['bulk', 'a/b'])] },
      { index: 2, choice: [], values: [], repetitions: [repetition(0, ['a/b'])] },
    ],
  } as unknown as Run;

  test('what was picked is kept where there is such a trace', () => {
    expect(settle(run, {})).toEqual({ point: 1, repetition: 1, flow: 'bulk' });
    expect(settle(run, { point: 2, repetition: 1, flow: 'a/b' })).toEqual({ point: 2, repetition: 0, flow: 'a/b' });
    expect(settle({ ...run, points: [] }, {})).toBeUndefined();
  });

  test('names are escaped in addresses', () => {
    expect(traceOf(3, { point: 2, repetition: 0, flow: 'a/b' })).toBe('/runs/3/points/2/repetitions/0/flows/a%2Fb');
  });
});

describe('differing settings', () => {
  /** What the comparison looks at of a drawing. */
  const file = (rate: string, extra: object = {}) => ({
    hosts: [{ name: 'a', keys: { position: [1, 2] } }, { name: 'b', keys: {} }],
    links: [{ name: 'trunk', keys: { between: ['a', 'b'], rate, queue: { kind: 'fifo', ...extra } } }],
    flows: [],
    bundles: [],
    experiment: { name: 'x', seed: 7 },
    sweep: [{ key: 'flow.voice.count', values: [1, 2], shown: ['1', '2'] }],
    limits: [],
  }) as unknown as Drawing;

  test('the same file has none', () => {
    expect(differing(file('1 Mbit/s'), file('1 Mbit/s'))).toEqual([]);
  });

  test('changed, added and removed settings are named', () => {
    expect(differing(file('1 Mbit/s', { packets: 10 }), file('2 Mbit/s'))).toEqual([
      { key: 'link.trunk.rate', a: '1 Mbit/s', b: '2 Mbit/s' },
      { key: 'link.trunk.queue', a: '{ kind = "fifo", packets = 10 }', b: '{ kind = "fifo" }' },
    ]);
  });

  test('a host that was only moved is the same; one that is new is not', () => {
    const other = file('1 Mbit/s');
    Object.assign(other, { hosts: [{ name: 'a', keys: { position: [9, 9] } }, { name: 'b', keys: {} }, { name: 'c', keys: {} }] });
    expect(differing(file('1 Mbit/s'), other)).toEqual([{ key: 'hosts.c', a: null, b: '{}' }]);
  });

  test('what is swept is compared as written', () => {
    const other = file('1 Mbit/s');
    other.sweep = [{ key: 'flow.voice.count', values: [1, 4], shown: ['1', '4'] }];
    expect(differing(file('1 Mbit/s'), other)).toEqual([{ key: 'sweep flow.voice.count', a: '1, 2', b: '1, 4' }]);
  });
});

describe('two sounds', () => {
  const wave = (seconds: number, level: number, rate = 1000) => ({ rate, values: Float32Array.from({ length: seconds * rate }, (_, i) => level * Math.sin(i)) });

  test('are equally loud by turning the louder one down', () => {
    const [a, b] = matched([wave(2, 0.5), wave(2, 0.25)], []);
    expect([a, b]).toEqual([expect.closeTo(0.5, 3), 1]);
    expect(decibels(a)).toBeCloseTo(-6.02, 1);
    expect(matched([wave(2, 0.25), wave(2, 0.5, 500)], [])[1]).toBeCloseTo(0.5, 2);
  });

  test('are compared where both have sound, and nothing is missing of either', () => {
    const [loud, quiet] = [wave(3, 0.5), wave(2, 0.5)];
    quiet.values.fill(0, 500, 700);
    quiet.values.fill(0, 1200, 1300);
    // A longer end counts as little as what is missing.
    loud.values.fill(1, 2000);
    expect(matched([loud, quiet], [[1.2, 1.3], [0.5, 0.7], [0.6, 0.65]])).toEqual([1, 1]);
    expect(matched([loud, quiet], [])[0]).toBeLessThan(0.95);
  });

  test('of which one is silent stay as they are', () => {
    expect(matched([wave(1, 0), wave(1, 0.5)], [])).toEqual([1, 1]);
    expect(matched([wave(1, 0.5), wave(1, 0.5)], [[0, 1]])).toEqual([1, 1]);
  });
});

describe('units', () => {
  test('a column has one unit, unless a value would be all zeros in it', () => {
    expect(commonUnit('rate', [256_400, 14.4e9])).toBeUndefined();
    expect(commonUnit('rate', [2e6, 14e6, 0])?.name).toBe('Mbit/s');
    expect(commonUnit('time', [0.000_2, 0.002_6])?.name).toBe('ms');
    expect(commonUnit('count', [0, 0])?.name).toBe('');
    expect(showEstimate('rate', { mean: 256_400, ci95: 1100 })).toBe('256.4 ± 1.1 kbit/s');
  });
});
