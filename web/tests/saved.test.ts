import { expect, test } from 'vitest';
import { ApiError, bytes, get, has, hold } from '../src/api/client';
import { placeOf } from '../src/results/rewind';

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
  const answer = { step: 0.01, sent: [0.5, null, 0.7, 0.8], latency: [0.0515, null, null, 0.0516] };
  hold(new Map([['/a/flows/voice/moments', new TextEncoder().encode(JSON.stringify(answer))]]));
  expect([has('/a/flows/voice/moments'), has('/a/flows/bulk/moments')]).toEqual([true, false]);
  const position = async (at: number, latency: number | null) => (await placeOf('/a/flows/voice', at, latency, signal)).position;
  // Dots have latencies of single precision; a lost message has none.
  expect(await position(0.8, Math.fround(0.0516))).toBeCloseTo(0.03);
  expect(await position(0.7, null)).toBeCloseTo(0.02);
  // A message of another channel, sent at the same time.
  await expect(position(0.8, Math.fround(0.0515))).rejects.toThrow('not in the file');
});
