/** How other pages open an experiment in the editor: they leave it here and go there. */
import { go } from '../router.svelte';

export interface Handoff {
  text: string;
  /** What the file is called when it is saved, such as `voice.toml`. */
  name?: string;
}

let waiting: Handoff | undefined;

/** Opens an experiment file in the editor. What is being edited there can be had back with undo. */
export function openInEditor(text: string, name?: string): void {
  waiting = { text, name };
  go('/edit');
}

/** For the editor: what another page wants opened, once. */
export function takeHandoff(): Handoff | undefined {
  const taken = waiting;
  waiting = undefined;
  return taken;
}
