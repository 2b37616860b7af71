/**
 * Where in a TOML text which key stands: from a place to its path (so that a problem finds its field) and back (so that a
 * host finds its line). It reads only what it needs of TOML, takes broken texts as they are, and judges nothing: that is the
 * server's.
 */

export interface Place {
  /** `["flow", "voice", "source", "samples"]`; behind `sweep` and `limits` the dotted key is one part. */
  path: string[];
  /** Offsets of the key and of all that it holds. */
  from: number;
  to: number;
}

/** Every table and key of a text, in its order. */
export function places(text: string): Place[] {
  return new Scanner(text).run();
}

/** The innermost key or table at a line and column, both from 1. */
export function pathAt(text: string, line: number, column: number, known = places(text)): string[] {
  const offset = offsetOf(text, line, column);
  let best: Place | undefined;
  for (const place of known) {
    if (place.from <= offset && offset <= place.to && (!best || place.to - place.from <= best.to - best.from)) best = place;
  }
  return best?.path ?? [];
}

/** Where a key or table stands: the first of its places, or that of the nearest one around it. */
export function lineOf(text: string, path: readonly string[], known = places(text)): number | undefined {
  for (let length = path.length; length > 0; length--) {
    const wanted = path.slice(0, length).join('\0');
    const found = known.find((place) => place.path.join('\0') === wanted);
    if (found) return text.slice(0, found.from).split('\n').length;
  }
  return undefined;
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

class Scanner {
  private at = 0;
  private found: Place[] = [];
  private table: Place | undefined;

  constructor(private readonly text: string) {}

  run(): Place[] {
    let base: string[] = [];
    for (;;) {
      this.blank();
      if (this.at >= this.text.length) break;
      const from = this.at;
      if (this.text[this.at] === '[') {
        this.closeTable(from);
        while (this.text[this.at] === '[') this.at++;
        base = this.key();
        this.line();
        this.table = { path: base, from, to: this.at };
        this.found.push(this.table);
      } else {
        this.pair(base, from);
        this.line();
      }
      if (this.at === from) this.at++;
    }
    this.closeTable(this.text.length);
    return this.found;
  }

  /** A table ends where the next one begins, or the file. */
  private closeTable(at: number) {
    if (this.table) this.table.to = Math.max(this.table.to, this.text.slice(0, at).trimEnd().length);
  }

  private pair(base: string[], from: number): void {
    const key = this.key();
    const path = [...base, ...(base.length === 1 && (base[0] === 'sweep' || base[0] === 'limits') ? [key.join('.')] : key)];
    if (key.length === 0) return;
    const place: Place = { path, from, to: this.at };
    this.found.push(place);
    this.spaces();
    if (this.text[this.at] !== '=') return;
    this.at++;
    this.spaces();
    this.value(path);
    place.to = this.at;
  }

  /** A dotted key, as its parts. */
  private key(): string[] {
    const parts: string[] = [];
    for (;;) {
      this.spaces();
      const quote = this.text[this.at];
      if (quote === '"' || quote === "'") {
        const end = this.text.indexOf(quote, this.at + 1);
        const line = this.text.indexOf('\n', this.at);
        if (end < 0 || (line >= 0 && line < end)) return parts;
        parts.push(this.text.slice(this.at + 1, end));
        this.at = end + 1;
      } else {
        const word = /^[\p{L}\p{N}_-]+/u.exec(this.text.slice(this.at, this.at + 200));
        if (!word) return parts;
        parts.push(word[0]);
        this.at += word[0].length;
      }
      this.spaces();
      if (this.text[this.at] !== '.') return parts;
      this.at++;
    }
  }

  private value(path: string[]): void {
    const first = this.text[this.at];
    if (first === '{' || first === '[') this.listed(path, first === '{' ? '}' : ']');
    else if (first === '"' || first === "'") this.quoted(first);
    else while (this.at < this.text.length && !',]}#\n'.includes(this.text[this.at] as string)) this.at++;
  }

  private listed(path: string[], end: string): void {
    this.at++;
    let index = 0;
    for (;;) {
      this.blank();
      const next = this.text[this.at];
      if (next === undefined) return;
      if (next === end) {
        this.at++;
        return;
      }
      const from = this.at;
      if (next === ',') {
        this.at++;
        index++;
      } else if (end === '}') this.pair(path, from);
      else this.value([...path, String(index)]);
      // A text that makes no sense here must not hold us up, nor may it swallow the lines below.
      if (this.at === from) return;
    }
  }

  private quoted(quote: string): void {
    const long = quote.repeat(3);
    if (this.text.startsWith(long, this.at)) {
      const end = this.text.indexOf(long, this.at + 3);
      this.at = end < 0 ? this.text.length : end + 3;
      return;
    }
    this.at++;
    while (this.at < this.text.length && this.text[this.at] !== '\n') {
      const character = this.text[this.at++];
      if (character === '\\' && quote === '"') this.at++;
      else if (character === quote) return;
    }
  }

  private spaces(): void {
    while (this.text[this.at] === ' ' || this.text[this.at] === '\t') this.at++;
  }

  /** Spaces, ends of lines, comments. */
  private blank(): void {
    for (;;) {
      const character = this.text[this.at];
      if (character === '#') this.line();
      else if (character === ' ' || character === '\t' || character === '\n' || character === '\r') this.at++;
      else return;
    }
  }

  /** To the end of the line. */
  private line(): void {
    const end = this.text.indexOf('\n', this.at);
    this.at = end < 0 ? this.text.length : end;
  }
}
