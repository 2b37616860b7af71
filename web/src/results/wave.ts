/** Sound as samples, and what is drawn of it. */
import { quantity } from '../ui/format';

export interface Samples {
  rate: number;
  /** From -1 to 1. */
  values: Float32Array<ArrayBuffer>;
}

/** The samples of a WAV file of one channel with 16 bits, as the server writes them: its header has 44 bytes. */
export function samplesOf(file: ArrayBuffer): Samples {
  const view = new DataView(file);
  const values = new Float32Array(Math.max(0, (file.byteLength - 44) >> 1));
  for (let i = 0; i < values.length; i += 1) values[i] = view.getInt16(44 + 2 * i, true) / 32_768;
  return { rate: view.getUint32(24, true), values };
}

/** The least and the largest sample of each of `count` columns, of a sound whose loudest sample fills the height. */
export function peaks(values: Float32Array, count: number): [least: number, most: number][] {
  const loudest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-4);
  const columns = Math.min(Math.floor(count), values.length);
  return Array.from({ length: columns }, (_, column) => {
    let [least, most] = [Infinity, -Infinity];
    const end = Math.floor(((column + 1) * values.length) / columns);
    for (let i = Math.floor((column * values.length) / columns); i < end; i += 1) {
      const value = (values[i] as number) / loudest;
      if (value < least) least = value;
      if (value > most) most = value;
    }
    return [least, most];
  });
}

/** How long pieces are together. */
export function lengthOf(pieces: readonly number[][]): string {
  return quantity(pieces.reduce((sum, [from = 0, to = 0]) => sum + to - from, 0), 's');
}

/** Below this, in decibels, two sounds are equally loud. */
const ALIKE_DB = 0.1;

/**
 * By what factors two sounds are turned down, so that they have the same power where both have sound and nothing is missing of
 * either: at most one of them is below 1.
 */
export function matched(waves: readonly [Samples, Samples], missing: readonly number[][]): [number, number] {
  const until = Math.min(...waves.map(({ values, rate }) => values.length / rate));
  const whole: [number, number][] = [];
  let from = 0;
  for (const [start = 0, end = 0] of [...missing].sort(([a = 0], [b = 0]) => a - b).concat([[until, until]])) {
    if (start > from) whole.push([from, Math.min(start, until)]);
    from = Math.max(from, end);
  }
  const [a, b] = waves.map(({ values, rate }) => {
    let [sum, count] = [0, 0];
    for (const [start, end] of whole) {
      for (let i = Math.round(start * rate); i < Math.min(Math.round(end * rate), values.length); i += 1, count += 1) sum += (values[i] as number) ** 2;
    }
    return count > 0 ? Math.sqrt(sum / count) : 0;
  }) as [number, number];
  if (a === 0 || b === 0 || Math.abs(decibels(a / b)) < ALIKE_DB) return [1, 1];
  return a > b ? [b / a, 1] : [1, a / b];
}

export function decibels(factor: number): number {
  return 20 * Math.log10(factor);
}
