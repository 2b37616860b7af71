/** Which key stands where in a text, as the server has found them: from a place to its path (so that a problem finds its field) and back (so that a host finds its line). */
import type { Place } from '../api/types';

/** The innermost key or table at an offset. */
export function pathAt(offset: number, known: readonly Place[]): string[] {
  let best: Place | undefined;
  for (const place of known) {
    if (place.from <= offset && offset <= place.to && (!best || place.to - place.from <= best.to - best.from)) best = place;
  }
  return best?.path ?? [];
}

/** The line of a key or table: of the first of its places. */
export function lineOf(text: string, path: readonly string[], known: readonly Place[]): number | undefined {
  const found = known.find((place) => path.every((part, i) => place.path[i] === part));
  return found && text.slice(0, found.from).split('\n').length;
}

/** The offset of a line and column, both from 1; columns count characters, not parts of them. */
export function offsetOf(text: string, line: number, column: number): number {
  let start = 0;
  for (let each = 1; each < line; each++) {
    const end = text.indexOf('\n', start);
    if (end < 0) return text.length;
    start = end + 1;
  }
  let offset = start;
  for (let each = 1; each < column && offset < text.length && text[offset] !== '\n'; each++) {
    offset += (text.codePointAt(offset) as number) > 0xffff ? 2 : 1;
  }
  return offset;
}
