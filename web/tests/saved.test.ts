import { expect, test } from 'vitest';
import { ApiError, bytes, get, has, hold } from '../src/api/client';
import { within } from '../src/results/latency';
import { during, nearestTo, placeOf, recorded } from '../src/results/rewind';

test('a saved file answers what it has, a trace with all of it, and nothing else', async () => {
  const body = (text: string) => new TextEncoder().encode(text);
  hold(new Map([['/runs/1', body('{"a":1}')], ['/runs/1/points/0/repetitions/0/flows/böses %/latency', body('abc')], ['/x/sound.wav?member=0&of=sent', body('wav')]]));
  expect(await get('/runs/1')).toEqual({ a: 1 });
  const flow = `/runs/1/points/0/repetitions/0/flows/${encodeURIComponent('böses %')}`;
  expect((await bytes(`${flow}/latency?from=1&to=2&buckets=2000`)).byteLength).toBe(3);
  expect((await bytes('/x/sound.wav?member=0&of=sent')).byteLength).toBe(3);
  await expect(get('/runs/2')).rejects.toThrow(ApiError);
});

test('a saved file finds the place of a dot in the sound that it has', async () => {
  const { signal } = new AbortController();
  const answer = { position: [0, 0.01, 0.02, 0.03], sent: [0.5, null, 0.7, 0.8], latency: [0.0515, null, null, 0.0516] };
  hold(new Map([['/a/flows/voice/moments', new TextEncoder().encode(JSON.stringify(answer))]]));
  expect([has('/a/flows/voice/moments'), has('/a/flows/bulk/moments')]).toEqual([true, false]);
  const position = async (at: number, latency: number | null) => (await placeOf('/a/flows/voice', at, latency, signal)).position;
  // Dots have latencies of single precision; a lost message has none.
  expect(await position(0.8, Math.fround(0.0516))).toBeCloseTo(0.03);
  expect(await position(0.7, null)).toBeCloseTo(0.02);
  // A message of another channel, sent at the same time.
  await expect(position(0.8, Math.fround(0.0515))).rejects.toThrow('not in the file');
});

test('a moment without packets says what was recorded of it, and no cause', () => {
  const moment = { point: 0, repetition: 0, flow: 'voice', at: 1.25, latency: 0.412, from: 0.5, to: 2 };
  const [flows, stalls]: [[], []] = [[], []];
  const queue = (link: string, bytes: number[]) => ({ link, t: [0, 1, 1.5], bytes });
  const found = recorded(moment, { flows, stalls, queues: [queue('access a>b', [0, 100, 0]), queue('trunk a>b', [0, 34_000, 60_000])] });
  expect(found.sentence).toBe('412\u202fms; when it was sent, 34.0\u202fkB waited at `trunk a → b`');
  expect([found.message.received, found.queues, found.remedies]).toEqual([1.662, [], undefined]);
  expect(recorded({ ...moment, latency: undefined }, { flows, stalls, queues: [queue('trunk a>b', [0, 0, 9])] }).sentence).toBe('It was lost; when it was sent, nothing waited at a link');
  expect(recorded(moment, { flows, stalls, queues: [] }).sentence).toBe('412\u202fms');
  // Of TCP's windows and the machine's stalls it has the part around it.
  const bulk = { flow: 'bulk', t: [], throughput: [], sampled: [0, 1, 2, 3], retransmissions: [0, 0, 1, 1], retransmissions_by_cause: {}, window: [1, 2, 3, 4], in_flight: [], slow_start_threshold: [], round_trip: [], pacing_rate: [] };
  const more = recorded(moment, { flows: [bulk], queues: [], stalls: [[0.1, 0.2], [0.4, 0.6], [2.5, 2.6]] });
  expect(more.connections).toEqual([{ flow: 'bulk', member: 'bulk', t: [1], window: [2] }]);
  expect(more.stalls).toEqual([[0.4, 0.6]]);
});

test('the part of a recording begins with the value that held then', () => {
  const steps = { t: [0, 1, 2, 3], bytes: [5, 6, 7, 8] };
  expect(during(steps, 1.5, 3)).toEqual({ t: [1, 2], bytes: [6, 7] });
  expect(during(steps, 1, 1.5)).toEqual({ t: [0, 1], bytes: [5, 6] });
  const dots = { exact: true, t: Float64Array.of(0, 1, 2), latency: Float32Array.of(3, 4, 5), lost: Float64Array.of(0.5, 1.5) };
  expect(within(dots, 1, 2)).toEqual({ exact: true, t: Float64Array.of(1), latency: Float32Array.of(4), lost: Float64Array.of(1.5) });
});

test('a moment is heard by the nearest message that the file has', async () => {
  hold(new Map([['/a/flows/voice/moments', new TextEncoder().encode(JSON.stringify({ position: [0, 0.01, 0.02, 0.03], sent: [0.5, null, 0.7, 0.8], latency: [] }))]]));
  expect(await nearestTo('/a/flows/voice', 0.74)).toEqual({ member: 0, channel: 0, position: 0.02, at: 0.7 });
});
