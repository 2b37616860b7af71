/** What the simulator says of a measurement before it begins, and whether the measurement keeps to it. */

import { api } from '../api/client';
import { quantity } from '../ui/format';
import { keep, kept } from '../ui/kept';
import type { Points } from './points';

/** Latencies of a flow in the simulation, in seconds: the least, and what 0.1 % exceed. */
export interface Band {
  least: number;
  most: number;
}

/** By the values of a point, and the flow. */
export type Bands = Record<string, Record<string, Band>>;

const KEY = 'trunkline.band.';
/** The wall time for a point and for all of them, in milliseconds: with more points, each has less. */
const BUDGET_MS = 400;
const TOGETHER_MS = 8_000;
const LEAST_MS = 40;

/** Simulates the points of a file, as many as there is time for; nothing of what cannot be simulated. */
export async function simulated(text: string): Promise<Bands> {
  const bands: Bands = {};
  const until = performance.now() + TOGETHER_MS;
  try {
    for (let point = 0, count = 1; point < Math.min(count, TOGETHER_MS / LEAST_MS) && performance.now() < until; point += 1) {
      const { points, report } = await api.predict({ text, point, budget_ms: Math.round(Math.max(LEAST_MS, Math.min(BUDGET_MS, TOGETHER_MS / count))) });
      count = points.length;
      const flows = report.points[0]?.runs[0]?.flows ?? [];
      const band = ({ flow, figures }: (typeof flows)[number]) => {
        const [least, most] = [figures['latency_min']?.mean, figures['latency_p999']?.mean];
        return least === undefined || most === undefined ? [] : [[flow, { least, most }] as const];
      };
      bands[named(points[point]?.values ?? [])] = Object.fromEntries(flows.flatMap(band));
    }
  } catch {
    // Without the simulation there is nothing to compare with.
  }
  return bands;
}

export function named(values: readonly string[]): string {
  return values.join('\n');
}

/** Keeps them for the page of the job. */
export function keepBands(job: string, bands: Bands): void {
  keep(KEY + job, JSON.stringify(bands), 'sessionStorage');
}

export function bandsOf(job: string): Bands {
  return JSON.parse(kept(KEY + job, 'sessionStorage') ?? '{}') as Bands;
}

/** The share of messages outside that is taken for granted: ten times that of the simulation, which is one repetition. */
const USUAL = 0.01;
/** A second is unusual if chance makes one so in fewer than one of a hundred. */
const LEVEL = 0.01;
/** Unusual seconds in a row after which it is said: chance makes them in one of a million. */
const SECONDS = 3;

interface Seconds {
  /** The second that is counted. */
  second: number;
  count: number;
  above: number;
  below: number;
  fastest: number;
  /** Unusual ones in a row, and when the first of them began. */
  row: number;
  since: number;
  said: string;
}

/** Follows the messages of a repetition, second by second. */
export class Watch {
  private next = 0;
  private generation = -1;
  private readonly flows = new Map<number, Seconds>();

  /** What is to be said of the flows that have left their band. */
  take(points: Points, names: readonly string[], bands: Record<string, Band>): string[] {
    if (points.generation !== this.generation) {
      this.generation = points.generation;
      this.flows.clear();
      this.next = points.oldest;
    }
    for (this.next = Math.max(this.next, points.oldest); this.next < points.added; this.next += 1) {
      const place = points.place(this.next);
      const flow = points.flow[place] as number;
      const band = bands[names[flow] ?? ''];
      if (band) this.count(flow, names[flow] ?? '', band, points.t[place] as number, points.value[place] as number);
    }
    return [...this.flows.values()].flatMap(({ said }) => (said === '' ? [] : [said]));
  }

  private count(flow: number, name: string, band: Band, t: number, value: number): void {
    const fresh = (second: number): Seconds => ({ second, count: 0, above: 0, below: 0, fastest: Infinity, row: 0, since: 0, said: '' });
    const now = this.flows.get(flow) ?? fresh(Math.floor(t));
    this.flows.set(flow, now);
    if (Math.floor(t) > now.second) {
      const outside = now.above + now.below;
      const isUnusual = outside > 0 && atLeast(outside, now.count * USUAL) < LEVEL;
      if (isUnusual && now.row === 0) now.since = now.second;
      now.row = isUnusual ? now.row + 1 : 0;
      now.said = now.row >= SECONDS ? sentence(name, band, now) : '';
      Object.assign(now, { second: Math.floor(t), count: 0, above: 0, below: 0, fastest: Infinity });
    }
    if (Number.isNaN(value)) return;
    now.count += 1;
    now.fastest = Math.min(now.fastest, value);
    if (value > band.most) now.above += 1;
    else if (value < band.least) now.below += 1;
  }
}

/** The chance of `k` or more where `mean` are expected (Poisson). */
export function atLeast(k: number, mean: number): number {
  let [term, below] = [Math.exp(-mean), 0];
  for (let i = 0; i < k; i += 1) {
    below += term;
    term *= mean / (i + 1);
  }
  return Math.max(0, 1 - below);
}

function sentence(name: string, { least, most }: Band, { count, above, below, fastest, since }: Seconds): string {
  const isAbove = above >= below;
  const share = `${Math.round((100 * (isAbove ? above : below)) / count)} % of its messages take ${isAbove ? `longer than ${quantity(most, 's', 3)}` : `less than ${quantity(least, 's', 3)}`}`;
  const apart = fastest - least;
  const fits =
    Math.abs(apart) > 0.1 * Math.max(least, 0.001)
      ? `Its fastest message takes ${quantity(fastest, 's', 3)} and not ${quantity(least, 's', 3)}: a path with ${quantity(Math.abs(apart), 's', 3)} ${apart > 0 ? 'more' : 'less'} delay would fit better.`
      : 'Its fastest message takes as long as simulated: more traffic, jitter, or a lower rate would fit better.';
  return `${name} has left the simulated band since ${since} s: ${share}, more than chance allows. ${fits}`;
}
