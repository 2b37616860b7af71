/** Calls of the API. Every failure is an `ApiError` whose message can be shown as it is. */
import type {
  Backend,
  CheckAnswer,
  DrawingAnswer,
  Edit,
  EditAnswer,
  Example,
  FormSchema,
  NewPrediction,
  Prediction,
  Problem,
  ServerInfo,
  Started,
} from './types';

const BASE = '/api/v1';

/** The answers in a file in which a run was saved, by path: there is no server then. */
export let held: ReadonlyMap<string, Uint8Array<ArrayBuffer>> | undefined;

export function hold(answers: NonNullable<typeof held>): void {
  held = answers;
}

/** Whether there is an answer to this address: a server may have it, a saved file says. */
export function has(path: string): boolean {
  return held?.has(decodeURIComponent(path)) ?? true;
}

export type ErrorKind = 'input' | 'environment' | 'not-found' | 'conflict' | 'unauthorised' | 'unreachable';

/** What went wrong: a sentence, its kind, and what is wrong with a file if it was one. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly kind: ErrorKind,
    readonly problems: Problem[] = [],
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

/** The address of something that the browser itself fetches: an image, a download. `url('/runs/12/report')`. */
export function url(path: string): string {
  return BASE + path;
}

/** A part of a path, escaped. */
export function part(name: string | number): string {
  return encodeURIComponent(String(name));
}

/** `?a=1&b=2` of what is given; nothing is left out, empty texts too. */
export function search(values: Record<string, string | number | undefined | null>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return given.length === 0 ? '' : `?${new URLSearchParams(given.map(([key, value]) => [key, String(value)]))}`;
}

export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return call<T>('GET', path, undefined, signal);
}

export function post<T>(path: string, body: unknown = {}, signal?: AbortSignal): Promise<T> {
  return call<T>('POST', path, body, signal);
}

export function put<T>(path: string, body: unknown = {}): Promise<T> {
  return call<T>('PUT', path, body);
}

export function remove<T>(path: string): Promise<T> {
  return call<T>('DELETE', path);
}

/** Sends a file as it is. */
export async function upload<T>(path: string, file: File): Promise<T> {
  return (await answered('POST', path, file)).json() as Promise<T>;
}

/** Bytes, for traces. */
export async function bytes(path: string, signal?: AbortSignal): Promise<ArrayBuffer> {
  return (await answered('GET', path, undefined, signal)).arrayBuffer();
}

/** A message for a person from anything that was thrown. */
export function explain(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Whether a call was given up by the page itself, which is nothing to tell anybody. */
export function aborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

export const api = {
  server: () => get<ServerInfo>('/server'),
  schema: () => get<FormSchema>('/schema'),
  examples: () => get<Example[]>('/examples'),
  check: (text: string, signal?: AbortSignal) => post<CheckAnswer>('/check', { text }, signal),
  drawing: (text: string, signal?: AbortSignal) => post<DrawingAnswer>('/drawing', { text }, signal),
  predict: (what: NewPrediction, signal?: AbortSignal) => post<Prediction>('/predict', what, signal),
  edit: (text: string, edits: Edit[], signal?: AbortSignal) => post<EditAnswer>('/edit', { text, edits }, signal),
  run: (text: string, backend: Backend, file_name?: string) => post<Started>('/runs', { text, backend, file_name }),
  resume: (run: number) => post<Started>(`/runs/${run}/resume`),
};

async function call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const response = await answered(method, path, body, signal);
  const text = await response.text();
  if (text === '') return undefined as T;
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new ApiError(`The server's answer to ${method} ${path} is not JSON.`, 'environment');
  }
}

async function answered(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  if (held) {
    // Of a trace there is one answer, about all of it.
    const answer = held.get(decodeURIComponent(path.replace(/\/(latency|cdf)\?.*/, '/$1')));
    if (answer) return new Response(answer);
    throw new ApiError('This is not in the saved file.', 'not-found');
  }
  let response: Response;
  try {
    response = await fetch(BASE + path, {
      method,
      credentials: 'same-origin',
      ...(body instanceof File ? { headers: { 'content-type': 'application/x-tar' }, body } : body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      signal,
    });
  } catch (error) {
    if (aborted(error)) throw error;
    throw new ApiError('The server does not answer. Is `trunkline serve` still running?', 'unreachable');
  }
  if (response.ok) return response;
  // Whoever is not logged in is shown how to.
  if (response.status === 401 && !location.hash.startsWith('#/login')) location.hash = '#/login';
  throw await failure(response, method, path);
}

async function failure(response: Response, method: string, path: string): Promise<ApiError> {
  const kinds: Record<number, ErrorKind> = { 400: 'input', 401: 'unauthorised', 404: 'not-found', 409: 'conflict' };
  const kind = kinds[response.status] ?? 'environment';
  try {
    const { error } = (await response.json()) as { error?: { message?: string; kind?: ErrorKind; problems?: Problem[] } };
    if (error?.message) return new ApiError(error.message, error.kind ?? kind, error.problems ?? []);
  } catch {
    // Not ours: a proxy's page, or nothing at all.
  }
  if (kind === 'unauthorised') return new ApiError('Log in first: `trunkline serve token` prints a link.', kind);
  return new ApiError(`The server answered ${method} ${path} with ${response.status}.`, kind);
}
