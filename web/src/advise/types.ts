/** Advice and plans, as the API gives them. Figures are in base SI units. */

export type Use = 'rehearsal' | 'recording' | 'telephony';

export interface Blocks {
  sample_rate: number;
  frames: number;
  channels: number;
  sample_bytes: number;
}

export type Protection =
  | { kind: 'none' }
  | { kind: 'repeat'; repeats: number }
  | { kind: 'xor'; data: number }
  | { kind: 'reed-solomon'; data: number; parity: number };

export interface Judgement {
  transport: unknown;
  blocks: Blocks;
  protection: Protection;
  depth: number;
  stages: { capture: number; block: number; network: number; playout: number; playback: number };
  mouth_to_ear: number;
  measured: number;
  lost: number;
  late: number;
  concealed: number;
  longest_gap: number;
  burst_r: number;
  r: number | null;
  mos: number | null;
  rate: number;
}

export interface Recommendation {
  for: Use;
  best: Judgement;
  suffices: boolean;
  runner_up: Judgement | null;
  why: string;
  runner_up_costs: string | null;
  send: string;
  answer: string;
  loaded: Judgement | null;
  by_depth: Judgement[];
}

export interface Measured {
  transport: unknown;
  blocks: Blocks;
  load: string;
  marking: string;
  sent: number;
  lost: number;
  fastest: number;
  median: number;
  p99: number;
  slowest: number;
  deviation: number;
}

export interface Advice {
  host: string;
  budget: number;
  took: number;
  partial: boolean;
  recommendations: Recommendation[];
  warnings: string[];
  measured: Measured[];
  failed: { transport: unknown; why: string }[];
  capacity: number | null;
  /** An experiment file of what is recommended. */
  experiment: string | null;
}

export interface Value {
  value: string;
  number: number;
}

export type Verdict = 'kept' | 'broken' | 'undecided';

export interface Trial extends Value {
  verdict: Verdict | null;
  repetitions: number;
  refused: string | null;
  limits: { key: string; verdict: Verdict; mean: number | null; sd: number | null; half_width: number | null }[];
}

export interface Answer {
  values: Record<string, string | null>;
  kept: Value | null;
  broken: Value | null;
  undecided: [Value, Value] | null;
  kept_behind: Value[];
  finished: boolean;
  sentence: string;
  trials: Trial[];
}

export interface Plan {
  run: number;
  goal: 'maximise' | 'minimise';
  key: string;
  unit: string;
  from: Value;
  to: Value;
  confidence: number;
  repetitions: number;
  most_repetitions: number;
  limits: { key: string; condition: string }[];
  stopped: boolean;
  answers: Answer[];
  /** The experiment file at the answer; `null` if no value keeps the limits. */
  experiment: string | null;
}
