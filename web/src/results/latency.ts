/** The latency of a flow's messages as the server sends it: little-endian, without any padding. */

import { lowerBound } from '../ui/chart';

/** Points of a trace: every message, or for each slice of time its smallest, its largest and one or two between. */
export interface Latency {
  /** Whether these are all messages of the range. */
  exact: boolean;
  /** Seconds since the start of the repetition, ascending. */
  t: Float64Array;
  /** Seconds. */
  latency: Float32Array;
  /** When messages were sent that were lost. */
  lost: Float64Array;
}

/** The messages that were sent in a part of time. */
export function within({ exact, t, latency, lost }: Latency, from: number, to: number): Latency {
  const [first, end] = [lowerBound(t, from), lowerBound(t, to)];
  return { exact, t: t.subarray(first, end), latency: latency.subarray(first, end), lost: lost.filter((at) => at >= from && at < to) };
}

/** Reads `u32 n, u8 exact, n × f64 t, n × f32 latency, u32 m, m × f64 t`; throws an `Error` if the length is another. */
export function decodeLatency(bytes: ArrayBuffer): Latency {
  const view = new DataView(bytes);
  const short = () => new Error(`a latency block of ${bytes.byteLength} bytes ends too early: the server and this page do not fit, reload the page`);
  if (bytes.byteLength < 5) throw short();
  const count = view.getUint32(0, true);
  const exact = view.getUint8(4) !== 0;
  const latencies = 5 + count * 8;
  const losses = latencies + count * 4;
  if (bytes.byteLength < losses + 4) throw short();
  const lostCount = view.getUint32(losses, true);
  if (bytes.byteLength < losses + 4 + lostCount * 8) throw short();
  // Typed arrays must begin at a multiple of their size: the blocks are copied to where they do.
  const f64 = (from: number, count: number) => new Float64Array(bytes.slice(from, from + count * 8));
  const t = f64(5, count);
  const latency = new Float32Array(bytes.slice(latencies, losses));
  return { exact, t, latency, lost: f64(losses + 4, lostCount) };
}
