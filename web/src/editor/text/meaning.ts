/** What may stand at a place of the text: keys of a table, and values of a key, as the schema says. */

import type { Drawing, FormKey, FormSchema, Json, Tree } from '../../api/types';
import { quantityOf } from '../form/quantity';
import { rangeOf, suggestionsOf } from '../form/units';
import { directionKeys, formKeys, itemOf, items, keysOf, mended, section, type PlacedProblem } from '../items';
import { offsetOf } from '../locate';

/** What the text is about to say: the table, and the key whose value is written, if one is. */
export interface Spot {
  table: string[];
  key?: string;
}

/** Where in the text something is completed: the last heading, the inline tables that are open in its line, and the key before `=`. */
export function spotAt(text: string, offset: number): Spot | undefined {
  const before = text.slice(0, offset);
  const line = before.slice(before.lastIndexOf('\n') + 1);
  if (/^\s*\[/.test(line)) return undefined;
  const headings = [...before.matchAll(/^\[+([^\]\n]*)\]/gm)];
  const table = parts(headings.at(-1)?.[1] ?? '');
  let word = '';
  let key: string | undefined;
  const open: { kind: string; key: string | undefined }[] = [];
  for (const [token] of line.matchAll(/"(?:[^"\\]|\\.)*"?|'[^']*'?|#.*|[{}[\],=]|[^\s"'#{}[\],=]+/g)) {
    if (token.startsWith('#')) return undefined;
    if (token === '=') key = word;
    else if (token === '{' || token === '[') {
      open.push({ kind: token, key });
      if (token === '{') {
        table.push(...parts(key ?? ''));
        key = undefined;
      }
    } else if (token === '}' || token === ']') {
      const last = open.pop();
      key = last?.key;
      if (last?.kind === '{') table.length -= parts(key ?? '').length;
    } else if (token === ',' && open.at(-1)?.kind !== '[') key = undefined;
    else word = token;
  }
  return key === undefined ? { table } : { table, key: parts(key).at(-1) ?? key };
}

function parts(dotted: string): string[] {
  return [...dotted.matchAll(/"([^"]*)"|'([^']*)'|([^\s."']+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? '');
}

/** The keys that the table at a path may have. */
export function keysAt(path: readonly string[], schema: FormSchema | undefined, drawing: Drawing | undefined): FormKey[] {
  if (path.length === 0) return section(schema, 'experiment')?.keys ?? [];
  const item = itemOf(path, drawing);
  if (!item || path.length < 2 || path[0] === 'sweep' || path[0] === 'limits') return [];
  const written = keysOf(drawing, item) ?? {};
  let keys = formKeys(schema, item, written);
  let value: Json = written;
  for (const [i, name] of path.slice(2).entries()) {
    const key = keys.find((one) => one.name === name);
    value = (value && typeof value === 'object' && !Array.isArray(value) ? value[name] : undefined) ?? null;
    if (key?.shape === 'direction') keys = directionKeys(schema, written);
    else if (key?.shape === 'stations') keys = [];
    else if (path[i + 1] === 'station') keys = directionKeys(schema, written);
    else keys = key ? inside(key, value) : [];
  }
  return keys;
}

/** The keys of a table in the place of a value: those of its kind, or of all kinds while it has none. */
function inside(key: FormKey, value: Json): FormKey[] {
  const all = key.alternatives ?? [];
  const kind = (value as Tree | null)?.['kind'];
  const chosen = all.filter(({ name, aliases }) => name === kind || aliases?.includes(String(kind)));
  const names = new Set<string>();
  const keys = (chosen.length > 0 ? chosen : all).flatMap((one) => one.keys).filter(({ name }) => !names.has(name) && names.add(name));
  const kindKey: FormKey = { name: 'kind', doc: key.doc, shape: 'choice', required: true, share: false, choices: all.map(({ name, doc }) => ({ name, doc })) };
  return [...(all.length > 0 ? [kindKey] : []), ...keys, ...(key.keys ?? [])];
}

/** A word that may stand somewhere, with its meaning. */
export interface Word {
  label: string;
  /** What is written; the word itself if nothing else. */
  apply?: string;
  detail?: string;
  info: string;
}

/** The words that may stand at a spot. Values are written with their quotes, unless those stand already. */
export function wordsAt({ table, key: name }: Spot, schema: FormSchema | undefined, drawing: Drawing | undefined, isQuoted: boolean): Word[] {
  const keys = keysAt(table, schema, drawing);
  if (name === undefined) return keys.map((key) => ({ label: key.name, apply: `${key.name} = `, detail: key.required ? 'required' : (key.default ?? undefined), info: key.doc }));
  const key = keys.find((one) => one.name === name);
  if (!key) return [];
  const text = (label: string, info: string): Word => ({ label, apply: isQuoted ? label : `"${label}"`, info });
  if (key.shape === 'flag') return ['true', 'false'].map((label) => ({ label, info: key.doc }));
  const of = (kind: string) => items(drawing).filter((item) => item.section === kind).map((item) => text(item.name, ''));
  if (key.shape === 'host' || key.shape === 'hosts' || key.shape === 'sinks') return of('hosts');
  if (key.shape === 'flow' || key.shape === 'flows') return of('flow');
  if (key.shape === 'links') return of('link');
  if (key.alternatives && key.alternatives.length > 0) return key.alternatives.map(({ name, doc }) => text(name, doc));
  if (key.choices && key.choices.length > 0) return key.choices.map(({ name, doc }) => text(name, doc));
  return suggestionsOf(key).map((label) => text(label, ''));
}

/** What a key means, and which values it takes: a paragraph each. */
export function meaningOf(path: readonly string[], schema: FormSchema | undefined, drawing: Drawing | undefined): { title: string; paragraphs: string[] } | undefined {
  if (path.length === 1) {
    const found = section(schema, path[0] as never);
    if (found && found.name !== 'experiment') return { title: found.name, paragraphs: [found.doc] };
  }
  const key = keysAt(path.slice(0, -1), schema, drawing).find(({ name }) => name === path.at(-1));
  return key && { title: key.name, paragraphs: [key.doc, rangeOf(key)].filter((text) => text !== '') };
}

/** The replacement that mends a problem: the word that was meant, or a quantity with a unit of the file. */
export function fixOf(text: string, problem: PlacedProblem, schema: FormSchema | undefined, drawing: Drawing | undefined): { from: number; to: number; text: string } | undefined {
  const meant = mended(text, problem);
  if (meant || problem.file) return meant;
  const key = keysAt(problem.path.slice(0, -1), schema, drawing).find(({ name }) => name === problem.path.at(-1));
  const [from, to] = [offsetOf(text, problem.line, problem.column), offsetOf(text, problem.end_line, problem.end_column)];
  const old = text.slice(from, to);
  const value = /^"[^"\\]*"$/.test(old) ? old.slice(1, -1) : /^[\d.,]+$/.test(old) ? old : undefined;
  const better = key && value !== undefined ? quantityOf(value, key, undefined)?.text : undefined;
  return better !== undefined && better !== value ? { from, to, text: JSON.stringify(better) } : undefined;
}
