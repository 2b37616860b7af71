import { describe, expect, test } from 'vitest';
import { dotSize, layered, nearest, paint, word, type View } from '../src/run/paint';
import { Lines, Points } from '../src/run/points';
import { grown, logTicks, moved, niceAbove, ticks, zoomed } from '../src/run/scale';

describe('points', () => {
  test('the oldest make room', () => {
    const points = new Points(4);
    for (let i = 0; i < 6; i += 1) points.push(i, i / 10, i);
    expect(points.length).toBe(4);
    expect(points.oldest).toBe(2);
    expect(points.added).toBe(6);
    expect(points.t[points.place(2)]).toBe(2);
    expect(points.flow[points.place(5)]).toBe(5);
    expect(points.latest).toBe(5);
  });

  test('lost messages are counted and have no value', () => {
    const points = new Points(4);
    points.push(1, null, 0);
    points.push(2, 0.5, 0);
    expect(points.lost).toBe(1);
    expect(points.value[0]).toBeNaN();
    expect([points.least, points.largest]).toEqual([0.5, 0.5]);
    points.clear();
    expect([points.added, points.lost, points.generation]).toEqual([0, 0, 1]);
  });
});

describe('lines', () => {
  test('a series that comes later has gaps before', () => {
    const lines = new Lines();
    lines.push(0, [['a', 1]]);
    lines.push(1, [['b', 5]]);
    lines.push(2, [['a', 2], ['b', 6]]);
    expect(lines.labels).toEqual(['a', 'b']);
    expect(lines.y).toEqual([[1, null, 2], [null, 5, 6]]);
  });

  test('only the newest are kept', () => {
    const lines = new Lines(8);
    for (let i = 0; i < 100; i += 1) lines.push(i, [['a', i]]);
    expect(lines.x.length).toBeLessThanOrEqual(10);
    expect(lines.x.at(-1)).toBe(99);
    expect(lines.y[0]?.at(-1)).toBe(99);
    expect(lines.y[0]?.length).toBe(lines.x.length);
  });
});

const view: View = { x0: 0, x1: 10, y0: 0, y1: 10, log: false };
const ink = { colours: Uint32Array.of(7, 8), by: 'flow', lost: 9, size: 1 } as const;

function raster() {
  return { words: new Uint32Array(100), width: 10, height: 10 };
}

describe('painting', () => {
  test('a point lands where its value says, in the colour of its series', () => {
    const points = new Points(10);
    points.push(2, 3, 1);
    const pixels = raster();
    expect(paint(pixels, view, points, 0, 1, ink)).toEqual([2, 3]);
    expect(pixels.words[(9 - 3) * 10 + 2]).toBe(8);
    expect(pixels.words.filter((word) => word !== 0)).toHaveLength(1);
  });

  test('a flow of few messages is not painted over by one of many, whichever comes later', () => {
    const points = new Points(500);
    for (let i = 0; i < 100; i += 1) {
      points.push(2, 3, 0);
      if (i === 50) points.push(2, 3, 1);
    }
    const pixels = raster();
    paint(pixels, view, points, 0, points.added, { ...ink, colours: layered(Uint32Array.of(0xff000007, 0xff000008), points.layers()) });
    expect((pixels.words[(9 - 3) * 10 + 2] ?? 0) & 0xff).toBe(8);
  });

  test('lost messages are ticks at the bottom', () => {
    const points = new Points(10);
    points.push(4, null, 0);
    const pixels = raster();
    paint(pixels, view, points, 0, 1, ink);
    expect([6, 7, 8, 9].map((row) => pixels.words[row * 10 + 4])).toEqual([9, 9, 9, 9]);
  });

  test('drawing a few at a time gives the same picture as drawing all at once', () => {
    const points = new Points(500);
    for (let i = 0; i < 700; i += 1) points.push((i * 7919) % 10, ((i * 104729) % 100) / 9, i % 3);
    const [whole, parts] = [raster(), raster()];
    paint(whole, view, points, points.oldest, points.added, ink);
    for (let from = points.oldest; from < points.added; from += 13) {
      paint(parts, view, points, from, Math.min(from + 13, points.added), ink);
    }
    expect(parts.words).toEqual(whole.words);
  });

  test('points outside of the view or no longer kept are not drawn', () => {
    const points = new Points(2);
    for (const t of [1, -5, 50]) points.push(t, 5, 0);
    const pixels = raster();
    expect(paint(pixels, view, points, 0, 3, ink)).toEqual([0, 0]);
    expect(pixels.words.every((word) => word === 0)).toBe(true);
  });

  test('dots at the edge are cut, not wrapped to the other side', () => {
    const points = new Points(2);
    points.push(0, 0, 0);
    points.push(9.9, 10, 0);
    const pixels = raster();
    paint(pixels, view, points, 0, 2, { ...ink, size: 3 });
    const coloured = [...pixels.words.keys()].filter((at) => pixels.words[at] !== 0);
    expect(coloured.every((at) => at % 10 <= 1 || at % 10 >= 8)).toBe(true);
    expect(coloured.length).toBeGreaterThan(0);
  });

  test('colours tell channels apart where that is wanted', () => {
    const points = new Points(10);
    points.push(2, 3, 0, 1);
    const pixels = raster();
    paint(pixels, view, points, 0, 1, { ...ink, by: 'channel' });
    expect(pixels.words[(9 - 3) * 10 + 2]).toBe(8);
  });

  test('a logarithmic axis', () => {
    const points = new Points(1);
    points.push(5, 10, 0);
    const pixels = raster();
    paint(pixels, { ...view, y0: 1, y1: 100, log: true }, points, 0, 1, ink);
    expect(pixels.words[4 * 10 + 5]).toBe(7);
  });

  test('the nearest point is found within reach', () => {
    const points = new Points(10);
    points.push(2, 3, 0);
    points.push(8, 8, 1);
    expect(nearest(raster(), view, points, 7, 1, 3)).toBe(1);
    expect(nearest(raster(), view, points, 5, 9, 2)).toBe(-1);
  });

  test('colours', () => {
    expect(word('#010203')).toBe(0xff030201);
    expect(word('rgb(1, 2, 3)')).toBe(0xff030201);
    expect(dotSize(100, 2)).toBe(6);
    expect(dotSize(1_000_000, 1)).toBe(1);
  });
});

describe('axes', () => {
  test('a view grows in steps and else stays the same', () => {
    const points = new Points(10);
    points.push(0.5, 0.05, 0);
    const first = grown(undefined, points, 'zero');
    expect(first).toEqual({ x0: 0, x1: 1, y0: 0, y1: 0.075, log: false });
    points.push(0.9, 0.06, 0);
    expect(grown(first, points, 'zero')).toEqual(first);
    points.push(1.1, 0.2, 0);
    const second = grown(first, points, 'zero');
    expect(second.x1).toBeGreaterThanOrEqual(1.1);
    expect(second.y1).toBeGreaterThanOrEqual(0.2);
  });

  test('a flow that is hidden leaves the scale to the others', () => {
    const points = new Points(10);
    points.push(0.5, 0.05, 0);
    points.push(0.6, null, 0);
    points.push(0.6, 4, 2);
    expect(grown(undefined, points.shown(new Set()), 'zero').y1).toBeGreaterThan(4);
    expect(grown(undefined, points.shown(new Set([2])), 'zero').y1).toBe(0.075);
    expect(grown(undefined, points.shown(new Set([0, 2])), 'zero').y1).toBeGreaterThan(0);
    points.clear();
    expect(points.shown(new Set([1])).least).toBe(Number.POSITIVE_INFINITY);
  });

  test('fitted and logarithmic views hold all values', () => {
    const points = new Points(10);
    for (const value of [0.0511, 0.0524, 0.0519]) points.push(1, value, 0);
    const fit = grown(undefined, points, 'fit');
    expect(fit.y0).toBeGreaterThan(0.05);
    expect(fit.y0).toBeLessThan(0.0511);
    expect(fit.y1).toBeGreaterThan(0.0524);
    const log = grown(fit, points, 'log');
    expect([log.y0, log.y1]).toEqual([0.01, 0.1]);
  });

  test('without a value there still is a view', () => {
    const points = new Points(10);
    points.push(1, null, 0);
    for (const scale of ['zero', 'fit', 'log'] as const) {
      const view = grown(undefined, points, scale);
      expect(view.y1).toBeGreaterThan(view.y0);
    }
  });

  test('marks', () => {
    expect(ticks(0, 10, 5)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(ticks(0.3, 0.9, 3).map((mark) => mark.toFixed(1))).toEqual(['0.4', '0.6', '0.8']);
    expect(ticks(1, 1, 5)).toEqual([]);
    expect(logTicks(0.01, 0.1).map((mark) => mark.toPrecision(1))).toEqual(['0.01', '0.02', '0.05', '0.1']);
    expect(niceAbove(0.21)).toBeCloseTo(0.3);
    expect(niceAbove(0)).toBe(1);
  });

  test('zooming keeps the place under the pointer', () => {
    const near = zoomed(view, 0.5, 0.25);
    expect(near.x0 + (near.x1 - near.x0) * 0.25).toBeCloseTo(2.5);
    expect(near.y1).toBe(10);
    expect(moved(view, 0.5)).toMatchObject({ x0: 5, x1: 15 });
  });
});
