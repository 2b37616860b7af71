/** Distributions of latency. */

import type { ChartSeries } from '../ui/chart';
import type { Cdf } from './types';

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
