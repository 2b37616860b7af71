/** Figures for people: three significant digits with the unit that fits. */

const PREFIXES: readonly [number, string][] = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
  [1, ''],
  [1e-3, 'm'],
  [1e-6, 'µ'],
  [1e-9, 'n'],
];

/** Units that have no parts: half a byte or 12 m packets is nothing. */
const WHOLE = new Set(['B', 'bit/s', 'packets', 'channels', '1/s']);

/** By what to divide values up to `largest` in `unit` (of the base SI), and what the unit is then called. */
export function scaled(largest: number, unit: string): { factor: number; unit: string } {
  const size = Math.abs(largest);
  if (unit === '') return { factor: 1, unit };
  if (unit === '%' || unit === 'ratio') return { factor: 0.01, unit: '%' };
  if (unit === 's' && size >= 1) return { factor: 1, unit };
  if (!Number.isFinite(size) || size === 0) return { factor: 1, unit };
  const smallest = WHOLE.has(unit) ? 1 : 1e-9;
  const [factor, prefix] = PREFIXES.find(([factor]) => factor >= smallest && size >= factor * 0.9995) ?? [smallest, smallest === 1 ? '' : 'n'];
  return { factor, unit: prefix + unit };
}

/** A number with `digits` significant digits, without an exponent where one can do without. */
export function figure(value: number, digits = 3): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) return value.toExponential(digits - 1);
  // 9.996 has one digit before the point, but 10.0, which it is written as, has two.
  const rounded = Number(size.toPrecision(digits));
  const places = size === 0 ? 0 : Math.min(6, Math.max(0, digits - 1 - Math.floor(Math.log10(rounded) + 1e-12)));
  return minus(value.toFixed(places));
}

/** A value in base SI with the unit that fits: `quantity(0.0123, 's')` is `12.3 ms`. Shares (`ratio`) become per cent. */
export function quantity(value: number | null | undefined, unit: string, digits = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const fit = scaled(value, unit);
  const text = figure(value / fit.factor, digits);
  return fit.unit === '' ? text : `${text}\u202f${fit.unit}`;
}

/** A span of time for people: `3 min 20 s`. */
export function span(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return '–';
  if (seconds < 60) return seconds < 10 ? quantity(seconds, 's', 2) : `${Math.round(seconds)}\u202fs`;
  const minutes = Math.round(seconds / 60);
  if (seconds < 600) {
    const rest = Math.round(seconds % 60);
    const whole = Math.floor(seconds / 60) + (rest === 60 ? 1 : 0);
    return rest % 60 === 0 ? `${whole}\u202fmin` : `${whole}\u202fmin ${rest}\u202fs`;
  }
  if (minutes < 120) return `${minutes}\u202fmin`;
  const hours = `${Math.floor(minutes / 60)}\u202fh`;
  return minutes % 60 === 0 ? hours : `${hours} ${minutes % 60}\u202fmin`;
}

/** When something was, in this browser's words: today only the time. */
export function moment(iso: string, now = new Date()): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  const time = at.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  if (at.toDateString() === now.toDateString()) return `today ${time}`;
  const year = at.getFullYear() === now.getFullYear() ? undefined : 'numeric';
  return `${at.toLocaleDateString([], { day: 'numeric', month: 'short', year })} ${time}`;
}

/** `1 host`, `2 hosts`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}

function minus(text: string): string {
  return text.replace('-', '\u2212');
}
