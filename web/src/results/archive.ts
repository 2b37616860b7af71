/** Runs as files: import of an archive that another store has exported. */

import { ApiError, url } from '../api/client';

export interface Imported {
  run: number;
  /** Whether it was not here before. */
  new: boolean;
}

/** Sends an archive to the server; throws an `ApiError` whose message can be shown. */
export async function importRun(file: File): Promise<Imported> {
  let response: Response;
  try {
    response = await fetch(url('/runs/import'), {
      method: 'POST',
      credentials: 'same-origin',
      headers: { 'content-type': 'application/x-tar' },
      body: file,
    });
  } catch {
    throw new ApiError('The server does not answer. Is `trunkline serve` still running?', 'unreachable');
  }
  const answer = (await response.json().catch(() => ({}))) as Imported & { error?: { message?: string } };
  if (response.ok) return answer;
  throw new ApiError(answer.error?.message ?? `The server answered with ${response.status}.`, 'input');
}
