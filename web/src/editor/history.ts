/** Texts that can be had back: undo and redo over everything that changes the file, wherever it is changed. */

/** So much typing becomes one step: what follows within this many milliseconds, by the same hand. */
const TOGETHER_MS = 1200;
/** Typing for so many milliseconds is another step, even without a pause. */
const LONGEST_MS = 4000;
/** How steps of a slider are called. */
export const DRAGGED = 'dragging ';
/** Steps that are kept. */
const KEPT = 500;
/** Steps that outlive a reload. */
const KEPT_LONG = 30;

export interface Step {
  text: string;
  /** What the file was called then. */
  name: string;
  /** What was done to get here. */
  what: string;
}

/** What of a history outlives a reload. */
export interface Kept {
  steps: Step[];
  at: number;
}

export class History {
  private steps: Step[];
  private at = 0;
  private typedAt = -Infinity;
  private typingSince = -Infinity;

  constructor(text: string, name = '') {
    this.steps = [{ text, name, what: '' }];
  }

  /** A change has been made. Typing is gathered into steps; everything else is a step of its own. */
  push(text: string, what: string, now: number, name = ''): void {
    const current = this.steps[this.at] as Step;
    if (text === current.text) return;
    const typing = what === 'typing';
    const isSameLine = text.split('\n').length === current.text.split('\n').length;
    // A number that is dragged makes one step, however often it is written on the way.
    const isDragged = what.startsWith(DRAGGED) && current.what === what && now - this.typedAt < TOGETHER_MS;
    const isGathered = typing && current.what === 'typing' && now - this.typedAt < TOGETHER_MS && now - this.typingSince < LONGEST_MS;
    if ((isDragged || (isGathered && isSameLine)) && this.at === this.steps.length - 1) {
      current.text = text;
      current.name = name;
    } else {
      this.steps.length = this.at + 1;
      this.steps.push({ text, name, what });
      if (this.steps.length > KEPT) this.steps.shift();
      this.at = this.steps.length - 1;
      this.typingSince = now;
    }
    this.typedAt = typing || what.startsWith(DRAGGED) ? now : -Infinity;
  }

  /** The steps around the current one. */
  kept(): Kept {
    const from = Math.max(0, this.at - KEPT_LONG);
    return { steps: this.steps.slice(from, this.at + KEPT_LONG), at: this.at - from };
  }

  /** Goes on with steps that were kept, if they lead to the text that there is. */
  restore({ steps, at }: Kept): void {
    if (steps[at]?.text !== this.steps[this.at]?.text) return;
    this.steps = [...steps];
    this.at = at;
  }

  /** What the next undo takes back, or nothing. */
  get undoable(): string | undefined {
    return this.at > 0 ? this.steps[this.at]?.what : undefined;
  }

  /** What the next redo does again, or nothing. */
  get redoable(): string | undefined {
    return this.steps[this.at + 1]?.what;
  }

  /** What there was before the last step, if there is one. */
  undo(): Step | undefined {
    if (this.at === 0) return undefined;
    this.at -= 1;
    this.typedAt = -Infinity;
    return this.steps[this.at];
  }

  redo(): Step | undefined {
    if (this.at + 1 >= this.steps.length) return undefined;
    this.at += 1;
    this.typedAt = -Infinity;
    return this.steps[this.at];
  }
}
