import { describe, expect, test } from 'vitest';
import { above, overlay, shareAt } from '../src/results/cdf';
import { decodeLatency } from '../src/results/latency';
import { differing, type Drawn } from '../src/results/settings';

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
  const a = { p: [0.25, 0.5, 1], value: [1, 2, 4] };
  const b = { p: [0.5, 1], value: [2, 3] };

  test('curves are brought onto common values and stay staircases', () => {
    const { x, y } = overlay([a, b]);
    expect(x).toEqual([1, 2, 3, 4]);
    expect(y[0]).toEqual([0.25, 0.5, 0.5, 1]);
    expect(y[1]).toEqual([null, 0.5, 1, 1]);
    for (const [at, value] of x.entries()) expect(y[0]?.[at]).toBe(shareAt(a, value));
  });

  test('one without values is not drawn', () => {
    expect(overlay([a, { p: [], value: [] }]).y[1]).toEqual([null, null, null]);
  });

  test('tails leave out what a logarithm cannot show', () => {
    expect(above(overlay([a])).y[0]).toEqual([0.75, 0.5, null]);
  });

  test('the share at a value', () => {
    expect([0, 1, 1.5, 4, 9].map((x) => shareAt(a, x))).toEqual([0, 0.25, 0.25, 1, 1]);
  });
});

describe('differing settings', () => {
  const file = (rate: string, extra: object = {}): Drawn => ({
    hosts: [{ name: 'a', keys: { position: [1, 2] } }, { name: 'b', keys: {} }],
    links: [{ name: 'trunk', keys: { between: ['a', 'b'], rate, queue: { kind: 'fifo', ...extra } } }],
    flows: [],
    bundles: [],
    experiment: { name: 'x', seed: 7 },
    sweep: [{ key: 'flow.voice.count', values: [1, 2] }],
    limits: [],
  });

  test('the same file has none', () => {
    expect(differing(file('1 Mbit/s'), file('1 Mbit/s'))).toEqual([]);
  });

  test('changed, added and removed settings are named', () => {
    expect(differing(file('1 Mbit/s', { packets: 10 }), file('2 Mbit/s'))).toEqual([
      { key: 'link.trunk.rate', a: '1 Mbit/s', b: '2 Mbit/s' },
      { key: 'link.trunk.queue.packets', a: '10', b: null },
    ]);
  });

  test('a host that was only moved is the same; one that is new is not', () => {
    const other = file('1 Mbit/s');
    other.hosts = [{ name: 'a', keys: { position: [9, 9] } }, { name: 'b', keys: {} }, { name: 'c', keys: {} }];
    expect(differing(file('1 Mbit/s'), other)).toEqual([{ key: 'hosts.c', a: null, b: '{}' }]);
  });

  test('what is swept is compared as written', () => {
    const other = file('1 Mbit/s');
    other.sweep = [{ key: 'flow.voice.count', values: [1, 4] }];
    expect(differing(file('1 Mbit/s'), other)).toEqual([{ key: 'sweep flow.voice.count', a: '1, 2', b: '1, 4' }]);
  });
});
