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
  /** One word per flow or channel, repeated if there are more. */
  colours: Uint32Array;
  /** What tells colours apart. */
  by: 'flow' | 'channel';
  /** Of lost messages, which are ticks at the bottom. */
  lost: number;
  /** Side of a dot in pixels. */
  size: number;
}

/** The columns that were changed: `[first, behind the last]`; equal if nothing was. */
export type Dirty = [number, number];

/** Draws the points with the numbers from `from` to behind `to`; of points that are no longer kept nothing is drawn. */
export function paint(raster: Raster, view: View, points: Points, from: number, to: number, ink: Ink): Dirty {
  const { words, width, height } = raster;
  const { colours, size } = ink;
  const series = points[ink.by];
  const first = Math.max(from, points.oldest);
  const scaleX = width / (view.x1 - view.x0);
  const low = view.log ? Math.log(view.y0) : view.y0;
  const scaleY = height / ((view.log ? Math.log(view.y1) : view.y1) - low);
  const half = size >> 1;
  const tick = Math.min(height, size * 4);
  let dirtyFrom = width;
  let dirtyTo = 0;
  for (let number = first; number < to; number += 1) {
    const place = points.place(number);
    const x = Math.round(((points.t[place] as number) - view.x0) * scaleX) - half;
    if (x <= -size || x >= width) continue;
    const left = x < 0 ? 0 : x;
    const right = x + size > width ? width : x + size;
    const value = points.value[place] as number;
    let top: number;
    let bottom: number;
    let colour: number;
    if (Number.isNaN(value)) {
      top = height - tick;
      bottom = height;
      colour = ink.lost;
    } else {
      const y = height - 1 - Math.round(((view.log ? Math.log(value) : value) - low) * scaleY) - half;
      if (y <= -size || y >= height) continue;
      top = y < 0 ? 0 : y;
      bottom = y + size > height ? height : y + size;
      colour = colours[(series[place] as number) % colours.length] as number;
    }
    for (let row = top; row < bottom; row += 1) {
      const at = row * width;
      for (let column = left; column < right; column += 1) words[at + column] = colour;
    }
    if (left < dirtyFrom) dirtyFrom = left;
    if (right > dirtyTo) dirtyTo = right;
  }
  return dirtyFrom < dirtyTo ? [dirtyFrom, dirtyTo] : [0, 0];
}

/** The side of a dot, in device pixels, that keeps so many points apart. */
export function dotSize(count: number, ratio: number): number {
  const side = count < 20_000 ? 3 : count < 200_000 ? 2 : 1;
  return Math.max(1, Math.round(side * ratio));
}

/** The point nearest to a place, within `reach` pixels: its number, or -1. */
export function nearest(raster: { width: number; height: number }, view: View, points: Points, x: number, y: number, reach: number): number {
  const scaleX = raster.width / (view.x1 - view.x0);
  const low = view.log ? Math.log(view.y0) : view.y0;
  const scaleY = raster.height / ((view.log ? Math.log(view.y1) : view.y1) - low);
  let best = reach * reach;
  let found = -1;
  for (let number = points.oldest; number < points.added; number += 1) {
    const place = points.place(number);
    const dx = ((points.t[place] as number) - view.x0) * scaleX - x;
    if (dx > reach || dx < -reach) continue;
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
