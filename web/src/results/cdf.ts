/** Distributions of latency. */

import type { ChartSeries } from '../ui/chart';

/** The share `p` of all messages received has at most `value`; both ascend. */
export interface Cdf {
  p: number[];
  value: number[];
}

/** The share of messages with at most `x`: a distribution is a staircase, 0 below its first value. */
export function shareAt(cdf: Cdf, x: number): number {
  let low = 0;
  let high = cdf.value.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((cdf.value[middle] as number) <= x) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? 0 : (cdf.p[low - 1] as number);
}

/** The smallest value that at least the share `p` does not exceed; `undefined` without any. */
export function valueAt(cdf: Cdf, p: number): number | undefined {
  const at = cdf.p.findIndex((share) => share >= p - 1e-12);
  return cdf.value[at];
}

/** A curve of a chart: shares, or with `tail` the share that takes longer, without what a logarithm cannot show. */
export function curve(label: string, cdf: Cdf, tail: boolean, more: Partial<ChartSeries> = {}): ChartSeries {
  const y = tail ? cdf.p.map((p) => (p >= 1 ? null : 1 - p)) : cdf.p;
  return { label, kind: 'step', x: cdf.value, y, ...more };
}
