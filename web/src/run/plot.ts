/**
 * A scatter on two canvases: axes below, points above. New points are added to the pixels that are there; all are drawn
 * again only when the view changes, which takes a few milliseconds for a million of them.
 */

import { quantity, scaled } from '../ui/format';
import { seriesVariable, themeColour } from '../ui/theme';
import { dotSize, highest, layered, nearest, paint, word, type Ink, type View } from './paint';
import type { Points } from './points';
import { logTicks, ticks } from './scale';

/** What is under the pointer. */
export interface Found {
  t: number;
  /** `null` for a lost message. */
  value: number | null;
  flow: number;
  channel: number;
}

/** Room for the axes, in CSS pixels. */
const ROOM = { left: 58, right: 12, top: 10, bottom: 34 };

export class ScatterPlot {
  by: 'flow' | 'channel' = 'flow';
  /** Flows that are not drawn. */
  hidden: ReadonlySet<number> = new Set();
  /** Latencies between which flows were simulated, drawn behind their points. */
  bands: readonly { flow: number; least: number; most: number }[] = [];
  /** Limits; those on a latency are drawn as lines. */
  limits: readonly { flow?: number | null; latency?: number | null; key: string; condition: string }[] = [];
  /** The order in which flows are drawn. */
  private order = '';
  /** How many colours there are before they repeat. */
  private colours = new Uint32Array(0);
  private lost = 0;
  private image: ImageData | undefined;
  private words = new Uint32Array(0);
  private drawn = 0;
  private generation = -1;
  private size = 0;
  private view: View | undefined;
  private isStale = true;

  constructor(
    private readonly dots: HTMLCanvasElement,
    private readonly axes: HTMLCanvasElement,
    private readonly points: Points,
  ) {
    this.recolour();
  }

  /** Takes the colours of the theme that holds now. */
  recolour(): void {
    const names = Array.from({ length: 8 }, (_, i) => `--series-${i + 1}`);
    this.colours = Uint32Array.from(names, (name) => word(themeColour(name)));
    this.lost = word(themeColour('--bad'));
    this.isStale = true;
  }

  /** Has everything drawn anew at the next `draw`. */
  stale(): void {
    this.isStale = true;
  }

  /** Draws what is new, in this view. Returns how many points were drawn. */
  draw(view: View): number {
    const ratio = window.devicePixelRatio || 1;
    const resized = this.resize(ratio);
    const size = dotSize(this.points.length, ratio);
    const layers = this.points.layers();
    const order = `${layers.join()} ${this.limits.map(({ key, condition }) => key + condition).join()}`;
    const whole = resized || order !== this.order || this.isStale || this.points.generation !== this.generation || size !== this.size || !same(view, this.view);
    if (!this.image || this.image.width === 0) return 0;
    const context = this.dots.getContext('2d');
    if (!context) return 0;
    if (whole) {
      this.words.fill(0);
      this.drawn = this.points.oldest;
      this.generation = this.points.generation;
      this.size = size;
      this.view = view;
      this.isStale = false;
      this.order = order;
      this.drawAxes(view, ratio);
    }
    const from = this.drawn;
    const colours = this.by === 'flow' ? layered(this.colours, layers) : this.colours;
    const ink: Ink = { colours, by: this.by, lost: this.lost, size, hidden: this.hidden };
    const raster = { words: this.words, width: this.image.width, height: this.image.height };
    const [left, right] = paint(raster, view, this.points, from, this.points.added, ink);
    this.drawn = this.points.added;
    if (whole) context.putImageData(this.image, 0, 0);
    else if (left < right) context.putImageData(this.image, 0, 0, left, 0, right - left, this.image.height);
    return this.drawn - Math.max(from, this.points.oldest);
  }

  /** The plot's place within the canvases, in CSS pixels. */
  get area(): { left: number; top: number; width: number; height: number } {
    const { clientWidth, clientHeight } = this.axes;
    return { left: ROOM.left, top: ROOM.top, width: Math.max(1, clientWidth - ROOM.left - ROOM.right), height: Math.max(1, clientHeight - ROOM.top - ROOM.bottom) };
  }

  /** The point nearest to a place of the plot's area, in CSS pixels. */
  at(x: number, y: number): Found | undefined {
    if (!this.view) return undefined;
    const found = nearest(this.area, this.view, this.points, x, y, 12, this.hidden);
    return found < 0 ? undefined : this.found(this.points.place(found));
  }

  /** The highest point of each of 60 parts of the time that is seen, or the one of a part of it. */
  spikes(x0?: number, x1?: number, hidden = this.hidden): Found[] {
    if (!this.view) return [];
    const view = { ...this.view, x0: x0 ?? this.view.x0, x1: x1 ?? this.view.x1 };
    return highest(view, this.points, x0 === undefined ? 60 : 1, hidden).map((number) => this.found(this.points.place(number)));
  }

  /** Where a point is within the canvases, in CSS pixels. */
  where({ t, value }: Found): { x: number; y: number } {
    const { left, top, width, height } = this.area;
    if (!this.view) return { x: left, y: top };
    const { x0, x1, y0, y1, log } = this.view;
    const of = (level: number) => (log ? Math.log(level) : level);
    const share = value === null ? 0 : (of(value) - of(y0)) / (of(y1) - of(y0));
    return { x: left + ((t - x0) / (x1 - x0)) * width, y: top + (1 - share) * height };
  }

  private found(place: number): Found {
    const value = this.points.value[place] as number;
    return {
      t: this.points.t[place] as number,
      value: Number.isNaN(value) ? null : value,
      flow: this.points.flow[place] as number,
      channel: this.points.channel[place] as number,
    };
  }

  private resize(ratio: number): boolean {
    const { width, height, left, top } = this.area;
    const wide = Math.round(width * ratio);
    const high = Math.round(height * ratio);
    if (this.image?.width === wide && this.image.height === high) return false;
    Object.assign(this.dots.style, { left: `${left}px`, top: `${top}px`, width: `${wide / ratio}px`, height: `${high / ratio}px` });
    this.dots.width = wide;
    this.dots.height = high;
    this.image = new ImageData(wide, high);
    this.words = new Uint32Array(this.image.data.buffer);
    return true;
  }

  private drawAxes(view: View, ratio: number): void {
    const { clientWidth, clientHeight } = this.axes;
    this.axes.width = Math.round(clientWidth * ratio);
    this.axes.height = Math.round(clientHeight * ratio);
    const context = this.axes.getContext('2d');
    if (!context) return;
    const { left, top, width, height } = this.area;
    const [text, grid, line] = [themeColour('--muted'), themeColour('--line'), themeColour('--line-strong')];
    context.scale(ratio, ratio);
    context.font = `12px ${getComputedStyle(this.axes).fontFamily}`;
    context.lineWidth = 1;
    const at = (share: number) => Math.round(top + height * (1 - share)) + 0.5;
    const low = view.log ? Math.log(view.y0) : view.y0;
    const range = (view.log ? Math.log(view.y1) : view.y1) - low;
    for (const { flow, least, most } of this.bands) {
      if (this.hidden.has(flow)) continue;
      const share = (value: number) => Math.min(1, Math.max(0, ((view.log ? Math.log(Math.max(value, 1e-9)) : value) - low) / range));
      context.fillStyle = `color-mix(in srgb, ${themeColour(seriesVariable(flow))} 22%, transparent)`;
      context.fillRect(left, at(share(most)), width, Math.max(2, at(share(least)) - at(share(most))));
    }
    for (const { flow, latency, key, condition } of this.limits) {
      if (latency == null || flow == null || this.hidden.has(flow)) continue;
      const share = ((view.log ? Math.log(Math.max(latency, 1e-9)) : latency) - low) / range;
      const y = at(Math.min(1, Math.max(0, share)));
      context.fillStyle = context.strokeStyle = themeColour(seriesVariable(flow));
      context.setLineDash([6, 4]);
      segment(context, left, y, left + width, y);
      context.setLineDash([]);
      context.textAlign = 'right';
      context.textBaseline = y < top + 20 ? 'top' : 'bottom';
      // A line at the edge stands for one that is not in view.
      context.fillText(`${key.replace(/^flow\./, '')} ${condition}${share > 1 ? ' ↑' : share < 0 ? ' ↓' : ''}`, left + width - 4, y < top + 20 ? y + 3 : y - 3);
    }
    const marks = view.log ? logTicks(view.y0, view.y1) : ticks(view.y0, view.y1, Math.max(2, height / 44));
    const unit = scaled(Math.max(Math.abs(view.y1), Math.abs(view.y0)), 's');
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (const mark of marks) {
      const y = at(((view.log ? Math.log(mark) : mark) - low) / range);
      context.strokeStyle = grid;
      segment(context, left, y, left + width, y);
      context.fillStyle = text;
      context.fillText(view.log ? quantity(mark, 's') : plain(mark / unit.factor), left - 6, y);
    }
    context.textAlign = 'center';
    context.textBaseline = 'top';
    const seconds = ticks(view.x0, view.x1, Math.max(2, width / 90));
    for (const mark of seconds) {
      const x = Math.round(left + (width * (mark - view.x0)) / (view.x1 - view.x0)) + 0.5;
      context.strokeStyle = grid;
      segment(context, x, top, x, top + height);
      context.fillStyle = text;
      context.fillText(plain(mark), x, top + height + 6);
    }
    context.strokeStyle = line;
    segment(context, left, top + height + 0.5, left + width, top + height + 0.5);
    context.fillStyle = text;
    context.textAlign = 'right';
    context.textBaseline = 'bottom';
    context.fillText('time, s', left + width, top + height + ROOM.bottom - 1);
    if (!view.log) {
      context.save();
      context.translate(11, top + height / 2);
      context.rotate(-Math.PI / 2);
      context.textAlign = 'center';
      context.textBaseline = 'middle';
      context.fillText(`latency, ${unit.unit}`, 0, 0);
      context.restore();
    }
  }
}

function segment(context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

/** A mark without the noise of its last binary digit. */
function plain(value: number): string {
  return String(Number(value.toPrecision(7))).replace('-', '\u2212');
}

function same(a: View, b: View | undefined): boolean {
  return b !== undefined && a.x0 === b.x0 && a.x1 === b.x1 && a.y0 === b.y0 && a.y1 === b.y1 && a.log === b.log;
}
