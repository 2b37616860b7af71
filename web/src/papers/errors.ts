/** How far ours is from what was published. */

import { signedShare } from '../results/quantity';
import { counted } from '../ui/format';
import { columnText, isScatter } from './names';
import type { PaperCell, PaperTable } from './types';

/** How near a cell comes: in words, since a colour alone says nothing to many. */
export type Nearness = 'equal' | 'near' | 'apart' | 'far';

/** Up to 1 % equal, up to 10 % near, up to 30 % apart. */
export function nearness(error: number): Nearness {
  const size = Math.abs(error);
  if (size <= 0.01) return 'equal';
  if (size <= 0.1) return 'near';
  return size <= 0.3 ? 'apart' : 'far';
}

/** What can be compared in a table, and how far it is: doubtful prints are left out. */
export interface Fit {
  compared: number;
  median: number | null;
  /** The largest in size, with its sign. */
  worst: number | null;
  within10: number;
}

export function fit(table: PaperTable): Fit {
  const counts = (cell: PaperCell) => cell.error !== null && !cell.doubtful;
  const errors = table.rows.flatMap((row) => row.cells.filter(counts).map((cell) => cell.error as number));
  const sizes = errors.map(Math.abs).sort((a, b) => a - b);
  const middle = sizes.length >> 1;
  const median = sizes.length === 0 ? null : sizes.length % 2 === 1 ? (sizes[middle] as number) : ((sizes[middle - 1] as number) + (sizes[middle] as number)) / 2;
  const worst = errors.reduce<number | null>((worst, error) => (worst === null || Math.abs(error) > Math.abs(worst) ? error : worst), null);
  return { compared: errors.length, median, worst, within10: sizes.filter((size) => size <= 0.1).length };
}

/** How far each column is, values before their scatter: `throughput per conversation: median error 2.1 %, 30 of 36 within 10 %`. */
export function columnFits(table: PaperTable): string[] {
  return inOrder(table).flatMap((c) => {
    const one = fit({ ...table, rows: table.rows.map((row) => ({ ...row, cells: row.cells.slice(c, c + 1) })) });
    const name = columnText(table.columns[c]?.name ?? '').replace(/, [^,]+$/, '');
    return one.compared === 0 ? [] : [`${name}: median error ${signedShare(one.median).replace('+', '')}, ${one.within10} of ${one.compared} within 10 %`];
  });
}

/** The places of the columns of a table, those of values before those of their scatter. */
export function inOrder(table: PaperTable): number[] {
  return [...table.columns.keys()].toSorted((a, b) => Number(isScatter(table.columns[a]?.name ?? '')) - Number(isScatter(table.columns[b]?.name ?? '')));
}

/** How far a table is from the published one, in words, and where our values come from. */
export function fitText(table: PaperTable): string {
  const close = fit(table);
  const near = `${close.within10} of ${counted(close.compared, 'figure')} within 10 %, median error ${signedShare(close.median).replace('+', '')}, worst ${signedShare(close.worst)}`;
  const fits = close.compared > 0 ? near : table.ours ? 'predicted: the published table is not part of this' : 'ours is not kept here';
  const on = table.on === 'wire' ? ', measured on the wire' : table.on === 'live' ? ', measured live' : '';
  return `${counted(table.rows.length, 'row')}, ${fits}${on}${table.ours ? (table.here ? '; repeated here' : '; as this version was published') : ''}`;
}
