import { notify } from './live.svelte';

/** Puts a text on the clipboard, and says so: `The command is in the clipboard.` */
export async function copy(text: string, name: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notify(`${name} is in the clipboard.`, 'good');
  } catch {
    notify('This browser does not allow the page to copy; select the text and copy it.', 'warn');
  }
}
