/**
 * Predicts the file while somebody draws: every edit asks the server for a short simulation, and ends the one before. What is
 * too large is simulated when it is asked for.
 */
import { aborted, api, ApiError, explain } from '../api/client';
import type { Prediction } from '../api/types';
import { keep, kept } from '../ui/kept';

/** So long after the last key an edit is predicted, in milliseconds. */
const PAUSE_MS = 25;
/** While something is measured, predictions are tried again so often, in milliseconds. */
const AGAIN_MS = 4_000;
/** What a simulation may take that somebody has asked for, in milliseconds. */
const ASKED_MS = 8_000;
/** Whether somebody has switched predictions off. */
const KEY = 'trunkline.predict';

export class Predictor {
  isOn = $state(kept(KEY) !== 'off');
  shown = $state.raw<Prediction | undefined>();
  /** Whether what is shown is of an earlier text. */
  isStale = $state(false);
  isAsking = $state(false);
  /** Why there is none of this text. */
  why = $state<string | undefined>();
  /** The point that is predicted; without one the last. */
  point = $state<number | undefined>();

  private timer: ReturnType<typeof setTimeout> | undefined;
  private asking: AbortController | undefined;
  /** The newest text of a drag, which is asked for after the one before. */
  private next: string | undefined;

  /** The text is another one. During a drag the simulation before it goes on to its end, or there would be nothing to see. */
  follow(text: string, isDragged = false): void {
    clearTimeout(this.timer);
    this.isStale = true;
    this.next = isDragged && this.isOn && this.isAsking ? text : undefined;
    if (this.next !== undefined) return;
    this.asking?.abort();
    if (this.isOn && text !== '') this.timer = setTimeout(() => void this.ask(text), isDragged ? 0 : PAUSE_MS);
  }

  /** Predicts a text, for longer than usual if somebody waits for it. */
  async ask(text: string, isAwaited = false): Promise<void> {
    clearTimeout(this.timer);
    this.asking?.abort();
    this.next = undefined;
    const asking = (this.asking = new AbortController());
    this.isAsking = true;
    try {
      const found = await api.predict({ text, point: this.point, budget_ms: isAwaited ? ASKED_MS : undefined }, asking.signal);
      this.shown = found;
      this.isStale = this.next !== undefined;
      this.why = undefined;
    } catch (error) {
      if (aborted(error) || asking !== this.asking) return;
      // What is wrong with the file is said where it is wrong.
      const isOfFile = error instanceof ApiError && error.problems.length > 0;
      this.why = isOfFile ? undefined : explain(error);
      if (this.point !== undefined && error instanceof ApiError && error.kind === 'input' && !isOfFile) this.point = undefined;
      if (error instanceof ApiError && error.kind === 'conflict' && this.why?.includes('real time')) this.timer = setTimeout(() => void this.ask(text), AGAIN_MS);
    } finally {
      if (asking === this.asking) {
        this.isAsking = false;
        if (this.next !== undefined) void this.ask(this.next);
      }
    }
  }

  toggle(): void {
    this.isOn = !this.isOn;
    if (!this.isOn) this.shown = undefined;
    keep(KEY, this.isOn ? 'on' : 'off');
  }

  /** Nobody looks any more. */
  end(): void {
    this.next = undefined;
    clearTimeout(this.timer);
    this.asking?.abort();
  }
}
