/** Whether a key goes into a field or a text, where it is no command. */
export function isWriting(event: KeyboardEvent): boolean {
  const target = event.composedPath()[0];
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** The single character that a key stands for as a command of the page; nothing in a field (but `own`), in a dialog, with other keys, or held. */
export function characterOf(event: KeyboardEvent, own?: EventTarget): string | undefined {
  if (event.key.length !== 1 || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return undefined;
  if ((isWriting(event) && event.target !== own) || document.querySelector('dialog[open]')) return undefined;
  return event.key.toLowerCase();
}
