/**
 * Numbers as a person reads them: one unit per column or axis where it suits all of it, as many digits as mean something.
 *
 * Figures arrive in base units: `s`, `bit/s`, `1` (a share or a plain number), `B`, `count`. These are the rules of the
 * report, so that a figure reads the same on the page, in the terminal and in the HTML file.
 */

import type { components } from '../api/schema';

type Schemas = components['schemas'];

/** What a number counts, in its base unit. */
export type Quantity = Schemas['FigureQuantity'];

/** A unit with the factor from the base unit to it. */
export interface Unit {
  name: string;
  factor: number;
}

/** A mean over repetitions, as the report gives it; a bare mean has no confidence interval. */
export type Estimate = Pick<Schemas['Estimate'], 'mean'> & Partial<Schemas['Estimate']>;

/** The unit in which a column is read best whose largest value is `largest`, in the base unit. */
export function unitFor(quantity: Quantity, largest: number): Unit {
  const size = Math.abs(largest);
  switch (quantity) {
    case 'time':
      if (size >= 10) return { name: 's', factor: 1 };
      if (size >= 1e-3 || size === 0) return { name: 'ms', factor: 1e3 };
      return size >= 1e-6 ? { name: 'µs', factor: 1e6 } : { name: 'ns', factor: 1e9 };
    case 'rate':
      if (size >= 1e10) return { name: 'Gbit/s', factor: 1e-9 };
      if (size >= 1e7) return { name: 'Mbit/s', factor: 1e-6 };
      return size >= 1e3 || size === 0 ? { name: 'kbit/s', factor: 1e-3 } : { name: 'bit/s', factor: 1 };
    case 'share':
      return { name: '%', factor: 100 };
    case 'bytes':
      if (size >= 10 * 2 ** 20) return { name: 'MiB', factor: 2 ** -20 };
      return size >= 10 * 2 ** 10 ? { name: 'KiB', factor: 2 ** -10 } : { name: 'B', factor: 1 };
    default:
      return { name: '', factor: 1 };
  }
}

/** The unit of a whole column; none if a value would be too small to be read in it: then each has its own. */
export function commonUnit(quantity: Quantity, values: readonly number[]): Unit | undefined {
  const sizes = values.map(Math.abs).filter((size) => size > 0);
  const unit = unitFor(quantity, Math.max(0, ...sizes));
  return sizes.every((size) => size * unit.factor >= 0.01) ? unit : undefined;
}

/** A value with its own best unit: `51.5 ms`. */
export function show(quantity: Quantity, value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return '–';
  const unit = unitFor(quantity, value);
  return withUnit(digits(quantity, value * unit.factor), unit.name);
}

/** An estimate with its own best unit: `51.5 ± 0.3 ms`. */
export function showEstimate(quantity: Quantity, estimate: Estimate | null | undefined): string {
  if (!estimate || !Number.isFinite(estimate.mean)) return '–';
  const unit = unitFor(quantity, estimate.mean);
  return withUnit(estimateIn(quantity, estimate, unit), unit.name);
}

/** Mean and half width in a unit, with the digits that the interval allows: `51.54 ± 0.43`. */
export function estimateIn(quantity: Quantity, estimate: Estimate, unit: Unit): string {
  const mean = estimate.mean * unit.factor;
  const half = (estimate.ci95 ?? 0) * unit.factor;
  // One repetition, or equal ones, which differ by rounding only: as in the report.
  if (half <= Math.abs(mean) * 1e-6 || !Number.isFinite(half)) return digits(quantity, mean);
  // Two digits of the interval, and the mean to the same place, but no more digits than its five.
  const place = 1 - Math.floor(Math.log10(half));
  const magnitude = mean === 0 ? 0 : Math.floor(Math.log10(Math.abs(mean)));
  const decimals = Math.min(Math.max(0, Math.min(place, Math.max(4 - magnitude, 0))), 9);
  return `${grouped(mean.toFixed(decimals))} ± ${twoDigits(half)}`;
}

/** A signed share, worded: `+4.2 %`, `−0.3 %`, `equal`. */
export function signedShare(share: number | null | undefined): string {
  if (share == null || !Number.isFinite(share)) return '–';
  const text = number(Math.abs(share) * 100, Math.abs(share) >= 0.1 ? 3 : 2);
  if (text === '0') return '0 %';
  return `${share < 0 ? '−' : '+'}${text} %`;
}

/** A number to so many significant digits, without trailing zeros; ten thousand and more in groups of three. */
export function number(value: number, significant = 4): string {
  if (value === 0) return '0';
  if (!Number.isFinite(value)) return '–';
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  if (magnitude < -5 || magnitude >= 15) {
    const [mantissa = '', exponent = '0'] = value.toExponential(Math.max(significant - 1, 0)).split('e');
    return `${trimmed(mantissa)}e${Number(exponent)}`;
  }
  return grouped(trimmed(value.toFixed(Math.max(significant - 1 - magnitude, 0))));
}

/** Groups the digits before the point by three if there are more than four. */
export function grouped(text: string): string {
  const [, sign = '', whole = '', rest = ''] = /^(-?)(\d+)(.*)$/.exec(text) ?? [];
  if (whole.length <= 4) return text;
  return sign + whole.replace(/\B(?=(\d{3})+$)/g, '\u202f') + rest;
}

function digits(quantity: Quantity, value: number): string {
  return quantity === 'count' && Number.isInteger(value) ? grouped(value.toFixed(0)) : number(value, 4);
}

function withUnit(text: string, unit: string): string {
  return unit === '' ? text : `${text} ${unit}`;
}

/** A half width keeps its trailing zero: `± 0.30`. */
function twoDigits(value: number): string {
  const place = 1 - Math.floor(Math.log10(value));
  return place >= 0 && place <= 6 ? value.toFixed(place) : number(value, 2);
}

function trimmed(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}
