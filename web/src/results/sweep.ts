/** The axis of what was swept: its ticks are the values themselves. */

import type { ChartAxis } from '../ui/chart';
import type { Axis } from './types';
import { shortKey } from './words';

/** An axis for a swept key, with a little room at both ends, so that the first and the last dot are whole. */
export function sweptAxis(axis: Axis): ChartAxis {
  // In one unit it stands at the axis; where the file has several, at each value as there.
  const { unit } = axis;
  const isOneUnit = unit !== '' && axis.values.every((value) => value.endsWith(` ${unit}`));
  const label = shortKey(axis.key) + (isOneUnit ? `, ${unit}` : '');
  const places = [...new Set(axis.numbers ?? axis.values.keys())].sort((a, b) => a - b);
  const [min, max] = [places[0] ?? 0, places.at(-1) ?? 1];
  const log = axis.numbers !== null && isLogarithmic(places);
  const shared = { label, unit: '', log, ticks: places.map((at) => ({ at, text: text(axis, at, isOneUnit) })) };
  if (log) {
    const room = (max / min) ** 0.04;
    return { ...shared, min: min / room, max: max * room };
  }
  // Words stand apart as fields of a table do.
  const room = (axis.numbers ? (max - min) * 0.04 : 0.3) || 0.5;
  return { ...shared, min: min - room, max: max + room };
}

/** How values over it are drawn: nothing lies between two words. */
export function kindOver(axis: Axis): 'line' | 'scatter' {
  return axis.numbers ? 'line' : 'scatter';
}

/** Whether rising numbers were chosen so that equal factors make equal steps. Reports judge it in the same way. */
export function isLogarithmic(numbers: readonly number[]): boolean {
  const [min, max] = [numbers[0] ?? 0, numbers.at(-1) ?? 0];
  if (!(min > 0) || numbers.length < 3) return false;
  const factors = numbers.slice(1).map((number, i) => number / (numbers[i] as number));
  const uneven = Math.max(...factors) / Math.min(...factors);
  return max / min >= 100 || (max / min >= 16 && uneven <= 1.6);
}

function text(axis: Axis, at: number, isOneUnit: boolean): string {
  const value = axis.values[axis.numbers?.indexOf(at) ?? at] ?? '';
  return (isOneUnit ? value.slice(0, -axis.unit.length - 1) : word(value, axis.values)).replace(/^-/, '\u2212');
}

/** Of a table its kind: the rest is too long to stand below a tick, and needed only where several have the same. */
function word(value: string, all: readonly string[]): string {
  const isAlone = all.filter((other) => kind(other) === kind(value)).length === 1;
  return isAlone ? kind(value) : value.replaceAll(/[{}"]|\bkind = | =/g, '').trim();
}

function kind(value: string): string {
  return /^\{[^}]*\bkind = "([^"]+)"/.exec(value)?.[1] ?? value;
}
