/** Quantities as people write them, in the units of the file: `1.5Mbps`, `1,5 Mbit/s` and `3M`, `10 msec`, `20` where milliseconds stand. */
import type { FormKey, Json } from '../../api/types';

/** A quantity as the file has it. One that may be meant otherwise is not sure: it is suggested, not written. */
export interface Quantity {
  text: string;
  isSure: boolean;
}

type Kind = 'time' | 'rate' | 'size' | 'limit' | 'ratio' | 'number';
/** A unit of the file; how many of it one of the written ones is; and whether it is sure. */
type Unit = [pattern: RegExp, unit: string, factor?: number, isSure?: boolean];

const KINDS: Partial<Record<FormKey['shape'], Kind>> = { duration: 'time', durations: 'time', rate: 'rate', bytes: 'size', sizes: 'size', limit: 'limit', ratio: 'ratio', number: 'number' };

const SIZES: Unit[] = [
  [/^(b|bytes?|octets?)$/i, 'B'],
  ...['K', 'M', 'G'].flatMap((prefix): Unit[] => [
    [new RegExp(`^${prefix}(b|bytes?)$`, 'i'), `${prefix}B`],
    [new RegExp(`^${prefix}i(b|bytes?)?$`, 'i'), `${prefix}iB`],
    [new RegExp(`^${prefix}$`, 'i'), `${prefix}iB`, 1, false],
  ]),
];
const UNITS: Record<Kind, Unit[]> = {
  time: [
    [/^(ns|nsecs?|nanoseconds?)$/i, 'ns'],
    [/^([uµμ]s|usecs?|micros?|microseconds?)$/i, 'us'],
    [/^(ms|msecs?|millis?|milliseconds?)$/i, 'ms'],
    [/^(s|secs?|seconds?)$/i, 's'],
    [/^(mins?|minutes?)$/i, 'min'],
    [/^(h|hrs?|hours?)$/i, 'h'],
    [/^m$/, 'min', 1, false],
  ],
  rate: ['', 'k', 'M', 'G'].flatMap((prefix): Unit[] => {
    const letter = prefix && `[${prefix.toLowerCase()}${prefix.toUpperCase()}]`;
    return [
      [new RegExp(`^${letter}(b|bps|b/s|[bB][iI][tT]s?|[bB][iI][tT]s?/s(ec)?|[bB]it/sec|bitps${prefix && '|'})$`), `${prefix}bit/s`],
      // Whether bytes are meant is asked.
      [new RegExp(`^${letter}(B|Bps|B/s|bytes?/s)$`), `${prefix}bit/s`, 8, false],
    ];
  }),
  size: SIZES,
  limit: [...SIZES, [/^(p|pkts?|packets?)$/i, 'packets']],
  ratio: [[/^(%|percent|pct)$/i, '%']],
  number: [],
};
/** The unit of a bare number where none stands; `Mbit/s` is a guess. */
const USUAL: Partial<Record<Kind, string>> = { time: 'ms', rate: 'Mbit/s', size: 'B', limit: 'packets' };

/** The quantity that is meant; nothing if the text is none, or none of this key. `before` is what stands there. */
export function quantityOf(text: string, key: FormKey, before: Json | undefined): Quantity | undefined {
  const kind = key.share ? 'ratio' : KINDS[key.shape];
  const [, written = '', unit = ''] = /^(\d[\d.,_' \u00a0\u202f]*|[.,]\d+)(.*)$/.exec(text.trim()) ?? [];
  const number = kind && numberOf(written.trim());
  if (!kind || !number) return undefined;
  if (unit === '') {
    const [stands, fallback] = [before, key.default].map((value) => /^[\d.]+\s*([^\d\s]+)$/.exec(String(value ?? ''))?.[1]);
    if (kind === 'ratio') return { text: stands === '%' || Number(number.text) > 1 ? `${number.text} %` : number.text, isSure: number.isSure };
    const known = stands ?? fallback ?? (kind === 'time' && key.name === 'duration' ? 's' : USUAL[kind]);
    const isGuess = kind === 'rate' && stands === undefined && fallback === undefined;
    return { text: known === undefined ? number.text : `${number.text} ${known}`, isSure: number.isSure && !isGuess };
  }
  const found = UNITS[kind].find(([pattern]) => pattern.test(unit.trim()));
  if (!found) return undefined;
  const [, name, factor = 1, isSure = true] = found;
  return { text: `${factor === 1 ? number.text : Number((Number(number.text) * factor).toPrecision(12))} ${name}`, isSure: number.isSure && isSure };
}

/** A number with a point: a comma is one, unless three digits follow, which may be thousands. */
function numberOf(written: string): Quantity | undefined {
  const plain = /^\d{1,3}([_' \u00a0\u202f]\d{3})+(?!\d)/.test(written) ? written.replace(/[_' \u00a0\u202f]/g, '') : written;
  const isThousands = /^[1-9]\d{0,2}(,\d{3})+(\.\d+)?$/.test(plain);
  const text = isThousands ? plain.replaceAll(',', '') : plain.replace(/^(\d*),(\d+)$/, '$1.$2').replace(/^\./, '0.');
  return /^\d+\.?\d*$/.test(text) ? { text: text.replace(/\.$/, ''), isSure: !isThousands } : undefined;
}
