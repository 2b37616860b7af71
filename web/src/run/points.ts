/**
 * The last points of a scatter, in typed arrays that never grow: a million of them take 16 MB, and adding one allocates
 * nothing.
 */
export class Points {
  /** Seconds since the start of the repetition. */
  readonly t: Float64Array;
  /** The value; `NaN` for a message that was lost. */
  readonly value: Float32Array;
  /** Its flow. */
  readonly flow: Uint16Array;
  /** Its channel. */
  readonly channel: Uint16Array;
  readonly capacity: number;
  /** How many were ever added since the last `clear`. */
  added = 0;
  /** How many of those were lost messages. */
  lost = 0;
  /** Grows with every `clear`, so that who draws knows to begin anew. */
  generation = 0;
  /** The largest time, and the smallest and largest values, since the last `clear`. */
  latest = 0;
  least = Number.POSITIVE_INFINITY;
  largest = Number.NEGATIVE_INFINITY;
  /** The smallest and largest values of each flow, and how many it has had. */
  private readonly bounds: [number, number][] = [];
  private readonly counts: number[] = [];

  constructor(capacity = 1_000_000) {
    this.capacity = capacity;
    this.t = new Float64Array(capacity);
    this.value = new Float32Array(capacity);
    this.flow = new Uint16Array(capacity);
    this.channel = new Uint16Array(capacity);
  }

  /** How many are kept. */
  get length(): number {
    return Math.min(this.added, this.capacity);
  }

  /** The number, counted from the first ever added, of the oldest that is kept. */
  get oldest(): number {
    return this.added - this.length;
  }

  /** The place in the arrays of the point with this number. */
  place(number: number): number {
    return number % this.capacity;
  }

  /** Adds one point; `null` is a lost message. */
  push(t: number, value: number | null, flow: number, channel = 0): void {
    const place = this.added % this.capacity;
    this.t[place] = t;
    this.flow[place] = flow;
    this.channel[place] = channel;
    if (value === null || Number.isNaN(value)) {
      this.value[place] = Number.NaN;
      this.lost += 1;
    } else {
      this.value[place] = value;
      if (value < this.least) this.least = value;
      if (value > this.largest) this.largest = value;
      const bounds = (this.bounds[flow] ??= [value, value]);
      if (value < bounds[0]) bounds[0] = value;
      if (value > bounds[1]) bounds[1] = value;
    }
    if (t > this.latest) this.latest = t;
    this.counts[flow] = (this.counts[flow] ?? 0) + 1;
    this.added += 1;
  }

  clear(): void {
    this.added = 0;
    this.lost = 0;
    this.latest = 0;
    this.least = Number.POSITIVE_INFINITY;
    this.largest = Number.NEGATIVE_INFINITY;
    this.bounds.length = this.counts.length = 0;
    this.generation += 1;
  }

  /** The flows, those on top first: the more messages a flow has, the lower it lies, since it shows between those above it. */
  layers(): number[] {
    const size = (flow: number) => Math.floor(Math.log2(this.counts[flow] ?? 1));
    return Object.keys(this.counts).map(Number).toSorted((a, b) => size(a) - size(b) || a - b);
  }

  /** The same extremes, without those of hidden flows. */
  shown(hidden: ReadonlySet<number>): Extremes {
    if (hidden.size === 0) return this;
    const bounds = this.bounds.filter((_, flow) => !hidden.has(flow));
    return { latest: this.latest, least: Math.min(...bounds.map(([least]) => least)), largest: Math.max(...bounds.map(([, largest]) => largest)) };
  }
}

export type Extremes = Pick<Points, 'latest' | 'least' | 'largest'>;

/** A few values along time for each of several series, for lines: the oldest make room for the newest. */
export class Lines {
  readonly x: number[] = [];
  readonly y: (number | null)[][] = [];
  readonly labels: string[] = [];
  private readonly places = new Map<string, number>();

  constructor(readonly most = 3000) {}

  /** Adds the values at a time; series that are new begin here, those without a value have a gap. */
  push(t: number, values: Iterable<readonly [string, number]>): void {
    this.x.push(t);
    for (const column of this.y) column.push(null);
    for (const [label, value] of values) {
      let place = this.places.get(label);
      if (place === undefined) {
        place = this.labels.length;
        this.places.set(label, place);
        this.labels.push(label);
        this.y.push(new Array<number | null>(this.x.length).fill(null));
      }
      const column = this.y[place];
      if (column) column[this.x.length - 1] = value;
    }
    // In large steps: removing from the front moves everything behind it.
    if (this.x.length > this.most * 1.25) {
      const old = this.x.length - this.most;
      this.x.splice(0, old);
      for (const column of this.y) column.splice(0, old);
    }
  }

  clear(): void {
    this.x.length = 0;
    this.y.length = 0;
    this.labels.length = 0;
    this.places.clear();
  }
}
