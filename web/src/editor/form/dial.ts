/** A slider for the number of a key, whatever its unit. */

import type { FormKey, Json } from '../../api/types';

export interface Dial {
  /** The key that it turns. */
  key: FormKey;
  /** The value in the middle of the slider. */
  base: number;
  unit: string;
  write: (value: Json) => void;
}

/** How far a slider goes to either side: ten times as much, or a tenth. */
const REACH = 10;

/** The slider of a key with a number, or with one by default; nothing for other keys. */
export function dialOf(key: FormKey, value: Json | undefined, write: (value: Json) => void): Dial | undefined {
  const shapes: FormKey['shape'][] = ['duration', 'durations', 'rate', 'bytes', 'sizes', 'ratio', 'integer', 'number', 'limit'];
  if (key.name === 'seed' || !(shapes.includes(key.shape) || key.share)) return undefined;
  const [, number, unit = ''] = /^(\d+\.?\d*|\.\d+)\s*(\D*)$/.exec(String(value ?? key.default ?? '').trim()) ?? [];
  const base = Number(number);
  return number === undefined || !(base > 0) ? undefined : { key, base, unit: unit.trim(), write };
}

/** The value where a slider from -1 to 1 stands: a few digits, and none that the key does not take. */
export function turned({ key, base, unit }: Dial, at: number): Json {
  const value = base * REACH ** at;
  const isWhole = key.shape === 'integer' || unit === 'packets' || unit === 'B';
  const least = Number(/^\d+/.exec(key.min ?? '')?.[0] ?? 0);
  const most = unit === '%' ? 100 : key.shape === 'integer' ? Number(/^\d+$/.exec(key.max ?? '')?.[0] ?? Infinity) : Infinity;
  const round = isWhole ? Math.max(Math.round(value), key.shape === 'integer' ? least : 1) : Number(value.toPrecision(3));
  const bounded = Math.min(round, most);
  if (unit !== '') return `${bounded} ${unit}`;
  return typeof key.default === 'string' && key.shape !== 'integer' && key.shape !== 'number' && key.shape !== 'ratio' ? String(bounded) : bounded;
}
