/** The colour of the series with this index, as a CSS variable's name; they repeat after eight. */
export function seriesVariable(index: number): string {
  return `--series-${(index % 8) + 1}`;
}
