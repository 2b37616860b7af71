/**
 * The experiment file that is being edited: one text, seen as text and as drawing. Changes made in the drawing go through
 * the server, which keeps comments and layout; what is typed is checked a moment later. The history is one for both.
 */
import { aborted, api, explain } from '../api/client';
import type { Backend, Drawing, Edit, FormSchema, Place, Summary } from '../api/types';
import type { Draft } from './files';
import { announce, notify } from '../ui/live.svelte';
import { DRAGGED, History, type Step } from './history';
import { placeProblems, type PlacedProblem } from './items';

/** How long after the last key a text is checked, in milliseconds. */
const PAUSE_MS = 250;
/** How often an edit is tried again on a text that has changed meanwhile. */
const TRIES = 3;

export class ExperimentDocument {
  text = $state('');
  /** Whether a file is here yet. */
  isLoaded = $state(false);
  /** What the file is called when it is saved. */
  name = $state('experiment.toml');
  drawing = $state.raw<Drawing | undefined>();
  /** Whether the drawing shows an earlier text, because this one is not TOML. */
  stale = $state(false);
  problems = $state.raw<PlacedProblem[]>([]);
  /** Where its keys stand. */
  places = $state.raw<Place[]>([]);
  summary = $state.raw<Summary | undefined>();
  backends = $state.raw<Partial<Record<Backend, string | null>> | undefined>();
  schema = $state.raw<FormSchema | undefined>();
  /** Whether what is shown of the text is of this text: not while it is being checked. */
  current = $state(false);
  undoable = $state<string | undefined>();
  redoable = $state<string | undefined>();
  /** Whether the text differs from what was last opened or saved. */
  changed = $state(false);
  /** How many files have been opened: another drawing is seen as a whole. */
  opened = $state(0);
  /** Whether edits come from a slider. */
  isDragged = false;
  /** How many edits were refused: fields then show what the file has. */
  refused = $state(0);
  /** Why the server says nothing. */
  offline = $state<string | undefined>();

  private history = new History('');
  private saved = '';
  private timer: ReturnType<typeof setTimeout> | undefined;
  private checking: AbortController | undefined;
  private edits: Promise<unknown> = Promise.resolve();

  /** Fetches what forms are made of. */
  async begin(): Promise<void> {
    try {
      this.schema = await api.schema();
      this.offline = undefined;
    } catch (error) {
      this.offline = explain(error);
    }
  }

  /** Opens a text; what was there before can be had back with undo. */
  open(text: string, name: string, saved = text): void {
    this.name = name;
    this.opened += 1;
    this.change(text, 'opening');
    this.saved = saved;
    this.changed = text !== saved;
    void this.check();
  }

  /** Takes a draft from the last visit, with what can be undone of it. */
  restore({ text, name, saved, history }: Draft): void {
    this.name = name;
    this.history = new History(text, name);
    if (history) this.history.restore(history);
    this.saved = saved ?? text;
    this.adopt(text);
    void this.check();
  }

  /** The file as this browser keeps it. */
  draft(): Draft {
    return { text: this.text, name: this.name, saved: this.saved === this.text ? undefined : this.saved, history: this.history.kept() };
  }

  /** The text was typed. */
  type(text: string): void {
    if (text === this.text) return;
    this.change(text, 'typing');
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.check(), PAUSE_MS);
  }

  /** Replaces a part of the text, as a step of its own. */
  replace(from: number, to: number, text: string): void {
    this.change(this.text.slice(0, from) + text + this.text.slice(to), `writing ${text}`);
    void this.check();
  }

  /** Another text takes the place of this one, as a step that can be undone. */
  rewrite(text: string, what: string): void {
    this.change(text, what);
    void this.check();
  }

  /** The text is kept elsewhere now. */
  markSaved(): void {
    this.saved = this.text;
    this.changed = false;
  }

  undo(): void {
    const what = this.undoable;
    this.step(this.history.undo(), `Undone: ${what}`);
  }

  redo(): void {
    const what = this.redoable;
    this.step(this.history.redo(), `Done again: ${what}`);
  }

  /**
   * Carries edits of the drawing into the text, after those before. Returns whether they were; why not is said in a toast.
   * `what` names the step for undo.
   */
  edit(edits: Edit[], what: string): Promise<boolean> {
    const file = this.opened;
    const done = this.edits.then(() => file === this.opened && this.editNow(edits, what, file));
    this.edits = done.catch(() => undefined);
    return done;
  }

  /** Resolves once every edit until now is done. */
  settled(): Promise<unknown> {
    return this.edits;
  }

  private async editNow(edits: Edit[], what: string, file: number): Promise<boolean> {
    try {
      for (let tries = 0; tries < TRIES; tries++) {
        const before = this.text;
        const answer = await api.edit(before, edits);
        if (file !== this.opened) return false;
        // Somebody typed meanwhile: their text counts, and the edit is made on it.
        if (this.text !== before) continue;
        this.change(answer.text, this.isDragged ? DRAGGED + what : what);
        if (answer.drawing) {
          this.drawing = answer.drawing;
          this.stale = false;
        }
        this.places = answer.places;
        this.problems = placeProblems(answer.problems, answer.text, this.places);
        if (!this.isDragged) announce(what);
        void this.check();
        return true;
      }
      notify('The text changed too fast for this; try again.', 'warn');
    } catch (error) {
      notify(explain(error), 'bad');
    }
    this.refused += 1;
    return false;
  }

  /** Asks the server what the text means and what is wrong with it. */
  async check(): Promise<void> {
    clearTimeout(this.timer);
    this.checking?.abort();
    const checking = (this.checking = new AbortController());
    const text = this.text;
    try {
      const [checked, drawn] = await Promise.all([api.check(text, checking.signal), api.drawing(text, checking.signal)]);
      if (text !== this.text) return;
      this.offline = undefined;
      this.places = drawn.places;
      this.problems = placeProblems(checked.problems, text, this.places);
      this.summary = checked.summary ?? undefined;
      this.backends = checked.backends ?? undefined;
      this.stale = !drawn.drawing;
      if (drawn.drawing) this.drawing = drawn.drawing;
      this.current = true;
    } catch (error) {
      if (!aborted(error) && text === this.text) this.offline = explain(error);
    }
  }

  private step(step: Step | undefined, said: string): void {
    if (!step) return;
    if (step.name !== '') this.name = step.name;
    this.adopt(step.text);
    announce(said);
    void this.check();
  }

  private change(text: string, what: string): void {
    this.history.push(text, what, Date.now(), this.name);
    this.adopt(text);
  }

  private adopt(text: string): void {
    if (text !== this.text) this.current = false;
    this.text = text;
    this.isLoaded = true;
    this.changed = text !== this.saved;
    this.undoable = this.history.undoable;
    this.redoable = this.history.redoable;
  }
}
