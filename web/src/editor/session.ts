import { ExperimentDocument } from './document.svelte';

let kept: ExperimentDocument | undefined;

/** The file that is edited in this window: it and its history outlive a look at another page. */
export function session(): ExperimentDocument {
  kept ??= new ExperimentDocument();
  return kept;
}
