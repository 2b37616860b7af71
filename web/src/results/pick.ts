/** Which trace is looked at: those that a run has, by point, repetition and flow. */

import { part, search } from '../api/client';
import { pointName } from './figures';
import type { Run, RunPoint, RunRepetition } from './types';
import { channelName } from './words';

export interface Pick {
  point: number;
  repetition: number;
  flow: string;
}

/** Points that have a trace, with a name. */
export function pointsWithTraces(run: Run): { point: RunPoint; name: string }[] {
  return run.points
    .filter((point) => point.repetitions.some((one) => one.traces.length > 0))
    .map((point) => ({ point, name: pointName(run.axes, point.values) || 'all settings as in the file' }));
}

/** The trace nearest to what was picked last: another point keeps its repetition and its flow where it has them. */
export function settle(run: Run, wanted: Partial<Pick>): Pick | undefined {
  const points = pointsWithTraces(run);
  const point = (points.find(({ point }) => point.index === wanted.point) ?? points[0])?.point;
  const traced = (one: RunRepetition) => one.traces.length > 0;
  const repetition = point?.repetitions.find((one) => one.index === wanted.repetition && traced(one)) ?? point?.repetitions.find(traced);
  const flow = repetition?.traces.find((one) => one.flow === wanted.flow) ?? repetition?.traces[0];
  return point && repetition && flow ? { point: point.index, repetition: repetition.index, flow: flow.flow } : undefined;
}

/** The address of a repetition. */
export function repetitionOf(run: number, { point, repetition }: Pick): string {
  return `/runs/${run}/points/${point}/repetitions/${repetition}`;
}

/** The address of a trace, without what is asked of it. */
export function traceOf(run: number, pick: Pick): string {
  return `${repetitionOf(run, pick)}/flows/${part(pick.flow)}`;
}

/** Channels of a flow that a list has at most. */
const LISTED = 100;

/** The channels of a repetition that have sound, the first of each flow: their names, and where their sound is. */
export function channelsOf(run: number, point: number, one: RunRepetition): { name: string; address: string; query: string }[] {
  return one.sounds.flatMap(({ flow, members, channels }) =>
    Array.from({ length: Math.min(members * channels, LISTED) }, (_, i) => {
      const [member, channel] = [Math.floor(i / channels), i % channels];
      return { name: channelName({ flow, member, channel }), address: traceOf(run, { point, repetition: one.index, flow }), query: search({ member, channel }) };
    }),
  );
}

/** Whether anything of a run can be heard. */
export function hasSound(run: Run): boolean {
  return run.points.some((point) => point.repetitions.some((one) => one.sounds.length + one.audio.length > 0));
}
