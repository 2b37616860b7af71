/** What the editor's parts share beside the file: what is selected, what is explained, and where the cursor is to go. */
import { getContext, setContext } from 'svelte';
import type { FormKey } from '../api/types';
import type { ExperimentDocument } from './document.svelte';
import type { Dial } from './form/dial';
import { keysOf, type Item } from './items';
import { Predictor } from './predictor.svelte';

const KEY = Symbol('editor');

/** What a drawing can get more of. */
export type Addable = 'hosts' | 'link' | 'flow' | 'bundle';

/** What the dialog for adding is asked to add. */
export interface Adding {
  kind: Addable;
  from?: string;
  to?: string;
  /** Whether link or flow is still to be chosen: two hosts were connected by hand. */
  either?: boolean;
}

export class EditorView {
  selected = $state.raw<Item | undefined>();
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

  /** Adds another one like it, beside it, and selects that. */
  async duplicate({ section, name }: Item): Promise<void> {
    const keys = keysOf(this.doc.drawing, { section, name });
    if (!keys) return;
    const base = name.replace(/-\d+$/, '');
    let number = 2;
    while (keysOf(this.doc.drawing, { section, name: `${base}-${number}` })) number++;
    const host = section === 'hosts' ? this.doc.drawing?.hosts.find((each) => each.name === name) : undefined;
    const values = host?.placed ? { ...keys, position: [Math.round(host.x) + 40, Math.round(host.y) + 70] } : keys;
    const copy = `${base}-${number}`;
    if (await this.doc.edit([{ op: 'add', section, name: copy, values }], `duplicating ${name}`)) this.select({ section, name: copy });
  }

  select(item: Item | undefined): void {
    this.selected = item;
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
