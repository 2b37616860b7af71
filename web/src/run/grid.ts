/** How far every repetition of every point is. */

import type { RunPoint } from '../results/types';

export type Cell = 'waiting' | 'measuring' | 'partial' | 'done';

export interface GridRow {
  index: number;
  /** The point's swept values; empty where nothing is swept. */
  label: string;
  cells: readonly Cell[];
}

export class Grid {
  readonly rows: GridRow[];

  /** `isRunning`: what is not at its end yet is being measured; otherwise it was interrupted. */
  constructor(points: readonly RunPoint[], repetitions: number, isRunning: boolean) {
    this.rows = points.map((point) => {
      const cells = new Array<Cell>(repetitions).fill('waiting');
      for (const { index, partial } of point.repetitions) cells[index] = !partial ? 'done' : isRunning ? 'measuring' : 'partial';
      return { index: point.index, label: point.values.join(' · '), cells };
    });
  }

  /** A repetition is in another state now. Returns whether that is news; one that is done stays so. */
  mark(point: number, repetition: number, cell: Cell): boolean {
    const at = this.rows.findIndex((row) => row.index === point);
    const row = this.rows[at];
    const before = row?.cells[repetition];
    if (!row || repetition < 0 || repetition >= 10_000 || before === cell || before === 'done') return false;
    const cells = [...row.cells];
    while (cells.length <= repetition) cells.push('waiting');
    cells[repetition] = cell;
    // A new row: who shows it sees by that that it has changed.
    this.rows[at] = { ...row, cells };
    return true;
  }

  /** Nothing is measured any more: either all was done, or what was not done was interrupted. Returns whether that is news. */
  end(isDone: boolean): boolean {
    const isOpen = (cell: Cell) => cell === 'measuring' || (isDone && cell !== 'done');
    const open = this.rows.flatMap((row) => row.cells.flatMap((cell, repetition) => (isOpen(cell) ? [[row.index, repetition] as const] : [])));
    for (const [point, repetition] of open) this.mark(point, repetition, isDone ? 'done' : 'partial');
    return open.length > 0;
  }
}

/** `4 of 5 done, 1 being measured`. */
export function told(row: GridRow): string {
  const count = (cell: Cell) => row.cells.filter((each) => each === cell).length;
  const parts = [`${count('done')} of ${row.cells.length} done`];
  if (count('measuring') > 0) parts.push(`${count('measuring')} being measured`);
  if (count('partial') > 0) parts.push(`${count('partial')} interrupted`);
  return parts.join(', ');
}
