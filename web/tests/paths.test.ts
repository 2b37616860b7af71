import { expect, test } from 'vitest';
import { over, verified } from '../src/paths/words';

test('an experiment over a path has it as the profile of its link, and nothing else of a link', () => {
  const text = over('studio.example.org');
  expect(text).toMatch(/^name = "over studio.example.org"/);
  expect(text).toContain('between = ["a", "b"]\nprofile = "studio.example.org"\n');
  expect(text).not.toMatch(/^(rate|delay)/m);
});

test('what was predicted and measured is cut into cells', () => {
  expect(verified(['a call beside 4 transfers, 2 Mbit/s, delay p95: predicted 20 ms (18 ms to 22 ms), measured 21 ms, off by 5 %', 'anything else'])).toEqual([
    ['a call beside 4 transfers, 2 Mbit/s', 'delay p95', '20 ms (18 ms to 22 ms)', '21 ms', '5 %'],
    ['anything else'],
  ]);
});
