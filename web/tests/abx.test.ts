import { describe, expect, it } from 'vitest';
import { answered, begun, chance, chanceText, correct, drawn, ended } from '../src/results/abx';
import type { Side } from '../src/results/pair.svelte';

describe('the chance of guessing', () => {
  it('is the upper tail of the binomial distribution', () => {
    // 1 of 2^10 ways is right in all, 10 more in nine, 45 more in eight.
    expect(chance(10, 10)).toBe(1 / 1024);
    expect(chance(10, 9)).toBe(11 / 1024);
    expect(chance(10, 8)).toBe(56 / 1024);
    expect(chance(16, 12)).toBe(2517 / 65_536);
    expect(chance(7, 0)).toBe(1);
    expect(chance(0, 0)).toBe(1);
    expect(chance(1, 1)).toBe(0.5);
  });

  it('is exact for many trials too', () => {
    expect(chance(2001, 1001)).toBe(0.5);
    expect(chance(500, 500) * 2 ** 500).toBe(1);
    expect(chance(1000, 500) + chance(1000, 501)).toBeCloseTo(1, 14);
  });

  it('is said with two digits', () => {
    expect(['5.5', '50', '100', '0.098'].map((text) => `${text}\u202f%`)).toEqual([56 / 1024, 0.5, 1, 1 / 1024].map(chanceText));
    expect(chanceText(1e-5)).toBe('below 0.01\u202f%');
  });
});

describe('a blind test', () => {
  const of = (xs: Side[]) => () => xs.shift() ?? 0;

  it('draws another X for each trial and counts what was right', () => {
    const draw = of([1, 0, 1, 1]);
    let test = begun(draw);
    for (const answer of [1, 1, 1] as const) test = answered(test, answer, draw);
    expect(test.trials).toEqual([{ x: 1, answer: 1 }, { x: 0, answer: 1 }, { x: 1, answer: 1 }]);
    expect([test.x, correct(test), test.isOver]).toEqual([1, 2, false]);
  });

  it('takes no answer after its end', () => {
    const over = ended(answered(begun(of([0])), 0, of([1])));
    expect(answered(over, 1)).toBe(over);
    expect([over.trials.length, correct(over)]).toEqual([1, 1]);
  });

  it('begins anew with nothing', () => {
    expect(begun(of([0]))).toEqual({ x: 0, trials: [], isOver: false });
  });

  it('draws either sound about as often', () => {
    const ones = Array.from({ length: 2000 }, drawn).filter((x) => x === 1).length;
    // Six standard deviations.
    expect(Math.abs(ones - 1000)).toBeLessThan(135);
  });
});
