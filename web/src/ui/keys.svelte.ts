import { keep, kept } from './kept';

/** Whether a key goes into a field or a text, where it is no command. */
export function isWriting(event: Event): boolean {
  const target = event.composedPath()[0];
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

const OFF = 'trunkline.character-keys-off';

/** Whether single characters are commands: who speaks to a computer, or hits keys by mistake, switches them off (WCAG 2.1.4). */
class CharacterKeys {
  private isOff = $state(kept(OFF) !== undefined);

  get areOn(): boolean {
    return !this.isOff;
  }

  set areOn(on: boolean) {
    this.isOff = !on;
    keep(OFF, on ? undefined : 'yes');
  }
}

export const characterKeys = new CharacterKeys();

/**
 * The single character that a key stands for as a command of the page: nothing in a field (but `own`), in a dialog, with other keys,
 * held, or when such keys are off. Whatever listens to the whole page asks here; keys of a focused chart are its own.
 */
export function characterOf(event: KeyboardEvent, own?: EventTarget): string | undefined {
  if (!characterKeys.areOn || event.key.length !== 1 || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return undefined;
  if ((isWriting(event) && event.target !== own) || document.querySelector('dialog[open]')) return undefined;
  return event.key.toLowerCase();
}
