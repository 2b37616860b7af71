import { expect, test, vi } from 'vitest';
import { atLeast, simulated, Watch } from '../src/run/band';
import { Points } from '../src/run/points';

const BANDS = { voice: { least: 0.02, most: 0.04 } };

/** What is said after so many seconds of 100 messages, of latencies by second and place. */
function said(seconds: number, latency: (second: number, i: number) => number): string[] {
  const points = new Points(10_000);
  const watch = new Watch();
  let told: string[] = [];
  for (let second = 0; second < seconds; second += 1) {
    for (let i = 0; i < 100; i += 1) points.push(second + i / 100, latency(second, i), 0);
    told = watch.take(points, ['voice'], BANDS);
  }
  return told;
}

test('chance is that of Poisson', () => {
  expect(atLeast(0, 3)).toBe(1);
  expect(atLeast(1, 1)).toBeCloseTo(1 - Math.exp(-1), 12);
  expect(atLeast(5, 1)).toBeCloseTo(0.00366, 5);
});

test('what keeps to the band, or leaves it for a moment, is not mentioned', () => {
  expect(said(8, (_, i) => 0.02 + (i / 100) * 0.02)).toEqual([]);
  // One of a hundred in each second, and one bad second.
  expect(said(8, (_, i) => (i === 0 ? 0.1 : 0.03))).toEqual([]);
  expect(said(8, (second) => (second === 3 ? 0.1 : 0.03))).toEqual([]);
});

test('what leaves it for three seconds is said, with what would fit better', () => {
  expect(said(3, () => 0.1)).toEqual([]);
  const [later] = said(5, () => 0.1);
  expect(later).toMatch(/^voice has left the simulated band since 0 s: 100 % of its messages take longer than 40\.0.ms/);
  expect(later).toMatch(/a path with 80\.0.ms more delay would fit better/);
  expect(said(6, (second, i) => (second > 1 && i % 4 === 0 ? 0.09 : 0.021))[0]).toMatch(/since 2 s: 25 % .* more traffic, jitter, or a lower rate would fit better/);
  expect(said(5, () => 0.001)[0]).toMatch(/take less than 20\.0.ms.* with 19\.0.ms less delay/);
  // It is over when it keeps to the band again.
  expect(said(9, (second) => (second < 5 ? 0.1 : 0.03))).toEqual([]);
});

test('the bands of a job come from the server, by point and flow', async () => {
  const told = [
    { values: ['1'], flow: 'voice', least_s: 0.02, most_s: 0.04 },
    { values: ['2'], flow: 'voice', least_s: 0.03, most_s: 0.05 },
  ];
  const fetched = vi.spyOn(globalThis, 'fetch').mockResolvedValue(new Response(JSON.stringify(told)));
  expect(await simulated('a-1')).toEqual({ '1': BANDS, '2': { voice: { least: 0.03, most: 0.05 } } });
  expect(fetched.mock.calls[0]?.[0]).toBe('/api/v1/jobs/a-1/prediction');
  fetched.mockRestore();
});

test('a short repetition is judged by shorter parts', () => {
  const points = new Points(1_000);
  const watch = new Watch();
  watch.length = 0.1;
  for (let i = 0; i < 100; i += 1) points.push(i / 100, 0.1, 0);
  expect(watch.take(points, ['voice'], BANDS)[0]).toMatch(/since 0 s: 100 % .* take longer than 40\.0.ms/);
});
