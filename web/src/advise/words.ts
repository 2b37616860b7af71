/** Ways to send, and searches, in words. */

import { quantity } from '../ui/format';
import type { Blocks, Judgement, Protection } from './types';

/** `20 ms of G.711`, `128 frames, 2 channels, 48 kHz`. */
export function blocksText({ sample_rate: rate, frames, channels, sample_bytes: bytes }: Blocks): string {
  if (rate === 8000 && channels === 1 && bytes === 1) return `${quantity(frames / rate, 's')} of G.711`;
  return `${frames} frames, ${channels} ${channels === 1 ? 'channel' : 'channels'}, ${rate / 1000} kHz`;
}

export function protectionText(protection: Protection): string {
  switch (protection.kind) {
    case 'none':
      return 'none';
    case 'repeat':
      return protection.repeats === 1 ? 'every block again with the next' : `every block again with the next ${protection.repeats}`;
    case 'xor':
      return `a parity block for every ${protection.data}`;
    case 'reed-solomon':
      return `${protection.parity} Reed-Solomon blocks for every ${protection.data}`;
  }
}

/** A transport's name: a word, or a table with a `kind`. */
export function transportText(transport: unknown): string {
  if (typeof transport === 'string') return transport;
  if (transport !== null && typeof transport === 'object' && 'kind' in transport) return String(transport.kind);
  return String(transport);
}

/** Where the delay from mouth to ear comes from, in the order in which sound meets it. */
export function stagesOf({ stages }: Judgement): { name: string; seconds: number }[] {
  return [
    { name: 'capture', seconds: stages.capture },
    { name: 'filling a block', seconds: stages.block },
    { name: 'network', seconds: stages.network },
    { name: 'playout buffer', seconds: stages.playout },
    { name: 'playback', seconds: stages.playback },
  ];
}

/** `host`, `host:port`, `[::1]:port`: the host and the port if there is one; `undefined` if it is none of these. */
export function hostAndPort(text: string): { host: string; port?: number } | undefined {
  const [, six, sixPort, host, port] = /^(?:\[([0-9a-fA-F:.]+)\](?::(\d+))?|([^\s:[\]]+)(?::(\d+))?)$/.exec(text.trim()) ?? [];
  const name = six ?? host ?? (/^[0-9a-fA-F:.]+$/.test(text.trim()) && text.includes(':') ? text.trim() : undefined);
  if (name === undefined) return undefined;
  const digits = sixPort ?? port;
  if (digits === undefined) return { host: name };
  const number = Number(digits);
  return number >= 1 && number <= 65535 ? { host: name, port: number } : undefined;
}
