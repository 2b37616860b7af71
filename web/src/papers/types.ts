/** Published studies, as the API gives them. */

export interface Paper {
  name: string;
  title: string;
  authors: string;
  year: number;
  /** What of it is reproduced, in a sentence. */
  reproduced: string;
  tables: { name: string; title: string }[];
  figures: { name: string; title: string }[];
}

export interface PaperCell {
  /** As printed; `null` if it was not published. */
  published: string | null;
  doubtful: boolean;
  ours: number | null;
  /** The relative error of ours, a share. */
  error: number | null;
}

export interface PaperRow {
  keys: Record<string, number | string>;
  cells: PaperCell[];
  /** Why the simulation cannot follow here. */
  note?: string;
}

export interface PaperTable {
  name: string;
  title: string;
  keys: string[];
  columns: { name: string; decimals: number }[];
  rows: PaperRow[];
  /** Whether ours is kept. */
  ours: boolean;
}

export interface Study {
  paper: Paper;
  tables: PaperTable[];
  goals: { title: string; met: boolean | null; found: string }[];
  files: string[];
  /** The job that repeats it now. */
  job?: string;
}
