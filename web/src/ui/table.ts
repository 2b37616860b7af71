/** What a column of a table shows, and by what it sorts. */
export interface Column<Row> {
  key: string;
  label: string;
  unit?: string;
  title?: string;
  /** Its heading is read aloud only. */
  hideLabel?: boolean;
  /** Right-aligned, as figures are. */
  numeric?: boolean;
  /** By what the column sorts; nothing sorts last, in both orders. */
  sort?: (row: Row) => number | string | null | undefined;
}

/** `rows` in the order of what `by` says of them; rows that are alike keep their order. */
export function sorted<Row>(
  rows: readonly Row[],
  by: ((row: Row) => number | string | null | undefined) | undefined,
  descending: boolean,
): readonly Row[] {
  if (!by) return rows;
  const direction = descending ? -1 : 1;
  return rows.toSorted((a, b) => {
    const left = by(a);
    const right = by(b);
    const leftMissing = missing(left);
    const rightMissing = missing(right);
    if (leftMissing || rightMissing) return Number(leftMissing) - Number(rightMissing);
    if (typeof left === 'number' && typeof right === 'number') return direction * (left - right);
    return direction * String(left).localeCompare(String(right), 'en', { numeric: true });
  });
}

function missing(value: number | string | null | undefined): boolean {
  return value === null || value === undefined || (typeof value === 'number' && Number.isNaN(value));
}
