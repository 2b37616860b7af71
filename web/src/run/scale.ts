/** Axes of a scatter: ranges that grow in steps, and where the marks are. */

import type { Extremes } from './points';
import type { View } from './paint';

/** How the value axis is laid out. */
export type Scale = 'zero' | 'fit' | 'log';

/** The smallest of 1, 1.5, 2, 3, 5, 7.5 times a power of ten that is not below `value`. */
export function niceAbove(value: number): number {
  if (!(value > 0) || !Number.isFinite(value)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 1.5, 2, 3, 5, 7.5, 10].find((step) => step * power >= value * (1 - 1e-12)) ?? 10;
  return step * power;
}

/**
 * The view that shows all points. It is the same as before as long as they fit, so that a growing scatter is laid out anew
 * a few times only.
 */
export function grown(before: View | undefined, points: Extremes, scale: Scale): View {
  const fitsX = before && before.x0 === 0 && points.latest <= before.x1;
  const x1 = fitsX ? before.x1 : niceAbove(Math.max(points.latest * 1.2, 1));
  const none = points.least > points.largest;
  const least = none ? 0 : points.least;
  const largest = none ? 0.001 : points.largest;
  const log = scale === 'log';
  if (before && before.log === log && isTight(before, least, largest, scale)) return { ...before, x0: 0, x1 };
  if (log) {
    const low = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
    return { x0: 0, x1, y0: low, y1: Math.max(10 ** Math.ceil(Math.log10(Math.max(largest, 1e-9) * 1.01)), low * 10), log };
  }
  if (scale === 'fit' && !none) {
    const room = Math.max((largest - least) * 0.15, largest * 1e-4, 1e-9);
    return { x0: 0, x1, y0: Math.max(0, least - room), y1: largest + room, log };
  }
  return { x0: 0, x1, y0: 0, y1: niceAbove(largest * 1.05), log };
}

function isTight(view: View, least: number, largest: number, scale: Scale): boolean {
  if (least < view.y0 || largest > view.y1) return false;
  if (scale === 'zero') return view.y0 === 0;
  if (scale === 'log') return true;
  return largest - least > (view.y1 - view.y0) * 0.4;
}

/** Marks of a linear axis: about `count`, at multiples of 1, 2 or 5 times a power of ten. */
export function ticks(from: number, to: number, count: number): number[] {
  const span = to - from;
  if (!(span > 0) || !Number.isFinite(span)) return [];
  const rough = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((step) => step * power >= rough * (1 - 1e-9)) ?? 10) * power;
  // Plus zero: the ceiling of a little below zero would be written "-0".
  const first = Math.ceil(from / step - 1e-9) + 0;
  const marks: number[] = [];
  for (let i = first; i * step <= to + step * 1e-9; i += 1) marks.push(i * step);
  return marks;
}

/** Marks of a logarithmic axis: the powers of ten, and 2 and 5 times them where there are few. */
export function logTicks(from: number, to: number): number[] {
  const marks: number[] = [];
  const wide = Math.log10(to / from) > 3;
  for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); power += 1) {
    for (const step of wide ? [1] : [1, 2, 5]) {
      const mark = step * 10 ** power;
      if (mark >= from * (1 - 1e-9) && mark <= to * (1 + 1e-9)) marks.push(mark);
    }
  }
  return marks;
}

/** The view after zooming in time by `factor` about a place, a share of the width. */
export function zoomed(view: View, factor: number, x: number): View {
  const at = view.x0 + (view.x1 - view.x0) * x;
  return { ...view, x0: at - (at - view.x0) * factor, x1: at + (view.x1 - at) * factor };
}

/** The view moved along time by a share of its width. */
export function moved(view: View, share: number): View {
  const by = (view.x1 - view.x0) * share;
  return { ...view, x0: view.x0 + by, x1: view.x1 + by };
}
