/** Limits of a plan as numbers, and verdicts as words. */

import type { Quantity } from '../results/quantity';
import type { Verdict } from './types';

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

/** What the figure of a limit counts, from the end of its key. */
export function limitQuantity(key: string): { quantity: Quantity; unit: 's' | 'bit/s' | 'ratio' | '' } {
  if (/\.(loss|late|loss-and-late|affected|ppl)$/.test(key)) return { quantity: 'share', unit: 'ratio' };
  if (/\.throughput(\.|$)/.test(key)) return { quantity: 'rate', unit: 'bit/s' };
  if (/\.(latency|jitter|margin|start-up|mouth-to-ear|silence|silence-longest|sojourn)(\.|$)/.test(key)) return { quantity: 'time', unit: 's' };
  return { quantity: /\.(r|mos|fairness)$/.test(key) ? 'number' : 'count', unit: '' };
}
