/**
 * The API's types under the names that the page uses. Figures are in base SI units: seconds, bit/s, bytes.
 */

/** Something wrong with an experiment file, and where. Lines and columns count from 1. */
export interface Problem {
  message: string;
  line: number;
  column: number;
  end_line: number;
  end_column: number;
  file?: string | null;
  /** The point of a sweep at which it is wrong. */
  point?: string | null;
}

export type Backend = 'sim' | 'wire' | 'live';

export interface ServerInfo {
  version: string;
  machine: string;
  backends: Backend[];
  /** Every backend, with why it is missing here. */
  availability?: { backend: Backend; unavailable?: string | null }[];
  authenticated: boolean;
  store: string;
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Tree = { [key: string]: Json };

export interface Choice {
  name: string;
  doc: string;
}

export type Shape =
  | 'text' | 'duration' | 'rate' | 'bytes' | 'limit' | 'ratio' | 'integer' | 'number' | 'flag' | 'choice' | 'host' | 'hosts'
  | 'flow' | 'flows' | 'sinks' | 'links' | 'one-of' | 'file' | 'direction' | 'stations' | 'durations' | 'sizes' | 'position';

export interface FormKey {
  name: string;
  doc: string;
  required: boolean;
  default?: string | null;
  shape: Shape;
  units?: string[];
  min?: string | number | null;
  max?: string | number | null;
  choices?: Choice[];
  alternatives?: Alternative[];
  /** Of sinks: the keys of a table in the place of a name. */
  keys?: FormKey[];
  /** Whether a share such as `1 %` may stand for the first alternative. */
  share?: boolean;
}

export interface Alternative {
  name: string;
  /** Other words for it. */
  aliases?: string[];
  doc: string;
  keys: FormKey[];
}

export interface Medium {
  name: string;
  doc: string;
  stations: { min: number; max?: number | null };
  keys: FormKey[];
  /** Which of the keys are of the medium as a whole, and so not of a direction or station. */
  shared?: string[];
}

/** A figure that a limit can name. */
export interface FormFigure {
  of: 'flow' | 'sink' | 'bundle' | 'transport';
  name: string;
  doc: string;
  shape: Shape;
  units?: string[];
}

export interface FormSection {
  name: 'hosts' | 'link' | 'flow' | 'bundle' | 'experiment' | 'sweep' | 'limits';
  doc: string;
  keys: FormKey[];
  media?: Medium[];
  /** Of limits: what they can be set on. */
  figures?: FormFigure[];
}

export interface FormSchema {
  sections: FormSection[];
}

export interface Summary {
  name: string;
  points: number;
  repetitions: number;
  duration_s: number;
  /** Whether repetitions may end earlier. */
  ends_early?: boolean;
  hosts: number;
  links: number;
  flows: number;
}

export interface CheckAnswer {
  problems: Problem[];
  summary?: Summary | null;
  /** By backend: nothing, or why this experiment cannot run there. */
  backends?: Partial<Record<Backend, string | null>> | null;
}

export interface DrawnHost {
  name: string;
  x: number;
  y: number;
  placed: boolean;
  agent?: string | null;
  keys: Tree;
}

export interface DrawnLink {
  name: string;
  between: string[];
  medium: string;
  label: string;
  keys: Tree;
}

export interface DrawnFlow {
  name: string;
  from: string;
  to: string[];
  transport: string;
  source: string;
  count: number | string;
  label: string;
  keys: Tree;
}

export interface DrawnBundle {
  name: string;
  flows: string[];
  keys: Tree;
}

export interface Drawing {
  title: string;
  hosts: DrawnHost[];
  links: DrawnLink[];
  flows: DrawnFlow[];
  bundles: DrawnBundle[];
  experiment: Tree;
  sweep: { key: string; values: Json[] }[];
  limits: { key: string; limit: string }[];
}

export type SectionName = 'hosts' | 'link' | 'flow' | 'bundle';

export type Edit =
  | { op: 'set'; path: string[]; value: Json }
  | { op: 'remove'; path: string[] }
  | { op: 'rename'; section: SectionName; from: string; to: string }
  | { op: 'add'; section: SectionName; name?: string; values: Tree }
  | { op: 'place'; host: string; x: number; y: number };

export interface DrawingAnswer {
  drawing?: Drawing | null;
  problems: Problem[];
}

export interface EditAnswer extends DrawingAnswer {
  text: string;
}

export interface Example {
  name: string;
  title: string;
  text: string;
}

export interface JobProgress {
  points: number;
  points_done: number;
  repetitions: number;
  repetitions_done: number;
  fraction: number;
  left_s?: number | null;
}

export interface Job {
  id: string;
  kind: 'run' | 'plan' | 'paper' | 'probe';
  title: string;
  run?: number | string | null;
  state: 'waiting' | 'running' | 'stopping' | 'done' | 'failed' | 'stopped';
  progress: JobProgress;
  error?: string | null;
  result?: string | null;
}

export interface Started {
  job: string;
  run?: number | string | null;
}
