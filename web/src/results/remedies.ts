/** Remedies for a bad moment: other queues, simulated and ranked. */

import { api } from '../api/client';
import type { Prediction } from '../api/types';
import { show } from './quantity';
import type { Rewind } from './types';

export type Remedies = NonNullable<Rewind['remedies']>;

/** An experiment's queue, and what it does to a flow and to the transfers beside it. */
export interface Tried {
  name: string;
  /** Whether it is the queue as it was. */
  isBefore: boolean;
  /** The share of its messages that are lost or late. */
  missing: number;
  p99: number | undefined;
  others: string;
}

/** Wall time for each, in milliseconds. */
const BUDGET = 10_000;

function told(flow: string, name: string, isBefore: boolean, { report }: Prediction): Tried {
  const flows = report.points[0]?.runs[0]?.flows ?? [];
  const own = flows.find((one) => one.flow === flow)?.figures;
  const rate = (id: string) => flows.find((one) => one.flow === id)?.figures['throughput_user']?.mean;
  const others = flows.filter((one) => one.flow !== flow && rate(one.flow) !== undefined);
  return {
    name,
    isBefore,
    missing: (own?.['loss_and_late'] ?? own?.['loss'])?.mean ?? 0,
    p99: own?.['latency_p99']?.mean,
    others: others.map((one) => `${one.flow} ${show('rate', Number(rate(one.flow)?.toPrecision(3)))}`).join(', '),
  };
}

/** Fewer lost and late messages first, to a thousandth; then the smaller latency. */
function ranked(all: readonly Tried[]): Tried[] {
  const thousandths = ({ missing }: Tried) => Math.round(missing * 1000);
  return all.toSorted((a, b) => thousandths(a) - thousandths(b) || (a.p99 ?? Infinity) - (b.p99 ?? Infinity));
}

/** Simulates one after the other, and returns them ranked; `onfound` is told of all so far. */
export async function tryAll({ names, text }: Remedies, flow: string, signal: AbortSignal, onfound: (found: readonly Tried[]) => void = () => {}): Promise<readonly Tried[]> {
  const found: Tried[] = [];
  for (const [point, name] of names.entries()) {
    found.push(told(flow, name, point === 0, await api.predict({ text, point, budget_ms: BUDGET }, signal)));
    onfound(ranked(found));
  }
  return ranked(found);
}

/** `fq-codel: 41 ms at p99, 0 % lost or late`. */
export function inWords({ name, p99, missing }: Tried): string {
  const latency = p99 === undefined ? '' : `${show('time', Number(p99.toPrecision(3)))} at p99, `;
  return `\`${name}\`: ${latency}${show('share', Number(missing.toPrecision(3)))} lost or late`;
}
