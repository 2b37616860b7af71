/** Lines and arcs between the boxes of a drawing. */

export interface Point {
  x: number;
  y: number;
}

/** A box by its middle and size. */
export interface Box extends Point {
  width: number;
  height: number;
}

export interface Curve {
  /** For the `d` of an SVG path: a quadratic Bézier curve. */
  path: string;
  /** Half-way along it, where its label goes. */
  middle: Point;
  /** At its end, the direction of travel, in degrees: for an arrow. */
  angle: number;
  end: Point;
}

/**
 * A curve from one box to another, from border to border. `bend` is how far its middle is from the straight line, to the
 * right of the way there (in screen coordinates: a positive bend of a line to the right goes down).
 */
export function curve(from: Box, to: Box, bend: number): Curve {
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const length = Math.hypot(dx, dy) || 1;
  const middle = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
  // The control point of a quadratic curve is twice as far out as its middle.
  const control = { x: middle.x - (dy / length) * bend * 2, y: middle.y + (dx / length) * bend * 2 };
  const start = border(from, control);
  const end = border(to, control);
  const half = { x: start.x / 4 + control.x / 2 + end.x / 4, y: start.y / 4 + control.y / 2 + end.y / 4 };
  return {
    path: `M${round(start.x)} ${round(start.y)}Q${round(control.x)} ${round(control.y)} ${round(end.x)} ${round(end.y)}`,
    middle: half,
    angle: (Math.atan2(end.y - control.y, end.x - control.x) * 180) / Math.PI,
    end,
  };
}

/** Where a label of this size has its middle so that it is beside a line and not on it: below, or to the right of a steep one. */
export function beside(line: Curve, from: Point, to: Point, width: number, height: number): Point {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  let normal = { x: -(to.y - from.y) / length, y: (to.x - from.x) / length };
  if (normal.y < -0.1 || (Math.abs(normal.y) <= 0.1 && normal.x < 0)) normal = { x: -normal.x, y: -normal.y };
  const distance = (Math.abs(normal.x) * width) / 2 + (Math.abs(normal.y) * height) / 2 + 3;
  return { x: line.middle.x + normal.x * distance, y: line.middle.y + normal.y * distance };
}

/** Where the line from the middle of a box towards a point leaves the box. */
export function border(box: Box, towards: Point): Point {
  const dx = towards.x - box.x;
  const dy = towards.y - box.y;
  if (dx === 0 && dy === 0) return { x: box.x, y: box.y };
  const scale = Math.min(box.width / 2 / Math.max(Math.abs(dx), 1e-9), box.height / 2 / Math.max(Math.abs(dy), 1e-9));
  return { x: box.x + dx * scale, y: box.y + dy * scale };
}

/** How far the `index`-th of several things between two boxes bends: 0, then to both sides in turn. */
export function spread(index: number, step: number): number {
  return index === 0 ? 0 : (index % 2 === 1 ? 1 : -1) * Math.ceil(index / 2) * step;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
