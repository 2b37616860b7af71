/** What the simulator says of a measurement before it begins, and whether the measurement keeps to it. */

import { get, part } from '../api/client';
import type { components } from '../api/schema';
import { quantity } from '../ui/format';
import type { Points } from './points';

/** Latencies of a flow in the simulation, in seconds: the least, and what 0.1 % exceed. */
export interface Band {
  least: number;
  most: number;
}

/** By the values of a point, and the flow. */
export type Bands = Record<string, Record<string, Band>>;

/** What the server has simulated of a job before it was measured; nothing of what cannot be simulated. */
export async function simulated(job: string): Promise<Bands> {
  const bands: Bands = {};
  for (const { values, flow, least_s, most_s } of await get<components['schemas']['PredictedLatency'][]>(`/jobs/${part(job)}/prediction`)) {
    (bands[named(values)] ??= {})[flow] = { least: least_s, most: most_s };
  }
  return bands;
}

export function named(values: readonly string[]): string {
  return values.join('\n');
}

/** The share of messages outside that is taken for granted: ten times that of the simulation, which is one repetition. */
const USUAL = 0.01;
/** A part of a repetition (a second, or a tenth of a short one) is unusual if chance makes one so in fewer than one of a hundred. */
const LEVEL = 0.01;
/** Unusual parts in a row after which it is said: chance makes them in one of a million. */
const PARTS = 3;

interface Parts {
  /** The part that is counted. */
  part: number;
  count: number;
  above: number;
  below: number;
  fastest: number;
  /** Unusual ones in a row, and when the first of them began. */
  row: number;
  since: number;
  said: string;
}

/** Follows the messages of a repetition, part by part. */
export class Watch {
  /** Length of a part, in seconds. */
  length = 1;
  private next = 0;
  private generation = -1;
  private readonly flows = new Map<number, Parts>();

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
    const fresh = (part: number): Parts => ({ part, count: 0, above: 0, below: 0, fastest: Infinity, row: 0, since: 0, said: '' });
    const part = Math.floor(t / this.length);
    const now = this.flows.get(flow) ?? fresh(part);
    this.flows.set(flow, now);
    if (part > now.part) {
      const outside = now.above + now.below;
      const isUnusual = outside > 0 && atLeast(outside, now.count * USUAL) < LEVEL;
      if (isUnusual && now.row === 0) now.since = now.part * this.length;
      now.row = isUnusual ? now.row + 1 : 0;
      now.said = now.row >= PARTS ? sentence(name, band, now) : '';
      Object.assign(now, { part, count: 0, above: 0, below: 0, fastest: Infinity });
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

function sentence(name: string, { least, most }: Band, { count, above, below, fastest, since }: Parts): string {
  const isAbove = above >= below;
  const share = `${Math.round((100 * (isAbove ? above : below)) / count)} % of its messages take ${isAbove ? `longer than ${quantity(most, 's', 3)}` : `less than ${quantity(least, 's', 3)}`}`;
  const apart = fastest - least;
  const fits =
    Math.abs(apart) > 0.1 * Math.max(least, 0.001)
      ? `Its fastest message takes ${quantity(fastest, 's', 3)} and not ${quantity(least, 's', 3)}: a path with ${quantity(Math.abs(apart), 's', 3)} ${apart > 0 ? 'more' : 'less'} delay would fit better.`
      : 'Its fastest message takes as long as simulated: more traffic, jitter, or a lower rate would fit better.';
  return `${name} has left the simulated band since ${Number(since.toFixed(2))} s: ${share}, more than chance allows. ${fits}`;
}
