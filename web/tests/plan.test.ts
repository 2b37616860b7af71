import { expect, test } from 'vitest';
import { limitFigure } from '../src/advise/plan';

test.each([
  // What a verdict rests on is the bound on the side of the limit, as on the terminal.
  ['< 150 ms', 'flow.voice.latency.p99', 0.1, 0.02, '100 ms, at most 120 ms'],
  ['< 150 ms', 'flow.voice.latency.p99', 0.2, 0.02, '200 ms, at least 180 ms'],
  ['> 400 kbit/s', 'flow.bulk.throughput', 379_000, 12_000, '379 kbit/s, at most 391 kbit/s'],
  ['>= 400 kbit/s', 'flow.bulk.throughput', 450_000, 50_000, '450 kbit/s, at least 400 kbit/s'],
  ['< 1 %', 'flow.voice.loss', 0, 0.0012, '0 %, at most 0.12 %'],
  ['<= 1 %', 'flow.voice.loss', 0.01, 0, '1 %'],
  ['< 1 %', 'flow.voice.loss', 0.005, null, '0.5 %'],
  ['< 1 %', 'flow.voice.loss', null, null, '–'],
])('a limit %s on %s: mean %d with a bound %d away', (condition, key, mean, half_width, shown) => {
  expect(limitFigure({ key, condition }, { mean, half_width })).toBe(shown);
});
