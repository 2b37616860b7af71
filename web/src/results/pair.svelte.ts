/** Two sounds that play in step, of which one is let through. */
import type { Samples } from './wave';

/** Which of two. */
export type Side = 0 | 1;
export const SIDES = [0, 1] as const;

/** A sound of the server: of a flow's address and its channel, as it was sent or as it is heard. */
export interface Source {
  name: string;
  address: string;
  query: string;
  of: 'sent' | 'heard';
}

/** What a channel sent, and what is heard of it. */
export function bothEnds(address: string, query: string): [Source, Source] {
  return [{ name: 'Sent', address, query, of: 'sent' }, { name: 'Heard', address, query, of: 'heard' }];
}

export class Pair {
  /** Seconds from the beginning. */
  at = $state(0);
  isPlaying = $state(false);
  /** Which is let through. */
  side = $state<Side>(1);
  /** Seconds of the longer one. */
  readonly duration: number;
  /** Made at the first use: browsers want a gesture. */
  private player: { context: AudioContext; gains: GainNode[]; buffers: AudioBuffer[] } | undefined;
  private sources: AudioBufferSourceNode[] = [];
  /** When the sound began, by the player's clock. */
  private began = 0;
  private frame = 0;

  /** `levels`: the factor by which each is turned down. */
  constructor(
    readonly waves: readonly [Samples, Samples],
    readonly levels: readonly [number, number],
  ) {
    this.duration = Math.max(...waves.map(({ values, rate }) => values.length / rate));
  }

  play(from = this.isAtEnd ? 0 : this.at): void {
    this.pause();
    const { context, gains, buffers } = (this.player ??= this.made());
    void context.resume();
    // Both begin in the same sample, and only one of them is let through.
    const begins = context.currentTime + 0.05;
    this.sources = SIDES.map((side) => {
      const source = new AudioBufferSourceNode(context, { buffer: buffers[side] });
      source.connect(gains[side] as GainNode);
      source.start(begins, from);
      return source;
    });
    this.began = begins - from;
    this.at = from;
    this.isPlaying = true;
    this.follow();
  }

  pause(): void {
    cancelAnimationFrame(this.frame);
    for (const source of this.sources) source.stop();
    this.sources = [];
    void this.player?.context.suspend();
    this.isPlaying = false;
  }

  seek(to: number): void {
    const wasPlaying = this.isPlaying;
    this.pause();
    this.at = Math.min(Math.max(0, to), this.duration);
    if (wasPlaying && !this.isAtEnd) this.play();
  }

  listen(to: Side): void {
    this.side = to;
    if (!this.player) return;
    // Without a click: 5 ms for either.
    for (const side of SIDES) this.player.gains[side]?.gain.setTargetAtTime(this.gain(side), this.player.context.currentTime, 0.005);
  }

  close(): void {
    this.pause();
    void this.player?.context.close();
    this.player = undefined;
  }

  private get isAtEnd(): boolean {
    return this.at >= this.duration - 0.05;
  }

  private gain(side: Side): number {
    return side === this.side ? this.levels[side] : 0;
  }

  private made() {
    const context = new AudioContext();
    const gains = SIDES.map((side) => {
      const node = new GainNode(context, { gain: this.gain(side) });
      node.connect(context.destination);
      return node;
    });
    const buffers = this.waves.map(({ values, rate }) => {
      const made = context.createBuffer(1, Math.max(values.length, 1), rate);
      made.copyToChannel(values, 0);
      return made;
    });
    return { context, gains, buffers };
  }

  private follow(): void {
    if (!this.player) return;
    this.at = Math.max(0, this.player.context.currentTime - this.began);
    if (this.at >= this.duration) {
      this.at = this.duration;
      this.pause();
    } else this.frame = requestAnimationFrame(() => this.follow());
  }
}
