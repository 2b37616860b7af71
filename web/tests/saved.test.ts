import { expect, test } from 'vitest';
import { ApiError, bytes, get, hold } from '../src/api/client';

test('a saved file answers what it has, a trace with all of it, and nothing else', async () => {
  const body = (text: string) => new TextEncoder().encode(text);
  hold(new Map([['/runs/1', body('{"a":1}')], ['/runs/1/points/0/repetitions/0/flows/böses %/latency', body('abc')], ['/x/sound.wav?member=0&of=sent', body('wav')]]));
  expect(await get('/runs/1')).toEqual({ a: 1 });
  const flow = `/runs/1/points/0/repetitions/0/flows/${encodeURIComponent('böses %')}`;
  expect((await bytes(`${flow}/latency?from=1&to=2&buckets=2000`)).byteLength).toBe(3);
  expect((await bytes('/x/sound.wav?member=0&of=sent')).byteLength).toBe(3);
  await expect(get('/runs/2')).rejects.toThrow(ApiError);
});
