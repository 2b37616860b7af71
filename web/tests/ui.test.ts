import { describe, expect, test, vi } from 'vitest';
import { match } from '../src/router.svelte';
import { described, extent, fitting, lowerBound, nearest, padded, paintLine, paintPoints, type ChartSeries, type Plot } from '../src/ui/chart';
import { figure, quantity, scaled, span } from '../src/ui/format';
import { live, notify } from '../src/ui/live.svelte';
import { sorted } from '../src/ui/table';

describe('figures', () => {
  test.each([
    [0.0123, 's', '12.3\u202fms'],
    [59, 's', '59.0\u202fs'],
    [1594000, 'bit/s', '1.59\u202fMbit/s'],
    [0, 's', '0\u202fs'],
    [0.5, 'B', '0.500\u202fB'],
    [0.0093, 'ratio', '0.930\u202f%'],
    [-0.002, 's', '\u22122.00\u202fms'],
    [999.96, 'B', '1.00\u202fkB'],
    [4.2, '', '4.20'],
  ])('%d %s is %s', (value, unit, text) => {
    expect(quantity(value, unit)).toBe(text);
  });

  test('nothing is a dash', () => {
    expect(quantity(null, 's')).toBe('–');
    expect(quantity(Number.NaN, 's')).toBe('–');
    expect(figure(Infinity)).toBe('–');
  });

  test('a unit fits the largest value', () => {
    expect(scaled(0.25, 's')).toEqual({ factor: 1e-3, unit: 'ms' });
    expect(scaled(2.5e9, 'bit/s')).toEqual({ factor: 1e9, unit: 'Gbit/s' });
    expect(scaled(90, 's')).toEqual({ factor: 1, unit: 's' });
  });

  test('spans of time', () => {
    expect(span(45)).toBe('45\u202fs');
    expect(span(200)).toBe('3\u202fmin 20\u202fs');
    expect(span(239.9)).toBe('4\u202fmin');
    expect(span(4000)).toBe('67\u202fmin');
    expect(span(86_400)).toBe('24\u202fh');
    expect(span(9000)).toBe('2\u202fh 30\u202fmin');
  });
});

test('messages go by themselves: errors after half a minute, others sooner', () => {
  vi.useFakeTimers();
  notify('it failed', 'bad');
  notify('it is done', 'good');
  vi.advanceTimersByTime(10_000);
  expect(live.toasts.map(({ text }) => text)).toEqual(['it failed']);
  vi.advanceTimersByTime(25_000);
  expect(live.toasts).toEqual([]);
  vi.useRealTimers();
});

describe('routes', () => {
  const patterns = ['/runs', '/runs/:id', '/compare/:a/:b'];
  test('parts of an address are found', () => {
    expect(match(patterns, '#/runs')?.pattern).toBe('/runs');
    expect(match(patterns, '#/runs/12?tab=figures')).toMatchObject({ pattern: '/runs/:id', params: { id: '12' } });
    expect(match(patterns, '#/runs/12?tab=figures')?.query.get('tab')).toBe('figures');
    expect(match(patterns, '#/compare/1/a%2Fb')?.params).toEqual({ a: '1', b: 'a/b' });
  });
  test('what is none is none', () => {
    expect(match(patterns, '#/nowhere')).toBeUndefined();
    expect(match(patterns, '#/runs/%E0')).toBeUndefined();
    expect(match(patterns, '')).toBeUndefined();
  });
});

describe('tables', () => {
  const rows = [{ v: 3 }, { v: null }, { v: 1 }, { v: 2 }];
  test('sort both ways, with nothing last', () => {
    expect(sorted(rows, (row) => row.v, false).map((row) => row.v)).toEqual([1, 2, 3, null]);
    expect(sorted(rows, (row) => row.v, true).map((row) => row.v)).toEqual([3, 2, 1, null]);
    expect(sorted(rows, undefined, true)).toBe(rows);
  });
});

describe('charts', () => {
  test('ranges leave out what cannot be shown', () => {
    expect(extent([[1, null, NaN, 5], [-2, 3]], false)).toEqual({ min: -2, max: 5 });
    expect(extent([[1, 0, 5], [-2, 3]], true)).toEqual({ min: 1, max: 5 });
    expect(extent([[], [NaN]], false)).toBeUndefined();
  });
  test('an axis is never empty', () => {
    const axis = { label: '', unit: '' };
    for (const range of [undefined, { min: 0, max: 0 }, { min: 7, max: 7 }, { min: -3, max: -3 }]) {
      for (const side of ['x', 'y'] as const) {
        const shown = padded(range, axis, side);
        expect(shown.max).toBeGreaterThan(shown.min);
      }
    }
    expect(padded({ min: 0.001, max: 1 }, axis, 'y').min).toBe(0);
    // A latency that never changes is shown near its value.
    expect(padded({ min: 4, max: 4 }, axis, 'x')).toEqual({ min: 3.6, max: 4.4 });
  });
  test('the first index is found', () => {
    expect(lowerBound([1, 2, 2, 5], 2)).toBe(1);
    expect(lowerBound([1, 2, 2, 5], 6)).toBe(4);
    expect(lowerBound([], 6)).toBe(0);
  });
  test('a series is described', () => {
    expect(described({ label: 'a', kind: 'line', x: [0, 1, 2], y: [5, NaN, 1] })).toMatchObject({ min: 1, max: 5, count: 3 });
    expect(described({ label: 'a', kind: 'line', x: [], y: [] })).toBeUndefined();
  });
});

/** A canvas of 100 by 50 pixels that writes down what is painted; x and y from 0 to 1. */
function canvas(range = { min: 0, max: 1 }) {
  const points: [number, number][] = [];
  const lines: [string, number, number][] = [];
  const context = {
    fillRect: (x: number, y: number, width: number, height: number) => points.push([x + width / 2, y + height / 2]),
    beginPath: () => undefined,
    moveTo: (x: number, y: number) => lines.push(['move', x, y]),
    lineTo: (x: number, y: number) => lines.push(['line', x, y]),
    stroke: () => undefined,
  } as unknown as CanvasRenderingContext2D;
  const plot: Plot = {
    context, left: 0, top: 0, width: 100, height: 50, range, ratio: 1,
    x: (value) => ((value - range.min) / (range.max - range.min)) * 100,
    y: (value) => 50 - value * 50,
  };
  return { plot, points, lines };
}

const made = (kind: ChartSeries['kind'], count: number, y: (index: number) => number | null): ChartSeries => ({
  label: '', kind, x: Float64Array.from({ length: count }, (_, index) => index / Math.max(1, count - 1)), y: Array.from({ length: count }, (_, index) => y(index)),
});

describe('ticks at given places', () => {
  const ticks = (...texts: string[]) => texts.map((text, at) => ({ at, text }));
  const texts = (every: number, ...given: string[]) => fitting(ticks(...given), (at) => at * every).map(({ text }) => text);

  test('all that find room', () => {
    expect(texts(40, '1', '2', '3')).toEqual(['1', '2', '3']);
    expect(texts(10, '10', '20', '30', '40', '50')).toEqual(['10', '40']);
  });

  test('long names are cut before they are left out', () => {
    expect(texts(100, 'round-robin', 'fifo')).toEqual(['round-robin', 'fifo']);
    expect(texts(70, 'round-robin', 'fifo')).toEqual(['round-ro\u2026', 'fifo']);
    expect(texts(20, 'round-robin', 'fifo', 'codel', 'red', 'pie', 'none')).toEqual(['round-robin', 'red', 'none']);
    expect(texts(100, 'the only one of all')).toEqual(['the only one of all']);
  });

  test('the nearest one is meant', () => {
    expect(nearest(ticks('a', 'b', 'c'), 1.4)?.text).toBe('b');
    expect(nearest([], 1)).toBeUndefined();
  });
});

describe('painting', () => {
  test('a dashed line is one path, so that its dashes do not begin again at every pixel', () => {
    const { plot, lines } = canvas();
    paintLine(plot, made('line', 1000, () => 0.5));
    expect(lines.filter(([kind]) => kind === 'move')).toHaveLength(1);
  });

  test('a million points are no more than the pixels there are, and none is missing', () => {
    const { plot, points } = canvas();
    paintPoints(plot, made('scatter', 1_000_000, (index) => (index * 7919) % 1000 / 1000));
    expect(points.length).toBeLessThanOrEqual(101 * 51);
    expect(new Set(points.map(String)).size).toBe(points.length);
    expect(points.length).toBeGreaterThan(100 * 49);
  });

  test('points outside of what is shown are not painted', () => {
    const { plot, points } = canvas({ min: 0.5, max: 0.6 });
    paintPoints(plot, made('scatter', 101, () => 0.5));
    expect(points.length).toBe(11);
    const high = canvas();
    paintPoints(high.plot, made('scatter', 10, () => 1.5));
    expect(high.points).toEqual([]);
  });

  test('a line of a million values keeps each extreme and is painted by columns', () => {
    const { plot, lines } = canvas();
    paintLine(plot, made('line', 1_000_000, (index) => (index === 123_456 ? 1 : index === 654_321 ? 0 : 0.5)));
    expect(lines.length).toBeLessThanOrEqual(101 * 5);
    expect(Math.min(...lines.map(([, , y]) => y))).toBe(0);
    expect(Math.max(...lines.map(([, , y]) => y))).toBe(50);
  });

  test('what is missing interrupts a line', () => {
    const { plot, lines } = canvas();
    paintLine(plot, made('line', 5, (index) => (index === 2 ? null : 0.5)));
    const drawn = lines.filter(([what]) => what === 'line').map(([, x]) => x);
    expect(drawn).toEqual([25, 100]);
  });

  test('a step holds its value until the next', () => {
    const { plot, lines } = canvas();
    paintLine(plot, made('step', 3, (index) => index / 2));
    expect(lines).toContainEqual(['line', 50, 50]);
    expect(lines).toContainEqual(['line', 50, 25]);
    expect(lines).toContainEqual(['line', 100, 25]);
  });
});
