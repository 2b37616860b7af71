/** What can be selected in a drawing, and what is known of it. */
import { parse } from 'smol-toml';
import type { Drawing, DrawnAxis, FormKey, FormSchema, FormSection, Json, Medium, Place, Problem, SectionName, Tree } from '../api/types';
import { quantityOf } from './form/quantity';
import { offsetOf, pathAt } from './locate';

/** A host, link, flow or bundle; nothing selected is the experiment. */
export interface Item {
  section: SectionName;
  name: string;
}

export const NOUNS: Record<SectionName, string> = { hosts: 'host', link: 'link', flow: 'flow', bundle: 'bundle' };

export function same(a: Item | undefined, b: Item | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && a.section === b.section && a.name === b.name);
}

/** Everything that a drawing shows, in the order of the file. */
export function items(drawing: Drawing | undefined): Item[] {
  if (!drawing) return [];
  return [
    ...drawing.hosts.map((host): Item => ({ section: 'hosts', name: host.name })),
    ...drawing.links.map((link): Item => ({ section: 'link', name: link.name })),
    ...drawing.flows.map((flow): Item => ({ section: 'flow', name: flow.name })),
    ...drawing.bundles.map((bundle): Item => ({ section: 'bundle', name: bundle.name })),
  ];
}

/** The keys that an item has, as they are written. */
export function keysOf(drawing: Drawing | undefined, item: Item): Tree | undefined {
  if (!drawing) return undefined;
  const lists: Record<SectionName, readonly { name: string; keys: Tree }[]> = {
    hosts: drawing.hosts,
    link: drawing.links,
    flow: drawing.flows,
    bundle: drawing.bundles,
  };
  return lists[item.section].find((each) => each.name === item.name)?.keys;
}

/** The item that a path leads into. */
export function itemOf(path: readonly string[], drawing: Drawing | undefined): Item | undefined {
  const parts = path[0] === 'sweep' || path[0] === 'limits' ? (path[1] ?? '').split('.') : path;
  const [section, name] = parts;
  if (name === undefined || !(section === 'hosts' || section === 'link' || section === 'flow' || section === 'bundle')) return undefined;
  const item: Item = { section, name };
  return keysOf(drawing, item) ? item : undefined;
}

/** A problem with the path at which it stands. */
export interface PlacedProblem extends Problem {
  path: string[];
}

/** The replacement that a message suggests: of its wrong word alone, and only where it is certain which one that is. */
export function mended(text: string, { file, message, ...at }: Omit<Problem, 'point'>): { from: number; to: number; text: string } | undefined {
  const [, said = '', meant] = /^(.*); did you mean `([^`]+)`/s.exec(message) ?? [];
  if (file || meant === undefined) return undefined;
  const from = offsetOf(text, at.line, at.column);
  const old = text.slice(from, offsetOf(text, at.end_line, at.end_column));
  // A key is corrected up to its first wrong part; the rest is kept.
  const keptTo = (word: string) => (said.startsWith('unknown key') ? word.split('.').slice(0, meant.split('.').length).join('.') : word);
  const words = [...said.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word);
  for (const word of words.reverse()) {
    const escaped = word.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
    const [first, second] = [...old.matchAll(new RegExp(`(?<![\\w-])${escaped}(?![\\w-])`, 'g'))];
    if (first && second) return undefined;
    if (first) return { from: from + first.index, to: from + first.index + keptTo(word).length, text: meant };
  }
  return undefined;
}

/** Whether a host, link, flow or bundle can have this name. */
export function isName(name: string): boolean {
  return /^[A-Za-z0-9_-]+$/.test(name);
}

export const NAME_RULE = 'A name consists of ASCII letters, digits, - and _.';

export function placeProblems(problems: readonly Problem[], text: string, known: readonly Place[]): PlacedProblem[] {
  return problems.map((problem) => ({ ...problem, path: problem.file ? [] : pathAt(offsetOf(text, problem.line, problem.column), known) }));
}

/** The messages that belong to a field: those at its path, and at what is written within it unless a field of its own shows that. */
export function messageAt(problems: readonly PlacedProblem[], path: readonly string[], within: boolean): string | undefined {
  const messages = problems
    .filter((problem) => (within || problem.path.length === path.length) && path.every((part, index) => problem.path[index] === part))
    .map((problem) => problem.message);
  return messages.length === 0 ? undefined : [...new Set(messages)].join(' ');
}

export function problemsOf(problems: readonly PlacedProblem[], item: Item): PlacedProblem[] {
  return problems.filter((problem) => problem.path[0] === item.section && problem.path[1] === item.name);
}

export function section(schema: FormSchema | undefined, name: FormSection['name']): FormSection | undefined {
  return schema?.sections.find((each) => each.name === name);
}

/** The keys that an item may have: for a link those of its medium too. */
export function formKeys(schema: FormSchema | undefined, item: Item, keys: Tree): FormKey[] {
  const form = section(schema, item.section);
  if (!form) return [];
  if (item.section !== 'link') return form.keys;
  return [...form.keys, ...(medium(schema, keys)?.keys ?? [])];
}

/** The keys of a link that a direction or a station of it may have too. */
export function directionKeys(schema: FormSchema | undefined, keys: Tree): FormKey[] {
  const found = medium(schema, keys);
  return found?.keys.filter((key) => !found.shared?.includes(key.name)) ?? [];
}

/** The medium of a link with these keys. */
export function medium(schema: FormSchema | undefined, keys: Tree): Medium | undefined {
  const form = section(schema, 'link');
  const fallback = form?.keys.find((key) => key.name === 'medium')?.default ?? 'serial';
  const name = typeof keys['medium'] === 'string' ? keys['medium'] : fallback;
  return form?.media?.find((each) => each.name === name);
}

/** What most people look for first. The rest stands behind "more". */
const COMMON: Record<SectionName | 'experiment', readonly string[]> = {
  hosts: ['agent', 'profile'],
  link: ['between', 'profile', 'medium', 'rate', 'delay', 'queue', 'loss', 'jitter'],
  flow: ['from', 'to', 'transport', 'source', 'count', 'channels', 'codec', 'playout', 'reflect'],
  bundle: ['flows'],
  experiment: ['name', 'duration', 'repetitions', 'seed', 'drain'],
};

/** Splits keys into what is shown at once (required, common, written) and the rest. */
export function arranged(keys: readonly FormKey[], of: SectionName | 'experiment', written: Tree): { first: FormKey[]; more: FormKey[] } {
  const order = COMMON[of];
  const rank = (key: FormKey) => (order.includes(key.name) ? order.indexOf(key.name) : order.length);
  // Places are shown by the drawing itself.
  const shown = keys.filter((key) => key.shape !== 'position');
  const atOnce = (key: FormKey) => key.required || rank(key) < order.length || key.name in written;
  return { first: shown.filter(atOnce).toSorted((a, b) => rank(a) - rank(b)), more: shown.filter((key) => !atOnce(key)) };
}

/** A value as a field shows it. */
export function shown(value: Json | undefined): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value;
  if (typeof value === 'object') return toml(value);
  return String(value);
}

/** A value as the text has it: `{ kind = "fifo", limit = "600 KB" }`. */
export function toml(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(toml).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const pairs = Object.entries(value).map(([key, one]) => `${/^[\w-]+$/.test(key) ? key : JSON.stringify(key)} = ${toml(one)}`);
  return pairs.length === 0 ? '{}' : `{ ${pairs.join(', ')} }`;
}

/** The reverse; undefined if it is none. */
export function ofToml(text: string): Json | undefined {
  try {
    return parse(`value = ${text}`)['value'] as Json;
  } catch {
    return undefined;
  }
}

/** What is typed into a field, as the file has it: numbers where the key takes them. */
export function typed(text: string, key: FormKey, before?: Json): Json {
  const meant = quantityOf(text, key, before);
  const trimmed = meant?.isSure ? meant.text : text.trim();
  const numeric = key.shape === 'integer' || key.shape === 'number' || key.shape === 'ratio';
  if (key.shape === 'steps' && trimmed.startsWith('[')) return ofToml(trimmed) ?? trimmed;
  if (numeric && /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed)) return Number(trimmed);
  return trimmed;
}

/** The axis of the sweep that varies a key, by itself or together with others. */
export function sweptBy(drawing: Drawing | undefined, path: readonly string[]): DrawnAxis | undefined {
  const key = path.join('.');
  return drawing?.sweep.find((axis) => axis.key.split(',').some((part) => part.trim() === key));
}
