/** What the editor's parts share beside the file: what is selected, what is explained, and where the cursor is to go. */
import { getContext, setContext } from 'svelte';
import type { Edit, FormKey, SectionName } from '../api/types';
import type { ExperimentDocument } from './document.svelte';
import type { Dial } from './form/dial';
import { copied, pasted } from './canvas/copied';
import { same, type Item } from './items';
import { Predictor } from './predictor.svelte';

const KEY = Symbol('editor');

/** What the dialog for adding is asked to add. */
export interface Adding {
  kind: SectionName;
  from?: string;
  to?: string;
  /** Whether link or flow is still to be chosen: two hosts were connected by hand. */
  either?: boolean;
}

export class EditorView {
  selected = $state.raw<Item | undefined>();
  /** What is selected beside it. */
  others = $state.raw<readonly Item[]>([]);
  /** The item that is renamed where it is drawn. */
  renaming = $state.raw<Item | undefined>();
  /** The key whose meaning is shown below the panel. */
  info = $state.raw<FormKey | undefined>();
  /** The word that this key has now, if it is one of several. */
  word = $state.raw<(() => { name: string; doc: string } | undefined) | undefined>();
  /** The number that the key at hand has, if it has one, and how to write another. */
  dial = $state.raw<Dial | undefined>();
  adding = $state.raw<Adding | undefined>();
  /** Where the text view is to put the cursor; a new object for every wish. */
  cursor = $state.raw<{ line: number; column: number } | undefined>();
  /** The path of a field that is to get the focus. */
  wanted = $state.raw<string | undefined>();

  /** What would come of the file as it is. */
  readonly predictor = new Predictor();

  constructor(readonly doc: ExperimentDocument) {}

  /** Shows an item, or the experiment, with the cursor in one of its fields. */
  ask(item: Item | undefined, path: string): void {
    this.select(item);
    this.wanted = path;
  }

  /** Everything that is selected. */
  get all(): readonly Item[] {
    return this.selected ? [this.selected, ...this.others] : [];
  }

  /** Selects an item too, or no longer. The last one shows its properties. */
  toggle(item: Item): void {
    const rest = this.all.filter((one) => !same(one, item));
    this.choose(rest.length < this.all.length ? rest : [item, ...rest]);
  }

  /** Selects several: the first shows its properties. */
  choose([first, ...others]: readonly Item[]): void {
    this.select(first);
    this.others = others;
  }

  /** A click selects, with Shift or Ctrl one more; a double click renames. */
  click(item: Item, event: MouseEvent | TouchEvent): void {
    if (event.shiftKey || event.ctrlKey || event.metaKey) this.toggle(item);
    else if (event instanceof MouseEvent && event.detail > 1) this.rename(item);
    else this.select(item);
  }

  /** Renames an item where it is drawn, and a bundle in its properties. */
  rename(item: Item): void {
    this.ask(item, item.section === 'bundle' ? `bundle.${item.name}` : '');
    if (item.section !== 'bundle') this.renaming = item;
  }

  /** Adds others like them, beside them, and selects those. */
  duplicate(selected: readonly Item[] = this.all): Promise<void> {
    return this.paste(copied(this.doc.drawing, selected) ?? '', 'duplicating');
  }

  /** Adds what is on the clipboard, and selects it. */
  async paste(text: string, what = 'pasting'): Promise<void> {
    const found = pasted(this.doc.drawing, text);
    if (!found) return;
    const [first] = found.added;
    await this.edit(found.edits, `${what} ${found.added.length === 1 ? first?.name : `${found.added.length} items`}`, found.added);
  }

  /** Makes an edit and selects its items, unless something else was selected before the server answered. Returns whether it was made. */
  async edit(edits: Edit[], what: string, selected: readonly Item[]): Promise<boolean> {
    const before = this.selected;
    const done = await this.doc.edit(edits, what);
    // What was renamed is not there any more, and so not selected.
    if (done && (this.selected === undefined || same(before, this.selected))) this.choose(selected);
    return done;
  }

  select(item: Item | undefined): void {
    this.selected = item;
    this.others = [];
    this.renaming = undefined;
    this.wanted = undefined;
    this.info = undefined;
    this.dial = undefined;
    this.word = undefined;
  }
}

export function provideView(view: EditorView): EditorView {
  return setContext(KEY, view);
}

export function useView(): EditorView {
  return getContext<EditorView>(KEY);
}
