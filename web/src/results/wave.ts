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
