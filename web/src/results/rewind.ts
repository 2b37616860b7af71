/** A moment of a run that is looked at again: where it is in the page's address, and what its charts are made of. */

import { ApiError, get, held, search } from '../api/client';
import { lowerBound } from '../ui/chart';
import { counted, quantity } from '../ui/format';
import type { Samples } from './wave';
import type { Moment, OverTime, Rewind, RewoundEvent } from './types';

export interface BadMoment {
  point: number;
  repetition: number;
  flow: string;
  /** When the message was sent, in seconds. */
  at: number;
  /** Its latency in seconds; nothing of a lost one. */
  latency: number | undefined;
  /** The part of time around it. */
  from: number;
  to: number;
}

/** What an address says of a moment; nothing if it says none. */
export function momentOf(query: URLSearchParams): BadMoment | undefined {
  const number = (name: string) => Number(query.get(name) ?? NaN);
  const [at, from, to] = [number('at'), number('from'), number('to')];
  const flow = query.get('flow');
  if (flow === null || ![at, from, to].every(Number.isFinite) || from >= to) return undefined;
  const latency = query.has('latency') ? number('latency') : undefined;
  return { point: number('point') || 0, repetition: number('repetition') || 0, flow, at, latency: Number.isFinite(latency) ? latency : undefined, from, to };
}

/** The address that says it. */
export function addressOf(run: number, { point, repetition, flow, ...moment }: BadMoment): string {
  const short = Object.fromEntries(Object.entries(moment).map(([name, value]) => [name, value === undefined ? undefined : Number(value.toFixed(7))]));
  return `/runs/${run}${search({ tab: 'latency', point, repetition, flow, ...short })}`;
}

/** What is seen around a message without other wishes: a second before it and after its arrival, or less where it is short. */
export function around(t: number, value: number | null): { from: number; to: number } {
  const room = Math.min(1, Math.max(0.05, 3 * (value ?? 1)));
  return { from: Math.max(0, t - room), to: t + (value ?? 0) + room };
}

/** The messages of the sound that a saved file has of a flow. */
interface Moments {
  /** Their places in the sound, in seconds. */
  position: readonly number[];
  sent: readonly (number | null)[];
  latency: readonly (number | null)[];
}

/** The place of a dot's message in the sound of its channel. A saved file has that of the first channel, or a part of it. */
export async function placeOf(address: string, at: number, latency: number | null | undefined, signal: AbortSignal): Promise<Moment> {
  if (!held) return get<Moment>(`${address}/moment${search({ at, latency })}`, signal);
  const { position, sent, latency: latencies } = await get<Moments>(`${address}/moments`);
  // The dots have latencies of single precision.
  const place = sent.findIndex((one, i) => one === at && (latencies[i] === null ? null : Math.fround(latencies[i] ?? NaN)) === latency);
  if (place < 0) throw new ApiError('The sound of this message is not in the file: it has that of one channel of each flow, or of a part of it.', 'input');
  return { member: 0, channel: 0, position: position[place] ?? 0 };
}

/** A message of the sound that a saved file has of a flow, the nearest to a moment, and when it was sent: those of other channels were under way with it. */
export async function nearestTo(address: string, at: number): Promise<Moment & { at: number }> {
  const { position, sent } = await get<Moments>(`${address}/moments`);
  const away = (place: number) => Math.abs((sent[place] ?? Infinity) - at);
  const place = sent.reduce<number>((best, _, i) => (away(i) < away(best) ? i : best), 0);
  return { member: 0, channel: 0, position: position[place] ?? 0, at: sent[place] ?? Infinity };
}

/** A value for each moment until the next. */
export interface Steps {
  t: readonly number[];
  bytes: readonly number[];
}

/** The steps of a part of time, from the one that it begins with. */
export function during({ t, bytes }: Steps, from: number, to: number): Steps {
  const [first, end] = [Math.max(0, lowerBound(t, from) - 1), lowerBound(t, to)];
  return { t: t.slice(first, end), bytes: bytes.slice(first, end) };
}

/** What is known of a moment where no packet is: the records, which name no cause. */
export function recorded({ at, latency, from, to }: BadMoment, { flows, queues, stalls }: OverTime): Rewind {
  const waiting = queues.map((queue) => ({ link: queue.link, bytes: queue.bytes[lowerBound(queue.t, at + 1e-9) - 1] ?? 0 })).toSorted((a, b) => b.bytes - a.bytes)[0];
  const took = latency === undefined ? 'It was lost' : quantity(latency, 's', 3);
  const queue = waiting && waiting.bytes > 0 ? `${quantity(waiting.bytes, 'B', 3)} waited at \`${waiting.link.replace('>', ' → ')}\`` : queues.length > 0 ? 'nothing waited at a link' : '';
  const connections = flows.map(({ flow, sampled, window }) => {
    const [first, end] = [lowerBound(sampled, from), lowerBound(sampled, to)];
    return { flow, member: flow, t: sampled.slice(first, end), window: window.slice(first, end) };
  });
  return {
    sentence: queue === '' ? took : `${took}; when it was sent, ${queue}`,
    message: { member: '', sent: at, received: latency === undefined ? null : at + latency },
    parts: [], t: [], queues: [], events: [], connections, stalls: stalls.filter(([start = 0, end = 0]) => start <= to && end >= from),
    note: 'This file has no packets, and so no cause: `trunkline serve` with this run names it, with each drop and mark, and remedies.',
  };
}

/** Drops and marks by link, cause and member, the most first. */
export function tally(events: readonly RewoundEvent[]): { what: string; link: string; count: string; members: string }[] {
  const found = new Map<string, { what: string; link: string; count: number; members: Map<string, number> }>();
  for (const { link, member, mark, cause } of events) {
    const what = `${mark ? 'marked' : 'dropped'}: ${cause.replaceAll('-', ' ')}`;
    const row = found.get(`${link} ${what}`) ?? { what, link: link.replace('>', ' → '), count: 0, members: new Map<string, number>() };
    row.count += 1;
    row.members.set(member, (row.members.get(member) ?? 0) + 1);
    found.set(`${link} ${what}`, row);
  }
  const members = (all: Map<string, number>) => [...all].toSorted((a, b) => b[1] - a[1]).map(([name, count]) => `${name} (${count})`).join(', ');
  return [...found.values()].toSorted((a, b) => b.count - a.count).map((row) => ({ ...row, count: counted(row.count, 'packet'), members: members(row.members) }));
}

/** The part of a sound that lies in a part of the run, by the run's clock, which is `ahead` of the sound's. */
export function cut({ rate, values }: Samples, ahead: number, from: number, to: number): { x: Float64Array; y: Float32Array } {
  const first = Math.max(0, Math.ceil((from - ahead) * rate));
  const y = values.subarray(first, Math.max(first, Math.min(values.length, Math.floor((to - ahead) * rate))));
  return { x: Float64Array.from(y, (_, i) => ahead + (first + i) / rate), y };
}
