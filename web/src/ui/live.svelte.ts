/**
 * What the page says without being asked: toasts, which everybody sees, and announcements, which only screen readers hear.
 * `notify` does both.
 */
export type ToastKind = 'info' | 'good' | 'warn' | 'bad';

export interface Toast {
  id: number;
  kind: ToastKind;
  text: string;
}

/** How long a toast stays, in milliseconds. */
const STAY_MS = 6000;
/** How long an error stays: long enough to be read by anybody who is at the page. */
const ERROR_STAY_MS = 30_000;
/** So many toasts are seen at once; the oldest make room. */
const MOST = 4;

let next = 1;

class Live {
  toasts = $state<Toast[]>([]);
  /** Said politely; changes of it are read aloud. */
  said = $state('');
}

export const live = new Live();

/** Shows a toast and has it read aloud. Returns its number, for `dismiss`. */
export function notify(text: string, kind: ToastKind = 'info'): number {
  const id = next++;
  live.toasts = [...live.toasts.filter((toast) => toast.text !== text), { id, kind, text }].slice(-MOST);
  setTimeout(() => dismiss(id), kind === 'bad' ? ERROR_STAY_MS : STAY_MS);
  return id;
}

/** Takes a toast away. */
export function dismiss(id: number): void {
  live.toasts = live.toasts.filter((toast) => toast.id !== id);
}

/** Says something to screen readers only: progress, the result of a key. */
export function announce(text: string): void {
  // The same sentence twice is read twice only if the text differs.
  live.said = live.said === text ? `${text}\u00a0` : text;
}
