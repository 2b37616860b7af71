/** What a browser keeps of a run that is being measured: its records, its lines, and whether anything was lost on the way. */

import type { Records } from '../api/events';
import { Lines, Points } from './points';

/** The repetition whose records are shown. */
export interface Shown {
  point: number;
  repetition: number;
  values: readonly string[];
  flows: readonly string[];
}

/** Records that arrived in this browser, against those that were measured while it watched. */
export interface Tally {
  received: number;
  /** More than `received` where the server showed some of many only. */
  measured: number;
  /** Batches that never arrived: this browser was too slow for them. */
  missed: number;
}

/** How long a repetition that says nothing more is shown while others are measured, in milliseconds. */
const PATIENCE = 1_000;

export class LiveRun {
  readonly points: Points;
  readonly throughput = new Lines();
  readonly queues = new Lines();
  readonly tally: Tally = { received: 0, measured: 0, missed: 0 };
  shown: Shown | undefined;
  /** Figures and limits of the repetition so far, as the server counts them. */
  figures: Pick<Records, 'so_far' | 'limits'> = { so_far: [], limits: [] };
  private heard = 0;
  private isOver = false;
  private sequence: number | undefined;

  constructor(capacity = 1_000_000) {
    this.points = new Points(capacity);
  }

  /**
   * Takes a batch at `now`, in milliseconds. In virtual time several repetitions are measured at once: one of them is shown
   * until it is over, all are counted. A batch that was taken before (the connection was lost and begun again) changes nothing.
   */
  take(batch: Records, now: number): void {
    if (this.sequence !== undefined && batch.seq <= this.sequence) return;
    this.tally.missed += this.sequence === undefined ? 0 : batch.seq - this.sequence - 1;
    this.sequence = batch.seq;
    this.tally.received += batch.t.length;
    this.tally.measured += batch.counted;
    if (!this.isShown(batch.point, batch.repetition)) {
      if (this.shown && !this.isOver && now - this.heard < PATIENCE) return;
      this.begin(batch);
    }
    this.heard = now;
    const { t, flow, channel, latency } = batch;
    for (let i = 0; i < t.length; i += 1) this.points.push(t[i] as number, latency[i] ?? null, flow[i] ?? 0, channel[i] ?? 0);
    if (batch.so_far.length > 0) this.figures = batch;
    this.extend(batch);
  }

  /** A repetition was measured to its end: another one may be shown. */
  finished(point: number, repetition: number): void {
    if (this.isShown(point, repetition)) this.isOver = true;
  }

  private isShown(point: number, repetition: number): boolean {
    return this.shown?.point === point && this.shown.repetition === repetition;
  }

  private begin({ point, repetition, values, flows }: Records): void {
    this.shown = { point, repetition, values, flows };
    this.isOver = false;
    this.figures = { so_far: [], limits: [] };
    this.points.clear();
    this.throughput.clear();
    this.queues.clear();
  }

  private extend({ throughput, queues }: Records): void {
    const now = queues.reduce((latest, queue) => Math.max(latest, queue.t), this.points.latest);
    const flows = this.shown?.flows ?? [];
    if (throughput.length > 0) {
      this.throughput.push(now, throughput.map(({ flow, bps }) => [flows[flow] ?? `flow ${flow + 1}`, bps] as const));
    }
    if (queues.length > 0) {
      this.queues.push(now, queues.map(({ link, direction, bytes }) => [`${link}, ${direction}`, bytes] as const));
    }
  }
}

/** The newest messages in a few numbers, for a sentence about now. */
export function recent(points: Points, most = 500): { median: number | null; lost: number; count: number } {
  const values: number[] = [];
  const first = Math.max(points.oldest, points.added - most);
  for (let number = first; number < points.added; number += 1) {
    const value = points.value[points.place(number)] as number;
    if (!Number.isNaN(value)) values.push(value);
  }
  values.sort((a, b) => a - b);
  const count = points.added - first;
  return { median: values[values.length >> 1] ?? null, lost: count - values.length, count };
}
