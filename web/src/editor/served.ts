/** Drafts on the server: what is edited is kept there too, with its earlier versions, and is seen from every browser. */

import { aborted, ApiError, get, part, put, remove, search } from '../api/client';
import type { components } from '../api/schema';
import { keep, kept } from '../ui/kept';
import { stored } from './files';

export type ServedInfo = components['schemas']['DraftInfo'];
export type Served = components['schemas']['Draft'];

/** Where a browser remembers which version of a draft it knows. */
const KNOWN = 'trunkline.version.';
/** How long after the last change a draft is sent, in milliseconds. */
const PAUSE_MS = 1000;

let timer: ReturnType<typeof setTimeout> | undefined;
/** What was sent last, of which draft. */
let sent = '';
let sending: Promise<void> = Promise.resolve();

/** The version of a draft that this browser has. */
export function known(id: string): number | undefined {
  return Number(kept(KNOWN + id)) || undefined;
}

/** Remembers it. Where that is not kept, the server's version is taken for a foreign one, and nothing is overwritten. */
export function know(id: string, version: number | undefined): void {
  keep(KNOWN + id, version === undefined ? undefined : String(version));
}

/** Has a draft kept by the server, a moment later. `conflict` is called if it was changed elsewhere: then nothing is written. */
export function serve(id: string | undefined, name: string, text: string, conflict: () => void): void {
  clearTimeout(timer);
  const content = JSON.stringify([id, name, text]);
  if (id === undefined || content === sent) return;
  timer = setTimeout(() => {
    sending = sending.then(async () => {
      try {
        const { version } = await put<ServedInfo>(`/drafts/${part(id)}`, { name, text, base: known(id) });
        know(id, version);
        sent = content;
      } catch (error) {
        // Without the server this browser has the draft, and the next change is tried again.
        if (error instanceof ApiError && error.kind === 'conflict' && stored() === id) conflict();
      }
    });
  }, PAUSE_MS);
}

/** All drafts of the server, the newest first; none if it does not answer. */
export async function served(signal?: AbortSignal): Promise<ServedInfo[]> {
  try {
    return await get<ServedInfo[]>('/drafts', signal);
  } catch (error) {
    if (aborted(error)) throw error;
    return [];
  }
}

/** A draft of the server, or an earlier version of it. */
export function servedDraft(id: string, version?: number, signal?: AbortSignal): Promise<Served> {
  return get<Served>(`/drafts/${part(id)}${search({ version })}`, signal);
}

/** Removes a draft from the server, with all its versions. */
export async function unserve(id: string): Promise<void> {
  know(id, undefined);
  await remove<void>(`/drafts/${part(id)}`);
}
