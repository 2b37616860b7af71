/** What a chart shows, and how its points are painted: fast enough for a million of them. */

export interface ChartSeries {
  label: string;
  /** `step` holds each value until the next (a queue's length); `scatter` paints points only. */
  kind: 'line' | 'step' | 'scatter';
  /** In rising order. In base SI units, as `y`. */
  x: ArrayLike<number>;
  /** NaN or null interrupts a line. */
  y: ArrayLike<number | null>;
  /** A CSS variable, such as `--series-3`; without it by the series' place. */
  colour?: string;
  /** Width of the line, or size of the points, in CSS pixels. */
  width?: number;
  dashed?: boolean;
}

export interface ChartAxis {
  label: string;
  /** The base unit: `s`, `bit/s`, `B`, `ratio` (shown as per cent), or `''`. The prefix is chosen by what is shown. */
  unit: string;
  log?: boolean;
  /** The ends that are shown at least; without them, what the data has. */
  min?: number;
  max?: number;
  /** Where its ticks are, rising, if not at round numbers. Those that find no room are left out. */
  ticks?: readonly ChartTick[];
}

export interface ChartTick {
  at: number;
  text: string;
}

/** A horizontal or vertical line with a name: a limit, a moment. */
export interface ChartMark {
  axis: 'x' | 'y';
  at: number;
  label: string;
}

export interface Range {
  min: number;
  max: number;
}

/** Where the values of an axis lie: over all series, only the positive ones on a logarithmic axis. */
export function extent(values: readonly ArrayLike<number | null>[], log: boolean): Range | undefined {
  let min = Infinity;
  let max = -Infinity;
  for (const each of values) {
    for (let index = 0; index < each.length; index++) {
      const value = each[index];
      if (value === null || value === undefined || !(value > -Infinity) || value === Infinity || (log && value <= 0)) continue;
      if (value < min) min = value;
      if (value > max) max = value;
    }
  }
  return min <= max ? { min, max } : undefined;
}

/** A range with a little room around it, and never empty. Values that begin near zero begin at zero. */
export function padded(range: Range | undefined, axis: ChartAxis, side: 'x' | 'y'): Range {
  let { min, max } = range ?? (axis.log ? { min: 1, max: 10 } : { min: 0, max: 1 });
  if (axis.min !== undefined) min = Math.min(min, axis.min);
  if (axis.max !== undefined) max = Math.max(max, axis.max);
  if (axis.log) {
    if (axis.min !== undefined && axis.min > 0) min = Math.min(min, axis.min);
    return min === max ? { min: min / 2, max: max * 2 } : { min: min / 1.1, max: max * 1.1 };
  }
  if (side === 'x' && min === max) return min === 0 ? { min: -0.5, max: 0.5 } : { min: min - Math.abs(min) * 0.1, max: max + Math.abs(max) * 0.1 };
  if (side === 'x') return { min, max };
  if (min === max) return min === 0 ? { min: 0, max: 1 } : { min: Math.min(0, min * 1.1), max: Math.max(0, max * 1.1) };
  const room = (max - min) * 0.06;
  const low = min >= 0 && min < (max - min) * 0.5 ? 0 : min - room;
  return { min: low, max: max + room };
}

/** The factor by which a turn of the wheel zooms. Without a modifier it scrolls the page. */
export function wheelFactor(event: WheelEvent): number | undefined {
  if (!event.ctrlKey && !event.shiftKey) return undefined;
  event.preventDefault();
  return (event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8;
}

/** A character of an axis is about so wide, in CSS pixels. */
const CHARACTER = 7;
/** A name of so many characters still tells something. */
const TELLING = 5;

/**
 * The ticks that are shown, from left to right, none over another; `place` says where they are in CSS pixels. Names that are
 * too long are cut, as long as something of them stays.
 */
export function fitting(ticks: readonly ChartTick[], place: ToPixel): ChartTick[] {
  const shown: ChartTick[] = [];
  const gaps = ticks.slice(1).map((tick, i) => place(tick.at) - place((ticks[i] as ChartTick).at));
  const most = Math.floor(Math.min(...gaps) / CHARACTER) - 1;
  let free = -Infinity;
  for (const { at, text } of ticks) {
    const isCut = text.length > most && most >= TELLING;
    const cut = isCut ? `${text.slice(0, most - 1)}\u2026` : text;
    const [middle, half] = [place(at), (cut.length * CHARACTER) / 2];
    if (middle - half < free) continue;
    shown.push({ at, text: cut });
    free = middle + half + CHARACTER;
  }
  return shown;
}

/** The tick that is nearest. */
export function nearest(ticks: readonly ChartTick[], at: number): ChartTick | undefined {
  return ticks.reduce<ChartTick | undefined>((best, tick) => (best && Math.abs(best.at - at) <= Math.abs(tick.at - at) ? best : tick), undefined);
}

/** The first index whose x is not below `x`. */
export function lowerBound(xs: ArrayLike<number>, x: number): number {
  let low = 0;
  let high = xs.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((xs[middle] as number) < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Turns values into pixels of the canvas. */
export type ToPixel = (value: number) => number;

export interface Plot {
  context: CanvasRenderingContext2D;
  left: number;
  top: number;
  width: number;
  height: number;
  x: ToPixel;
  y: ToPixel;
  /** What of x is shown. */
  range: Range;
  /** Device pixels per CSS pixel. */
  ratio: number;
}

/** Paints points. Of those on the same pixel one is painted: the picture is the same, and a million take no longer than a screenful. */
export function paintPoints(plot: Plot, series: ChartSeries): void {
  const { context, left, top, width, height } = plot;
  const size = Math.max(1, Math.round((series.width ?? 2) * plot.ratio));
  const columns = Math.ceil(width) + 1;
  const taken = new Uint8Array(columns * (Math.ceil(height) + 1));
  const first = lowerBound(series.x, plot.range.min);
  for (let index = first; index < series.x.length; index++) {
    const x = series.x[index] as number;
    if (x > plot.range.max) break;
    const y = series.y[index];
    if (y === null || y === undefined || y !== y) continue;
    const column = Math.round(plot.x(x) - left);
    const row = Math.round(plot.y(y) - top);
    if (column < 0 || row < 0 || column > width || row > height) continue;
    const cell = row * columns + column;
    if (taken[cell]) continue;
    taken[cell] = 1;
    context.fillRect(left + column - size / 2, top + row - size / 2, size, size);
  }
}

/**
 * Paints a line, or steps. Of the values within one column of pixels, the first, the smallest, the largest and the last are
 * painted, in the order in which they came: that is what a line through all of them would cover.
 */
export function paintLine(plot: Plot, series: ChartSeries): void {
  const { context } = plot;
  const step = series.kind === 'step';
  const first = Math.max(0, lowerBound(series.x, plot.range.min) - 1);
  context.beginPath();
  let drawing = false;
  let lastY = 0;
  let column = NaN;
  let low = 0;
  let high = 0;
  let last = 0;
  const flush = () => {
    if (column !== column) return;
    if (low !== high) {
      context.moveTo(column, low);
      context.lineTo(column, high);
      context.moveTo(column, last);
    }
    column = NaN;
  };
  for (let index = first; index < series.x.length; index++) {
    const x = series.x[index] as number;
    const value = series.y[index];
    if (value === null || value === undefined || value !== value) {
      flush();
      drawing = false;
      continue;
    }
    const px = Math.round(plot.x(x));
    const py = plot.y(value);
    if (px === column) {
      low = Math.min(low, py);
      high = Math.max(high, py);
      last = py;
    } else {
      flush();
      if (!drawing) context.moveTo(px, py);
      else {
        if (step) context.lineTo(px, lastY);
        context.lineTo(px, py);
      }
      drawing = true;
      column = px;
      low = high = last = py;
    }
    lastY = py;
    if (x > plot.range.max) break;
  }
  flush();
  context.stroke();
}

/** A few words about a series for those who do not see the chart. */
export function described(series: ChartSeries): { count: number; min: number; median: number; max: number } | undefined {
  // Sorting a million values at every update would be felt; a few thousand say the same.
  const stride = Math.max(1, Math.floor(series.y.length / 4096));
  const values: number[] = [];
  for (let index = 0; index < series.y.length; index += stride) {
    const value = series.y[index];
    if (typeof value === 'number' && Number.isFinite(value)) values.push(value);
  }
  const range = extent([series.y], false);
  if (!range || values.length === 0) return undefined;
  values.sort((a, b) => a - b);
  return { count: series.y.length, min: range.min, median: values[Math.floor((values.length - 1) / 2)] as number, max: range.max };
}
