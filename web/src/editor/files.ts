/** Files on this side: drafts that this browser keeps, opening, saving. */

import type { Kept } from './history';

/** Every draft has a key of its own, so that two windows never write over each other's. */
const PREFIX = 'trunkline.draft.';
/** Where a window remembers which draft is its own. */
const OWN = 'trunkline.draft';
/** So many drafts are kept; the oldest make room. */
const MOST_DRAFTS = 40;

export interface Draft {
  text: string;
  name: string;
  /** The text as it was last opened or saved. */
  saved?: string;
  /** When it was changed last, in milliseconds. */
  at?: number;
  /** The steps that can be undone. */
  history?: Kept;
}

export interface NamedDraft extends Draft {
  id: string;
  at: number;
}

/** What a new file begins with. */
export const NEW_TEXT = `name = "new experiment"
duration = "30 s"
repetitions = 3

[hosts]
a = {}
b = {}

[link.line]
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "10 ms"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice", samples = 80 }     # 80 B every 10 ms
`;

/** All drafts, the newest first. */
export function drafts(): NamedDraft[] {
  try {
    const keys = Array.from({ length: localStorage.length }, (_, i) => localStorage.key(i) ?? '');
    const found = keys.filter((key) => key.startsWith(PREFIX)).flatMap((key) => parsed(key.slice(PREFIX.length)) ?? []);
    return found.toSorted((a, b) => b.at - a.at);
  } catch {
    return [];
  }
}

/** What was being edited when this browser was here last. */
export function keptDraft(): Draft | undefined {
  return ownDraft() ?? drafts()[0];
}

/** The draft of this window; a window that is a copy of another one goes on with a copy. */
export async function claimDraft(): Promise<Draft | undefined> {
  const own = stored();
  const kept = keptDraft();
  if (own === undefined || !(await isOurs(own))) newDraft();
  return kept;
}

/** From now on another draft is written; the one before is kept. */
export function newDraft(): void {
  const id = `${Date.now().toString(36)}-${Math.floor(Math.random() * 1e9).toString(36)}`;
  try {
    sessionStorage.setItem(OWN, id);
  } catch {
    // Without storage nothing is kept at all.
  }
  void isOurs(id);
}

export function keepDraft(draft: Draft): void {
  const id = stored();
  if (id === undefined) return;
  const text = JSON.stringify({ ...draft, at: Date.now() });
  try {
    localStorage.setItem(PREFIX + id, text);
    for (const { id } of drafts().slice(MOST_DRAFTS)) removeDraft(id);
  } catch {
    // Private browsing, or no room: the file can still be saved.
  }
}

/** Removes a draft, by default that of this window. */
export function removeDraft(id = stored()): void {
  try {
    localStorage.removeItem(PREFIX + id);
  } catch {
    // Then there is none.
  }
}

/** Which draft is this window's. */
export function stored(): string | undefined {
  try {
    return sessionStorage.getItem(OWN) ?? undefined;
  } catch {
    return undefined;
  }
}

function ownDraft(): Draft | undefined {
  const id = stored();
  return id === undefined ? undefined : parsed(id);
}

function parsed(id: string): NamedDraft | undefined {
  try {
    const kept = JSON.parse(localStorage.getItem(PREFIX + id) ?? 'null') as Partial<Draft> | null;
    return kept && typeof kept.text === 'string' && typeof kept.name === 'string' ? { at: 0, ...kept, text: kept.text, name: kept.name, id } : undefined;
  } catch {
    return undefined;
  }
}

/** Whether no other window writes this draft. It stays ours until this window is closed. */
function isOurs(id: string): Promise<boolean> {
  // Browsers have locks where the page is served safely; elsewhere a copied window is not noticed.
  if (!('locks' in navigator)) return Promise.resolve(true);
  return new Promise((resolve) => {
    void navigator.locks.request(PREFIX + id, { ifAvailable: true }, (lock) => {
      resolve(lock !== null);
      return lock === null ? undefined : new Promise<void>(() => {});
    });
  });
}

/** Saves a text as a file, as browsers do it: a download. */
export function download(text: string, name: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: 'application/toml' }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Experiment files are small; what is larger is something else. */
const LARGEST = 2_000_000;

/** Reads a file that was chosen or dropped. */
export async function readFile(file: File): Promise<Draft> {
  if (file.size > LARGEST) throw new Error(`${file.name} is too large for an experiment file.`);
  const text = await file.text();
  if (text.includes('\0')) throw new Error(`${file.name} is not a text.`);
  return { text: text.replaceAll('\r\n', '\n'), name: file.name };
}
