/** The figures of a run, looked up for tables and charts. */

import { show, type Estimate, type Quantity } from './quantity';
import type { Axis, FigureDefinition, Report, ReportPoint, ReportSide } from './types';
import { shortKey, wayOf } from './words';

/** A figure that can be chosen. */
export interface Choice {
  id: string;
  name: string;
  unit: string;
  quantity: Quantity;
  definition: string;
  /** Its place among the figures that are shown first; `undefined` of all others. */
  rank: number | undefined;
}

/** What stands before a figure, as in the report. */
export const MARKS = "≈ marks percentiles from a histogram (within 0.1 %), ? values outside the E-model's range.";

/** The flows of a report, in its order. */
export function flowsOf(report: Report): string[] {
  const names = new Set<string>();
  for (const point of report.points) for (const side of point.runs) for (const flow of side.flows) names.add(flow.flow);
  return [...names];
}

/** The figures that any flow (or the one named) has somewhere, those with a rank first. */
export function figuresOf(report: Report, flow?: string): Choice[] {
  const there = new Set<string>();
  for (const point of report.points) {
    for (const side of point.runs) {
      for (const each of side.flows) if (flow === undefined || each.flow === flow) for (const id of Object.keys(each.figures)) there.add(id);
    }
  }
  const order = Object.keys(report.figures);
  const rank = (one: Choice) => one.rank ?? order.length + order.indexOf(one.id);
  return [...there].map((id) => choice(id, report.figures[id])).sort((a, b) => rank(a) - rank(b));
}

/** A figure with what it counts. */
export function choice(id: string, definition: FigureDefinition | undefined): Choice {
  const { name = id, unit = '', quantity = 'number', definition: text = '', rank } = definition ?? {};
  return { id, name, unit, quantity, definition: text, rank: rank ?? undefined };
}

/** Whether the key of a limit is of a flow as a whole: not of one of its sinks or its single flows, nor of a bundle. */
export function isOfFlow(key: string, flow: string): boolean {
  return key.startsWith(`flow.${flow}.`) && !/^(sink|each)\./.test(key.slice(`flow.${flow}.`.length));
}

/** What a run found at a point. */
export function sideOf(point: ReportPoint, run: number): ReportSide | undefined {
  return point.runs.find((side) => side.run === run);
}

/** `voice (round trip)`: a flow's name with what its latency is, where that is not one way, or with the bound of two clocks. */
export function flowTitle(report: Report, flow: string): string {
  const found = report.points.flatMap((point) => point.runs.flatMap((side) => side.flows)).filter((each) => each.flow === flow);
  const clocks = Math.max(...found.map((each) => each.figures['clock_error']?.mean ?? 0), 0);
  const way = wayOf(found[0]?.measured) || (clocks > 0 ? `one way ± ${show('time', clocks)}` : '');
  return way ? `${flow} (${way})` : flow;
}

/** A figure of a flow at a point. */
export function estimateAt(point: ReportPoint, run: number, flow: string, figure: string): Estimate | undefined {
  return sideOf(point, run)?.flows.find((each) => each.flow === flow)?.figures[figure];
}

/** The mark of that figure, with a space behind it. */
export function markAt(point: ReportPoint, run: number, flow: string, figure: string): string {
  const mark = sideOf(point, run)?.flows.find((each) => each.flow === flow)?.marks?.[figure];
  return mark ? `${mark} ` : '';
}

/** `voice.count = 4, bulk.window = 16 KiB`; empty where nothing is swept. */
export function pointName(axes: readonly Axis[], values: readonly string[]): string {
  return axes.map((axis, i) => `${shortKey(axis.key)} = ${values[i] ?? '?'}`).join(', ');
}

/** A line of a swept figure. */
export interface SweptLine {
  label: string;
  x: number[];
  mean: number[];
  /** Half the width of the 95 % confidence interval; `null` of a single repetition. */
  half: (number | null)[];
}

/**
 * A figure of a flow against the axis at `along`, a line for every combination of the other axes and for every run. Words
 * stand at 0, 1, 2 ...
 */
export function swept(report: Report, axes: readonly Axis[], choices: ReadonlyMap<number, readonly number[]>, along: number, flow: string, figure: string, runs: readonly { id: number; name: string }[]): SweptLine[] {
  const lines = new Map<string, SweptLine & { at: { x: number; mean: number; half: number | null }[] }>();
  const axis = axes[along];
  if (!axis) return [];
  for (const point of report.points) {
    const chosen = choices.get(point.index);
    const place = chosen?.[along];
    if (!chosen || place === undefined) continue;
    const others = axes.flatMap((other, i) => (i === along ? [] : [`${shortKey(other.key)} ${other.values[chosen[i] ?? 0] ?? ''}`]));
    for (const run of runs) {
      const estimate = estimateAt(point, run.id, flow, figure);
      if (!estimate) continue;
      const label = [...others, ...(runs.length > 1 ? [run.name] : [])].join(', ') || flow;
      const line = lines.get(label) ?? { label, x: [], mean: [], half: [], at: [] };
      line.at.push({ x: axis.numbers?.[place] ?? place, mean: estimate.mean, half: estimate.ci95 ?? null });
      lines.set(label, line);
    }
  }
  return [...lines.values()].map(({ label, at }) => {
    at.sort((a, b) => a.x - b.x);
    return { label, x: at.map((one) => one.x), mean: at.map((one) => one.mean), half: at.map((one) => one.half) };
  });
}
