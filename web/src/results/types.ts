/** Answers of the API about runs, jobs and studies. Figures are in base SI units; names as the server has them. */

import type { Backend } from '../api/types';
import type { Estimate } from './quantity';

export type Status = 'running' | 'complete' | 'partial';

export interface RunInfo {
  id: number;
  name: string;
  backend: Backend;
  status: Status;
  started: string;
  finished: string | null;
  version: string;
  machine: string;
  seed: string;
  repetitions: number;
  points: number;
  repetitions_done: number;
  repetition_length_s: number;
  directory: string;
  file: string;
  experiment_hash: string;
  tags: string[];
  key: string;
  /** The job that executes it now. */
  job?: string;
}

export interface RunList {
  runs: RunInfo[];
  total: number;
  /** `before` of the next page. */
  next: number | null;
}

export interface Axis {
  key: string;
  values: string[];
  numbers: number[] | null;
  unit: string;
}

export interface RunRepetition {
  index: number;
  partial: boolean;
  summarised: boolean;
  traces: { flow: string }[];
  audio: string[];
}

export interface RunPoint {
  index: number;
  choice: number[];
  values: string[];
  repetitions: RunRepetition[];
}

export interface Run {
  info: RunInfo;
  text: string;
  axes: Axis[];
  limits: { key: string; condition: string; bound: number }[];
  points: RunPoint[];
  counterpart: number | null;
  figures: Report;
}

export type Outcome = 'holds' | 'broken' | 'not-measured' | 'not-applicable';

export interface FigureDefinition {
  name: string;
  unit: string;
  definition: string;
  source: string;
}

export interface Report {
  runs: { id: number; backend: Backend; status: Status; headline: string; outcome: Outcome | null }[];
  limits: ReportLimit[];
  points: ReportPoint[];
  figures: Record<string, FigureDefinition>;
  bundle_figures: Record<string, FigureDefinition>;
}

export interface ReportLimit {
  key: string;
  condition: string;
  figure: string;
  bound: number;
  runs: {
    run: number;
    outcome: Outcome;
    worst: number | null;
    points: { point: number; outcome: Outcome; uncertain: boolean; mean: number | null; ci95: number | null }[];
  }[];
}

export interface ReportPoint {
  index: number;
  values: Record<string, string>;
  runs: ReportSide[];
}

export interface ReportSide {
  run: number;
  backend: Backend;
  repetitions: number;
  cut_short: boolean;
  flows: ReportFlow[];
  bundles: { bundle: string; flows: string[]; transport: string | null; members: number; figures: Figures }[];
  links: ReportLink[];
  media: { medium: string; station: string | null; figures: Record<string, Estimate | null> }[];
}

export type Figures = Record<string, Estimate>;

export interface ReportFlow {
  flow: string;
  transport: string;
  members: number;
  channels: number;
  measured: string;
  codec: string | null;
  percentiles_exact: boolean;
  figures: Figures;
  sinks: { sink: string; figures: Figures }[];
}

export interface ReportLink {
  link: string;
  utilisation: Estimate | null;
  sojourn_mean: Estimate | null;
  sojourn_p99: Estimate | null;
  sojourn_max: Estimate | null;
  backlog_max: Estimate | null;
  backlog_packets_max: Estimate | null;
  dropped: Record<string, number>[];
}

export interface FigureName {
  name: string;
  title: string;
}

export interface Definition {
  metric?: string;
  title: string;
  text: string;
  source: string;
}

export interface CompareEstimate {
  mean: number;
  ci: number | null;
  repetitions: number;
}

export interface ComparisonRow {
  point: string;
  a_point: number;
  b_point: number;
  flow: string;
  metric: string;
  label: string;
  unit: string;
  a: CompareEstimate;
  b: CompareEstimate;
  difference: number;
  relative: number | null;
  confidence: number | null;
  significant: boolean | null;
  telling: boolean;
}

export interface Comparison {
  run: RunInfo;
  with: RunInfo;
  same_experiment: boolean;
  rows: ComparisonRow[];
  unmatched: string[];
  definitions: Definition[];
}
