/**
 * Server-sent events of a job. The browser reconnects by itself and says which event it saw last, so nothing is missed that
 * the server still has.
 */
import { search, url } from './client';
import type { components } from './schema';
import type { Job, Records } from './types';

type Schemas = components['schemas'];

export type { Records };

export interface Handlers {
  job?: (job: Job) => void;
  records?: (records: Records) => void;
  repetition?: (done: Schemas['RepetitionDone']) => void;
  warning?: (warning: Schemas['Warning']) => void;
  end?: () => void;
  /** The connection is gone (and is tried again) or back. */
  connected?: (connected: boolean) => void;
}

/** Follows a job, or all of them without `job`. Returns how to stop. */
export function follow(job: string | undefined, handlers: Handlers): () => void {
  const source = new EventSource(url(`/events${search({ job })}`));
  const on = <T>(name: string, handler: ((data: T) => void) | undefined) => {
    if (handler) source.addEventListener(name, (event) => handler(JSON.parse((event as MessageEvent<string>).data) as T));
  };
  on('job', handlers.job);
  on('records', handlers.records);
  on('repetition', handlers.repetition);
  on('warning', handlers.warning);
  source.addEventListener('end', () => {
    // A job that has ended says nothing more; without closing, the browser would ask again for ever.
    if (job !== undefined) source.close();
    handlers.end?.();
  });
  source.addEventListener('open', () => handlers.connected?.(true));
  source.addEventListener('error', () => handlers.connected?.(false));
  return () => source.close();
}
