/** Points into pixels: what a browser's own drawing calls are too slow for. A million points take a few milliseconds. */

import type { Points } from './points';

/** The part of the plane that is seen. */
export interface View {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
  /** Whether the value axis is logarithmic: then `y0` is above zero. */
  log: boolean;
}

/** Pixels as 32-bit words, as `ImageData` has them. */
export interface Raster {
  words: Uint32Array;
  width: number;
  height: number;
}

/** How dots look. */
export interface Ink {
  /** One word per flow or channel, repeated if there are more. A colour with a smaller alpha is not painted over one with a larger. */
  colours: Uint32Array;
  /** What tells colours apart. */
  by: 'flow' | 'channel';
  /** Of lost messages, which are ticks at the bottom. */
  lost: number;
  /** Side of a dot in pixels. */
  size: number;
  /** Flows that are not drawn. */
  hidden?: ReadonlySet<number>;
}

/** A colour for each flow, whose alpha, which nobody sees, tells how far above the others it lies. */
export function layered(colours: Uint32Array, layers: readonly number[]): Uint32Array {
  const all = new Uint32Array(Math.max(0, ...layers) + 1);
  layers.forEach((flow, depth) => (all[flow] = ((colours[flow % colours.length] as number) & 0xffffff) | ((255 - Math.min(depth, 15)) << 24)));
  return all;
}

/** The columns that were changed: `[first, behind the last]`; equal if nothing was. */
export type Dirty = [number, number];

/** Draws the points with the numbers from `from` to behind `to`; of points that are no longer kept nothing is drawn. */
export function paint(raster: Raster, view: View, points: Points, from: number, to: number, ink: Ink): Dirty {
  const first = Math.max(from, points.oldest);
  const dirty: Dirty = [raster.width, 0];
  // Where the ring closes there are two parts, each in a row.
  for (let start = first; start < to; ) {
    const place = points.place(start);
    const count = Math.min(to - start, points.capacity - place);
    paintRow(raster, view, points, place, place + count, ink, dirty);
    start += count;
  }
  return dirty[0] < dirty[1] ? dirty : [0, 0];
}

function paintRow({ words, width, height }: Raster, view: View, points: Points, start: number, end: number, ink: Ink, dirty: Dirty): void {
  const { colours, size } = ink;
  const hidden = ink.hidden?.size ? ink.hidden : undefined;
  const { t, value } = points;
  const series = points[ink.by];
  const { x0, log } = view;
  const scaleX = width / (view.x1 - x0);
  const low = log ? Math.log(view.y0) : view.y0;
  const scaleY = height / ((log ? Math.log(view.y1) : view.y1) - low);
  const half = size >> 1;
  const tick = Math.min(height, size * 4);
  let [dirtyFrom, dirtyTo] = dirty;
  for (let at = start; at < end; at += 1) {
    const x = Math.floor(((t[at] as number) - x0) * scaleX + 0.5) - half;
    if (x <= -size || x >= width || hidden?.has(points.flow[at] as number)) continue;
    const level = value[at] as number;
    let top = height - tick;
    let bottom = height;
    let colour = ink.lost;
    // Not a number, and so not equal to itself, is a lost message.
    if (level === level) {
      top = height - 1 - Math.floor(((log ? Math.log(level) : level) - low) * scaleY + 0.5) - half;
      bottom = top + size;
      if (bottom <= 0 || top >= height) continue;
      if (top < 0) top = 0;
      if (bottom > height) bottom = height;
      colour = colours[(series[at] as number) % colours.length] as number;
    }
    const left = x < 0 ? 0 : x;
    const right = x + size > width ? width : x + size;
    if (left < dirtyFrom) dirtyFrom = left;
    if (right > dirtyTo) dirtyTo = right;
    for (let row = top * width; row < bottom * width; row += width) {
      for (let column = left; column < right; column += 1) if ((words[row + column] as number) >>> 24 <= colour >>> 24) words[row + column] = colour;
    }
  }
  dirty[0] = dirtyFrom;
  dirty[1] = dirtyTo;
}

/** The side of a dot, in device pixels, that keeps so many points apart. */
export function dotSize(count: number, ratio: number): number {
  const side = count < 20_000 ? 3 : count < 200_000 ? 2 : 1;
  return Math.max(1, Math.round(side * ratio));
}

/** The numbers of the highest points, one of each of `slices` parts of the time in view that has any. */
export function highest(view: View, points: Points, slices: number, hidden: ReadonlySet<number> = new Set()): number[] {
  const best = new Map<number, number>();
  for (let number = points.oldest; number < points.added; number += 1) {
    const place = points.place(number);
    const slice = Math.floor((((points.t[place] as number) - view.x0) / (view.x1 - view.x0)) * slices);
    const value = points.value[place] as number;
    if (slice < 0 || slice >= slices || Number.isNaN(value) || hidden.has(points.flow[place] as number)) continue;
    const before = best.get(slice);
    if (before === undefined || value > (points.value[points.place(before)] as number)) best.set(slice, number);
  }
  return [...best].toSorted(([a], [b]) => a - b).map(([, number]) => number);
}

/** The point nearest to a place, within `reach` pixels: its number, or -1. */
export function nearest(raster: { width: number; height: number }, view: View, points: Points, x: number, y: number, reach: number, hidden: ReadonlySet<number> = new Set()): number {
  const scaleX = raster.width / (view.x1 - view.x0);
  const low = view.log ? Math.log(view.y0) : view.y0;
  const scaleY = raster.height / ((view.log ? Math.log(view.y1) : view.y1) - low);
  let best = reach * reach;
  let found = -1;
  for (let number = points.oldest; number < points.added; number += 1) {
    const place = points.place(number);
    const dx = ((points.t[place] as number) - view.x0) * scaleX - x;
    if (dx > reach || dx < -reach || hidden.has(points.flow[place] as number)) continue;
    const value = points.value[place] as number;
    const dy = Number.isNaN(value) ? raster.height - 4 - y : raster.height - 1 - ((view.log ? Math.log(value) : value) - low) * scaleY - y;
    const distance = dx * dx + dy * dy;
    if (distance <= best) {
      best = distance;
      found = number;
    }
  }
  return found;
}

/** A colour as an `ImageData` word on this machine: red in the lowest byte, opaque. `rgb(1 2 3)`, `#123456` and their like. */
export function word(colour: string): number {
  const hex = /^#([0-9a-f]{6})/i.exec(colour.trim());
  let red = 128;
  let green = 128;
  let blue = 128;
  if (hex) {
    const number = Number.parseInt(hex[1] as string, 16);
    [red, green, blue] = [number >> 16, (number >> 8) & 255, number & 255];
  } else {
    const parts = colour.match(/\d+(\.\d+)?/g);
    if (parts && parts.length >= 3) [red, green, blue] = parts.map((part) => Math.round(Number(part))) as [number, number, number];
  }
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
