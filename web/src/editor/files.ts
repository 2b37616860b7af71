/** Files on this side: drafts that this browser keeps, opening, saving. */

import { keep, kept } from '../ui/kept';
import { notify } from '../ui/live.svelte';
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

/** Drafts in this folder, and in those inside it, are copied when they are opened. */
export const TEMPLATES = 'templates';

export function isTemplates(folder: string): boolean {
  return folder === TEMPLATES || folder.startsWith(`${TEMPLATES}/`);
}

/** A draft's folders are in its name: `calls/office.toml` is in `calls`. */
export function folderOf(name: string): string {
  return name.slice(0, Math.max(0, name.lastIndexOf('/')));
}

/** The name of a file in its folder. */
export function leafOf(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1);
}

/** The id of another draft. */
export function newId(): string {
  return `${Date.now().toString(36)}-${Math.floor(Math.random() * 1e9).toString(36)}`;
}

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
export function keptDraft(): NamedDraft | undefined {
  return ownDraft() ?? drafts()[0];
}

/** The draft of this window, or else the newest, taken over. What another window edits is copied: this one has its own. */
export async function claimDraft(): Promise<Draft | undefined> {
  const found = keptDraft();
  // Without locks nobody knows what another window edits: then everything that is taken over is copied.
  const id = stored() ?? ('locks' in navigator ? found?.id : undefined);
  if (id !== undefined && (await isOurs(id))) own(id);
  else newDraft();
  last = found && contentOf(found);
  await look();
  return found;
}

/** From now on another draft is written; the one before is kept. */
export function newDraft(): void {
  const id = newId();
  own(id);
  last = undefined;
  void isOurs(id);
}

/** From now on a draft that exists is written, unless another window writes it. Returns whether it is. */
export async function adoptDraft(id: string): Promise<boolean> {
  if (!(await isOurs(id))) return false;
  own(id);
  last = undefined;
  return true;
}

/** What was restored or kept last. */
let last: string | undefined;

function contentOf({ text, name, saved }: Draft): string {
  return JSON.stringify([text, name, saved]);
}

/** The drafts that windows had open at the last look. */
let opened: ReadonlySet<string> = new Set();

async function look(): Promise<void> {
  if (!('locks' in navigator)) return;
  const { held = [] } = await navigator.locks.query();
  opened = new Set(held.flatMap(({ name }) => name ?? []));
}

function own(id: string): void {
  keep(OWN, id, 'sessionStorage');
}

/**
 * Keeps the draft of this window, unless it is as it was restored or kept last. Where there is no room, the steps of undo and then the oldest
 * drafts make some; those that other windows have open stay.
 */
export function keepDraft(draft: Draft, isAlways = false): void {
  const content = contentOf(draft);
  if (content === last && !isAlways) return;
  last = content;
  void look();
  const id = stored();
  const now = { ...draft, at: Date.now() };
  const others = drafts().filter((other) => other.id !== id && !opened.has(PREFIX + other.id)).reverse();
  for (const old of others.splice(0, Math.max(0, others.length + 1 - MOST_DRAFTS))) removeDraft(old.id);
  if (id === undefined || written(id, now)) return tell(id === undefined ? UNKEPT : '');
  const without = { ...now, history: undefined };
  if (written(id, without)) return tell('This browser has no room for steps of undo: after a reload, nothing can be undone.');
  const removed: NamedDraft[] = [];
  for (const old of others) {
    removeDraft(old.id);
    removed.push(old);
    if (written(id, without)) return tell(`This browser had no room: the oldest ${removed.length === 1 ? 'draft is' : 'drafts are'} removed (${removed.map(({ name }) => name).join(', ')}).`);
  }
  // Nothing is won by that.
  for (const { id, ...old } of removed) written(id, old);
  // The same text is tried again.
  last = undefined;
  tell(UNKEPT);
}

const UNKEPT = 'This browser does not keep the draft: save the file before you leave.';

function written(id: string, draft: Draft): boolean {
  return keep(PREFIX + id, JSON.stringify(draft));
}

let told = '';

/** Says what is not kept, once. */
function tell(text: string): void {
  if (text !== '' && text !== told) notify(text, 'warn');
  told = text;
}

/** Removes a draft, by default that of this window. */
export function removeDraft(id = stored()): void {
  keep(PREFIX + id, undefined);
}

/** Which draft is this window's. */
export function stored(): string | undefined {
  return kept(OWN, 'sessionStorage');
}

function ownDraft(): NamedDraft | undefined {
  const id = stored();
  return id === undefined ? undefined : parsed(id);
}

function parsed(id: string): NamedDraft | undefined {
  try {
    const found = JSON.parse(kept(PREFIX + id) ?? 'null') as Partial<Draft> | null;
    return found && typeof found.text === 'string' && typeof found.name === 'string' ? { at: 0, ...found, text: found.text, name: found.name, id } : undefined;
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
export function download(text: string, path: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: 'application/toml' }));
  const link = document.createElement('a');
  link.href = address;
  link.download = leafOf(path);
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
