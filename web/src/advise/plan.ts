/** Limits of a plan as numbers, and verdicts as words. */

import { show, type Quantity } from '../results/quantity';
import type { Trial, Verdict } from './types';

type Limit = { key: string; condition: string };
type Judged = Pick<Trial['limits'][number], 'mean' | 'half_width'>;

export const VERDICTS: Record<Verdict, { text: string; kind: 'good' | 'bad' | 'warn' }> = {
  kept: { text: 'keeps the limits', kind: 'good' },
  broken: { text: 'breaks a limit', kind: 'bad' },
  undecided: { text: 'not decided', kind: 'warn' },
  'not-applicable': { text: 'no members', kind: 'warn' },
};

/** Factors to base units of what limits are written in. */
const UNITS: Record<string, number> = {
  '': 1, '%': 0.01, s: 1, ms: 1e-3, us: 1e-6, 'µs': 1e-6, ns: 1e-9, min: 60, h: 3600,
  'bit/s': 1, 'kbit/s': 1e3, 'Mbit/s': 1e6, 'Gbit/s': 1e9, B: 1, KiB: 1024, MiB: 1048576, kB: 1e3, MB: 1e6,
};

/** The bound of `< 150 ms` in base units; `undefined` if it is not written so. */
export function bound(condition: string): number | undefined {
  const [, number, unit = ''] = /^\s*(?:<=|>=|<|>|≤|≥)\s*(-?[\d.]+)\s*(\S*)\s*$/.exec(condition) ?? [];
  const factor = UNITS[unit];
  if (number === undefined || factor === undefined) return undefined;
  const value = Number(number) * factor;
  return Number.isFinite(value) ? value : undefined;
}

/** The bound on which a verdict rests, on the side of the limit: above the mean or below it. Equal repetitions have none. */
export function verdictBound(condition: string, { mean, half_width }: Judged): { word: 'at most' | 'at least'; at: number } | undefined {
  const limit = bound(condition);
  // Equal repetitions differ by rounding only.
  if (limit === undefined || mean === null || half_width === null || half_width <= Math.abs(mean) * 1e-9) return undefined;
  const [, operator = ''] = /^\s*(<=|>=|<|>|≤|≥)/.exec(condition) ?? [];
  const isUpper = '<=≤'.includes(operator);
  const holds = mean === limit ? !'<>'.includes(operator) : mean < limit === isUpper;
  return holds === isUpper ? { word: 'at most', at: mean + half_width } : { word: 'at least', at: mean - half_width };
}

/** The figure of a limit as the terminal has it: `100 ms, at most 120 ms`. */
export function limitFigure({ key, condition }: Limit, judged: Judged | undefined): string {
  const { quantity } = limitQuantity(key);
  const rests = judged && verdictBound(condition, judged);
  return show(quantity, judged?.mean) + (rests ? `, ${rests.word} ${show(quantity, rests.at)}` : '');
}

/** What the figure of a limit counts, from the end of its key. */
export function limitQuantity(key: string): { quantity: Quantity; unit: 's' | 'bit/s' | 'ratio' | '' } {
  if (/\.(loss|late|loss-and-late|affected|ppl)$/.test(key)) return { quantity: 'share', unit: 'ratio' };
  if (/\.throughput(\.|$)/.test(key)) return { quantity: 'rate', unit: 'bit/s' };
  if (/\.(latency|jitter|margin|start-up|mouth-to-ear|silence|silence-longest|sojourn)(\.|$)/.test(key)) return { quantity: 'time', unit: 's' };
  return { quantity: /\.(r|mos|fairness)$/.test(key) ? 'number' : 'count', unit: '' };
}
