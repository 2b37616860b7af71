import { afterEach, describe, expect, test, vi } from 'vitest';
import type { FormKey, Prediction } from '../src/api/types';
import { dialOf, turned } from '../src/editor/form/dial';
import { linkLabel } from '../src/editor/canvas/graph';
import { ofFlow, ofLink } from '../src/editor/prediction';
import { Predictor } from '../src/editor/predictor.svelte';

const key = (part: Partial<FormKey>) => ({ name: 'x', doc: '', shape: 'text', ...part }) as FormKey;

describe('a slider', () => {
  test.each([
    [{ shape: 'rate' }, '2 Mbit/s', '0.2 Mbit/s', '20 Mbit/s'],
    [{ shape: 'duration' }, '51.5 ms', '5.15 ms', '515 ms'],
    [{ shape: 'integer', min: '1', max: '100' }, 30, 3, 100],
    [{ shape: 'integer', min: '1' }, 2, 1, 20],
    [{ shape: 'ratio' }, '20 %', '2 %', '100 %'],
    [{ shape: 'limit' }, '25 packets', '3 packets', '250 packets'],
  ] as const)('of %o at %s goes from %s to %s', (part, value, least, most) => {
    const dial = dialOf(key(part as Partial<FormKey>), value, () => {});
    expect([turned(dial!, -1), turned(dial!, 0), turned(dial!, 1)]).toEqual([least, value, most]);
  });

  test('what has no number, or is a seed, has none', () => {
    expect(dialOf(key({ shape: 'text' }), '12', () => {})).toBeUndefined();
    expect(dialOf(key({ shape: 'duration' }), undefined, () => {})).toBeUndefined();
    expect(dialOf(key({ shape: 'duration' }), '0 ms', () => {})).toBeUndefined();
    expect(dialOf(key({ shape: 'integer', name: 'seed' }), 7, () => {})).toBeUndefined();
    expect(dialOf(key({ shape: 'duration', default: '20 ms' }), undefined, () => {})?.base).toBe(20);
  });
});

describe('a prediction', () => {
  const estimate = (mean: number) => ({ mean, repetitions: 1 });
  const found = (outcome: 'holds' | 'broken', loss: number) =>
    ({
      report: {
        limits: [{ key: 'flow.voice.latency.p99', condition: '< 150 ms', runs: [{ outcome }] }],
        points: [
          {
            runs: [
              {
                flows: [{ flow: 'voice', measured: 'round-trip', figures: { latency_p99: estimate(0.30388), loss: estimate(loss), mos: estimate(4.36) } }],
                links: [
                  { link: 'trunk a>b', utilisation: estimate(0.983), dropped: [{ 'queue-full': 11, policed: 2 }] },
                  { link: 'trunk b>a', utilisation: estimate(0.1), dropped: [{}] },
                  { link: 'trunk-2 a>b', utilisation: estimate(0.5), sojourn_p99: estimate(0.012), dropped: [{}] },
                  { link: 'air a>b', utilisation: null, dropped: [{}] },
                ],
                media: [],
              },
            ],
          },
        ],
      },
    }) as unknown as Prediction;

  test('of a flow says whether its limits hold, and that it is a round trip', () => {
    expect(ofFlow(found('broken', 0.02), 'voice', false)).toEqual({
      text: '304 ms RTT · 2 % lost · MOS 4.4',
      fate: 'bad',
      title: 'Predicted for voice: round trip p99 304 ms, 2 % lost, MOS 4.4; breaks latency.p99 < 150 ms.',
    });
    expect(ofFlow(found('holds', 0), 'voice', false)).toMatchObject({ text: '304 ms RTT · MOS 4.4', fate: 'good' });
    expect(ofFlow(found('holds', 0), 'bulk', true)).toBeUndefined();
  });

  test('of a flow leaves out the limits of a bundle with its name', () => {
    const prediction = found('broken', 0.02);
    prediction.report.limits[0]!.key = 'bundle.voice.fairness';
    expect(ofFlow(prediction, 'voice', false)?.fate).toBe('plain');
  });

  test('of a link is of its busier direction, with the drops of both', () => {
    expect(ofLink(found('holds', 0), 'trunk')).toMatchObject({ text: '98 % used · 13 dropped', fate: 'bad' });
    expect(ofLink(found('holds', 0), 'trunk-2')).toMatchObject({ text: '50 % used', fate: 'plain' });
    expect(ofLink(found('holds', 0), 'none')).toBeUndefined();
    // What has no queue waits for nothing, and what has no rate is never busy.
    expect(ofLink(found('holds', 0), 'trunk')?.title).toBe('Predicted for trunk: 98 % used, 13 dropped.');
    expect(ofLink(found('holds', 0), 'trunk-2')?.title).toBe('Predicted for trunk-2: 50 % used, queue 12 ms at p99.');
    expect(ofLink(found('holds', 0), 'air')).toBeUndefined();
  });
});

describe('the predictor', () => {
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  test('what somebody waits for is not ended by the short one that was due', async () => {
    vi.useFakeTimers();
    vi.stubGlobal('localStorage', { getItem: () => null });
    const asked: { budget_ms?: number }[] = [];
    vi.stubGlobal('fetch', async (_: string, init: RequestInit) => {
      asked.push(JSON.parse(String(init.body)) as { budget_ms?: number });
      return new Response('{}');
    });
    const predictor = new Predictor();
    predictor.follow('a');
    void predictor.ask('a', true);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(asked.map(({ budget_ms }) => budget_ms)).toEqual([8_000]);
  });

  test('follows a drag: each simulation ends before that of the newest text begins', async () => {
    vi.useFakeTimers();
    vi.stubGlobal('localStorage', { getItem: () => null });
    const [asked, ended]: [string[], string[]] = [[], []];
    vi.stubGlobal('fetch', (_: string, init: RequestInit) => {
      const { text } = JSON.parse(String(init.body)) as { text: string };
      asked.push(text);
      return new Promise((resolve, reject) => {
        const answer = setTimeout(() => resolve(new Response(JSON.stringify({ text }))), 50);
        const started = Date.now();
        init.signal?.addEventListener('abort', () => {
          if (Date.now() - started >= 50) return;
          clearTimeout(answer);
          ended.push(text);
          reject(new DOMException('', 'AbortError'));
        });
      });
    });
    const predictor = new Predictor();
    const seen: unknown[] = [];
    for (let step = 0; step < 10; step += 1) {
      predictor.follow(String(step), true);
      await vi.advanceTimersByTimeAsync(20);
      seen.push((predictor.shown as { text?: string } | undefined)?.text);
    }
    await vi.advanceTimersByTimeAsync(200);
    expect([...new Set(seen)]).toEqual([undefined, '0', '2', '4', '7']);
    expect([asked.at(-1), ended, predictor.isStale]).toEqual(['9', [], false]);
    // A key ends it.
    predictor.follow('10', true);
    await vi.advanceTimersByTimeAsync(10);
    predictor.follow('11');
    await vi.advanceTimersByTimeAsync(100);
    expect([ended, asked.at(-1), predictor.isStale]).toEqual([['10'], '11', false]);
  });
});

test('a link says what it does to packets', () => {
  const link = { name: 'l', label: '2 Mbit/s · 10 ms', between: ['a', 'b'], keys: { loss: '2 %', jitter: { kind: 'normal', deviation: '1 ms' } } };
  expect(linkLabel(link as never)).toBe('2 Mbit/s · 10 ms · loss 2 % · jitter normal');
});
