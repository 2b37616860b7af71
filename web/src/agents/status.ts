/** What an agent says of itself, for people: whatever it says, without knowing every key. */

import { moment, quantity, span } from '../ui/format';

/** A line: what, and how much. */
export interface Fact {
  name: string;
  value: string;
}

/** A few lines of a status: words and numbers as they are, lists as counts, tables one level deep. */
export function facts(status: Record<string, unknown> | null | undefined): Fact[] {
  return Object.entries(status ?? {}).flatMap(([key, value]) => {
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
      return Object.entries(value).flatMap(([inner, deep]) => fact(`${key} ${inner}`, deep));
    }
    return fact(key, value);
  });
}

function fact(key: string, value: unknown): Fact[] {
  const name = key.replaceAll('_', ' ').replace(/ s$/, '');
  if (Array.isArray(value)) {
    const words = value.every((one) => typeof one === 'string');
    return [{ name, value: words && value.length <= 8 ? value.join(', ') || 'none' : String(value.length) }];
  }
  if (typeof value === 'boolean') return [{ name, value: value ? 'yes' : 'no' }];
  if (typeof value === 'number') return [{ name, value: amount(key, value) }];
  if (typeof value === 'string' && value !== '') return [{ name, value: /^\d{4}-\d\d-\d\dT/.test(value) ? moment(value) : value }];
  return [];
}

function amount(key: string, value: number): string {
  if (/_s$/.test(key)) return span(value);
  if (/bytes|disk|memory|spool/.test(key)) return quantity(value, 'B');
  if (/rate|bps/.test(key)) return quantity(value, 'bit/s');
  if (/cpu|share/.test(key) && value >= 0 && value <= 1) return quantity(value, 'ratio');
  return value.toLocaleString('en');
}
