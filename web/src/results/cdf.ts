/** Distributions over each other: one set of x values for curves that each have their own. */

/** A distribution: the share `p` of all messages has at most `value`; both ascend. */
export interface Cdf {
  p: number[];
  value: number[];
}

/** Curves over common x values; a curve is `null` before its smallest value. */
export interface Overlay {
  x: number[];
  y: (number | null)[][];
}

/** The share of messages with at most `x`: a distribution is a staircase, or 0 below its first value. */
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

/** Brings distributions onto the union of their values. */
export function overlay(cdfs: Cdf[]): Overlay {
  const x = [...new Set(cdfs.flatMap((cdf) => cdf.value))].sort((a, b) => a - b);
  const y = cdfs.map((cdf) => {
    const first = cdf.value[0];
    if (first === undefined) return x.map(() => null);
    let at = 0;
    return x.map((value) => {
      if (value < first) return null;
      while (at + 1 < cdf.value.length && (cdf.value[at + 1] as number) <= value) at += 1;
      return cdf.p[at] as number;
    });
  });
  return { x, y };
}

/** The same curves as what is above: the share of messages that take longer, for tails on a logarithmic axis. */
export function above(curves: Overlay): Overlay {
  const rest = (p: number | null) => (p === null || p >= 1 ? null : 1 - p);
  return { x: curves.x, y: curves.y.map((curve) => curve.map(rest)) };
}
