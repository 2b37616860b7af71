/** What states are called, and how they look. */

import type { Backend } from '../api/types';
import type { Outcome, RunInfo, Status } from './types';

type Kind = 'good' | 'warn' | 'bad' | 'plain' | 'live';
interface Word {
  text: string;
  kind: Kind;
}

export function statusWord(status: Status): Word {
  const words: Record<Status, Word> = {
    running: { text: 'running', kind: 'live' },
    complete: { text: 'complete', kind: 'plain' },
    partial: { text: 'partial', kind: 'warn' },
  };
  return words[status];
}

/** How far a run is, `partial, 3 of 9 repetitions`, and which part of a run it is. */
export function statusText({ status, shard, repetitions_done, points, repetitions }: RunInfo): string {
  const wanted = shard?.repetitions ?? points * repetitions;
  const text = status === 'partial' ? `partial, ${repetitions_done} of ${wanted} repetitions` : statusWord(status).text;
  return shard ? `part ${shard.index} of ${shard.of}, ${text}` : text;
}

export function outcomeWord(outcome: Outcome | null, uncertain = false): Word {
  if (outcome === 'holds') return uncertain ? { text: 'holds, not certain', kind: 'warn' } : { text: 'holds', kind: 'good' };
  if (outcome === 'broken') return uncertain ? { text: 'broken, not certain', kind: 'warn' } : { text: 'broken', kind: 'bad' };
  return { text: outcome === 'not-applicable' ? 'does not apply' : 'not measured', kind: 'plain' };
}

const BACKENDS: Record<Backend, string> = { sim: 'simulated', wire: 'on the wire', live: 'live' };

export function backendWord(backend: Backend): string {
  return BACKENDS[backend];
}

/** A key without the part that says nothing: `bulk.count` for `flow.bulk.count`. */
export function shortKey(key: string): string {
  return key.split(',').map((one) => one.trim().replace(/^(flow|link|bundle)\./, '')).join(', ');
}

/** A name for a file: letters, digits and dashes. */
export function fileName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '') || 'experiment';
}

/** The flow, member and channel of `audio/p000-r00/voice-0-1.wav`; nothing of other audio. */
export function partsOf(path: string): { flow: string; member: number; channel: number } | undefined {
  const [, flow, member, channel] = /([^/]+)-(\d+)-(\d+)\.wav$/.exec(path) ?? [];
  return flow === undefined ? undefined : { flow, member: Number(member), channel: Number(channel) };
}

/** Whether a file is what `--hear` played: `audio/p000-r00/heard-voice.1.2.wav`. */
export function isHeard(path: string): boolean {
  return partsOf(path) === undefined && (path.split('/').at(-1)?.startsWith('heard-') ?? false);
}

/** `voice, channel 2` for `audio/p000-r00/voice-0-1.wav`; other audio is called as its file. */
export function channelOf(path: string): string {
  const parts = partsOf(path);
  return parts ? channelName(parts) : (path.split('/').at(-1) ?? path);
}

/** `voice, channel 2`; the first member is not named. */
export function channelName({ flow, member, channel }: { flow: string; member: number; channel: number }): string {
  return [flow, member > 0 ? `member ${member + 1}` : '', `channel ${channel + 1}`].filter((text) => text !== '').join(', ');
}

/** `round trip` where a flow's latency is that of the way there and back; nothing where it is one way. */
export function wayOf(measured: string | null | undefined): string {
  return measured === 'round-trip' ? 'round trip' : '';
}
