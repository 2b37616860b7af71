/**
 * A blind test: X is one of two sounds at random, and a listener says which. Nothing is told of the answers before the end, so that
 * nobody stops when they are good.
 */
import type { Side } from './pair.svelte';

/** What a listener chooses to hear. */
export type Ear = 'A' | 'B' | 'X';

export interface Trial {
  x: Side;
  answer: Side;
}

export interface Test {
  /** Which sound X is now. */
  x: Side;
  trials: readonly Trial[];
  isOver: boolean;
}

/** One of two sounds, each as likely as the other, and not to be foreseen. */
export function drawn(): Side {
  return ((crypto.getRandomValues(new Uint8Array(1))[0] as number) & 1) as Side;
}

/** Which sound that is. */
export function sideOf(ear: Ear, test: Test | undefined): Side {
  if (ear === 'X') return test?.x ?? 1;
  return ear === 'A' ? 0 : 1;
}

export function begun(draw: () => Side = drawn): Test {
  return { x: draw(), trials: [], isOver: false };
}

/** The test after an answer, with another X. */
export function answered(test: Test, answer: Side, draw: () => Side = drawn): Test {
  return test.isOver ? test : { x: draw(), trials: [...test.trials, { x: test.x, answer }], isOver: false };
}

/** The test at its end: an X without an answer does not count. */
export function ended(test: Test): Test {
  return { ...test, isOver: true };
}

export function correct({ trials }: Test): number {
  return trials.filter(({ x, answer }) => x === answer).length;
}

/** How likely guessing alone has at least so many correct answers: the upper tail of the binomial distribution with p = 1/2, exactly. */
export function chance(trials: number, correct: number): number {
  let [ways, sum] = [1n, 0n];
  for (let k = 0; k <= trials; k += 1) {
    if (k >= correct) sum += ways;
    ways = (ways * BigInt(trials - k)) / BigInt(k + 1);
  }
  // 2^1000 keeps what is small; a number has 53 bits of it.
  return Number((sum << 1000n) >> BigInt(trials)) / 2 ** 1000;
}

/** A share of chance in words: `5.5 %`, `below 0.01 %`. */
export function chanceText(share: number): string {
  if (share < 1e-4) return 'below 0.01\u202f%';
  return `${Number((share * 100).toPrecision(2))}\u202f%`;
}
