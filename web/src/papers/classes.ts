/** What a value of ours is worth as a prediction: the letter of each class, as the terminal prints it, and what it means. */

import type { PaperCell, PaperClass, PaperTable } from './types';

export const CLASSES: Record<PaperClass, { letter: string; means: string }> = {
  fitted: { letter: 'f', means: 'the published value, or one that determines it, went into a constant' },
  structural: { letter: 's', means: 'a rule of the model was read off it' },
  predicted: { letter: 'p', means: 'it was seen, and not used' },
  blind: { letter: 'b', means: 'it was not seen until the model was fixed' },
  formula: { letter: '=', means: 'a formula of the paper, one of its values, or a setting: no run has it' },
};

/** The classes of a table's cells, in the order in which they are listed. */
export function classesOf(table: PaperTable): PaperClass[] {
  const has = new Set(table.rows.flatMap((row) => row.cells.map((cell) => cell.class)));
  return (Object.keys(CLASSES) as PaperClass[]).filter((one) => has.has(one));
}

/** The class of a cell, in brackets if another cell says the same: as a letter, and in words. */
export function classMark(cell: PaperCell): { letter: string; words: string } | undefined {
  if (!cell.class) return undefined;
  const { letter } = CLASSES[cell.class];
  return cell.repeats ? { letter: `(${letter})`, words: `${cell.class}, repeats another cell` } : { letter, words: cell.class };
}

/** A share as the terminal prints it: `2.7 %`, `127 %`. */
export function shareText(share: number | null, isSigned = false): string {
  if (share === null) return '–';
  const percent = Math.abs(share) * 100;
  const text = isSigned ? percent.toFixed(percent < 99.95 ? 1 : 0) : percent.toFixed(percent >= 100 ? 0 : 1).replace(/\.0$/, '');
  const sign = !isSigned || text === '0.0' ? '' : share < 0 ? '\u2212' : '+';
  return `${sign}${text}\u202f%`;
}
