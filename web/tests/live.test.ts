import { describe, expect, test } from 'vitest';
import type { Records } from '../src/api/events';
import { Grid, told } from '../src/run/grid';
import { LiveRun, recent } from '../src/run/live';

function batch(seq: number, more: Partial<Records> = {}): Records {
  return {
    seq, point: 0, repetition: 0, values: [], flows: ['voice', 'bulk'],
    t: [seq], flow: [0], channel: [0], latency: [0.05], throughput: [], so_far: [], limits: [], queues: [], shown: 1, counted: 1,
    ...more,
  };
}

describe('a live run', () => {
  test('records are kept and counted', () => {
    const run = new LiveRun(100);
    run.take(batch(0, { t: [0, 1, 2], flow: [0, 1, 0], channel: [0, 0, 3], latency: [0.05, null, 0.07], shown: 3, counted: 3 }), 0);
    run.take(batch(1, { t: [3], counted: 9 }), 100);
    expect(run.tally).toEqual({ received: 4, measured: 12, missed: 0 });
    expect(run.points.added).toBe(4);
    expect(run.points.lost).toBe(1);
    expect([...run.points.channel.slice(0, 4)]).toEqual([0, 0, 3, 0]);
  });

  test('what was sent again after a broken connection counts once', () => {
    const run = new LiveRun(100);
    for (const seq of [5, 6, 6, 5, 7]) run.take(batch(seq), seq);
    expect(run.tally).toEqual({ received: 3, measured: 3, missed: 0 });
    expect(run.points.added).toBe(3);
  });

  test('batches that never came are counted, those before the first are not', () => {
    const run = new LiveRun(100);
    for (const seq of [40, 41, 44, 46]) run.take(batch(seq), seq);
    expect(run.tally.missed).toBe(3);
  });

  test('of repetitions that are measured at once one is shown until it is over', () => {
    const run = new LiveRun(100);
    run.take(batch(0), 0);
    run.take(batch(1, { repetition: 1 }), 100);
    run.take(batch(2), 200);
    expect(run.shown?.repetition).toBe(0);
    expect(run.points.added).toBe(2);
    expect(run.tally.received).toBe(3);
    run.finished(0, 0);
    run.take(batch(3, { repetition: 1 }), 300);
    expect(run.shown?.repetition).toBe(1);
    expect(run.points.added).toBe(1);
  });

  test('one that falls silent is left after a second', () => {
    const run = new LiveRun(100);
    run.take(batch(0), 0);
    run.take(batch(1, { point: 1 }), 900);
    expect(run.shown?.point).toBe(0);
    run.take(batch(2, { point: 1 }), 1100);
    expect(run.shown?.point).toBe(1);
  });

  test('lines have the names of flows and links', () => {
    const run = new LiveRun(100);
    const queues = [{ link: 'trunk', direction: 'a → b', bytes: 1500, packets: 1, t: 0.5 }];
    run.take(batch(0, { t: [0.25], throughput: [{ flow: 1, bps: 1e6 }], queues }), 0);
    expect(run.throughput.labels).toEqual(['bulk']);
    expect(run.queues.labels).toEqual(['trunk, a → b']);
    expect(run.queues.x).toEqual([0.5]);
    expect(run.queues.y).toEqual([[1500]]);
  });

  test('now, in a few numbers', () => {
    const run = new LiveRun(100);
    run.take(batch(0, { t: [0, 1, 2, 3], latency: [0.01, 0.03, null, 0.02], flow: [0, 0, 0, 0], channel: [0, 0, 0, 0] }), 0);
    const now = recent(run.points, 3);
    expect(now.count).toBe(3);
    expect(now.lost).toBe(1);
    expect(now.median).toBeCloseTo(0.03);
  });
});

describe('the grid of repetitions', () => {
  const points = [
    { index: 0, choice: [0], values: ['1'], repetitions: [{ index: 0, partial: false, summarised: true, traces: [], sounds: [], audio: [] }] },
    { index: 1, choice: [1], values: ['4'], repetitions: [{ index: 1, partial: true, summarised: true, traces: [], sounds: [], audio: [] }] },
  ];

  test('what was measured before is there', () => {
    const { rows } = new Grid(points, 2, false);
    expect(rows.map(({ label, cells }) => [label, ...cells])).toEqual([['1', 'done', 'waiting'], ['4', 'waiting', 'partial']]);
    expect(told(rows[1]!)).toBe('0 of 2 done, 1 interrupted');
    expect(told(new Grid(points, 2, true).rows[1]!)).toBe('0 of 2 done, 1 being measured');
  });

  test('what is done stays done, and what is not news is told so', () => {
    const grid = new Grid(points, 2, true);
    expect(grid.mark(0, 1, 'measuring')).toBe(true);
    expect(grid.mark(0, 1, 'measuring')).toBe(false);
    expect(grid.mark(0, 1, 'done')).toBe(true);
    expect(grid.mark(0, 1, 'measuring')).toBe(false);
    expect(grid.mark(9, 0, 'done')).toBe(false);
  });

  test('what was being measured when all was stopped was interrupted', () => {
    const grid = new Grid(points, 2, true);
    grid.mark(0, 1, 'measuring');
    expect(grid.end(false)).toBe(true);
    expect(grid.rows.map(({ cells }) => cells)).toEqual([['done', 'partial'], ['waiting', 'partial']]);
    expect(grid.end(false)).toBe(false);
    expect(grid.end(true)).toBe(true);
    expect(grid.rows.flatMap(({ cells }) => cells).every((cell) => cell === 'done')).toBe(true);
  });

  test('a search measures more often than was planned', () => {
    const grid = new Grid(points, 2, true);
    grid.mark(0, 4, 'done');
    expect(grid.rows[0]?.cells).toEqual(['done', 'waiting', 'waiting', 'waiting', 'done']);
  });
});
