/** Items on the clipboard: copied with their keys, and added again under other names, connected among themselves as before. */

import type { Drawing, Edit, Json, SectionName, Tree } from '../../api/types';
import { items, keysOf, type Item } from '../items';

interface Copied extends Item {
  keys: Tree;
  /** Where a host stood. */
  position?: [number, number];
}

const SECTIONS: readonly SectionName[] = ['hosts', 'link', 'flow', 'bundle'];

/** What is copied of these items, as a text for the clipboard; with hosts, also the links and flows between them. */
export function copied(drawing: Drawing | undefined, selected: readonly Item[]): string | undefined {
  if (!drawing || selected.length === 0) return undefined;
  const hosts = new Set(selected.flatMap(({ section, name }) => (section === 'hosts' ? [name] : [])));
  const isChosen = (item: Item) => selected.some((one) => one.section === item.section && one.name === item.name);
  const isInside = (item: Item) => {
    if (item.section === 'link') return drawing.links.find(({ name }) => name === item.name)?.between.every((host) => hosts.has(host));
    const flow = item.section === 'flow' ? drawing.flows.find(({ name }) => name === item.name) : undefined;
    return flow && hosts.has(flow.from) && flow.to.every((host) => hosts.has(host));
  };
  const all = items(drawing).filter((item) => isChosen(item) || isInside(item));
  const told = all.map((item): Copied => {
    const host = item.section === 'hosts' ? drawing.hosts.find(({ name }) => name === item.name) : undefined;
    return { ...item, keys: keysOf(drawing, item) ?? {}, ...(host ? { position: [Math.round(host.x), Math.round(host.y)] } : {}) };
  });
  return JSON.stringify({ trunkline: told });
}

/** The edits that add what was copied, and what it is called then; nothing if the text is something else. */
export function pasted(drawing: Drawing | undefined, text: string): { edits: Edit[]; added: Item[] } | undefined {
  const found = read(text);
  if (!drawing || !found) return undefined;
  const taken = new Map(SECTIONS.map((section) => [section, new Set(items(drawing).flatMap((item) => (item.section === section ? [item.name] : [])))]));
  const renamed = new Map<string, string>();
  for (const { section, name } of found) {
    const names = taken.get(section) ?? new Set();
    const base = name.replace(/-\d+$/, '');
    let [next, number] = [name, 2];
    while (names.has(next)) next = `${base}-${number++}`;
    names.add(next);
    renamed.set(`${section} ${name}`, next);
  }
  const named = (section: SectionName, value: Json): Json => {
    if (Array.isArray(value)) return value.map((one) => named(section, one));
    if (typeof value === 'string') return renamed.get(`${section} ${value}`) ?? value;
    return value && typeof value === 'object' && typeof value['host'] === 'string' ? { ...value, host: named('hosts', value['host']) } : value;
  };
  /** Keys that name others: of which kind. */
  const refers: Record<string, SectionName> = { between: 'hosts', from: 'hosts', to: 'hosts', links: 'link', flows: 'flow' };
  const added: Item[] = [];
  const edits = found.toSorted((a, b) => SECTIONS.indexOf(a.section) - SECTIONS.indexOf(b.section)).map(({ section, name, keys, position }): Edit => {
    const next = renamed.get(`${section} ${name}`) ?? name;
    added.push({ section, name: next });
    const values = Object.fromEntries(Object.entries(keys).map(([key, value]) => [key, refers[key] && section !== 'hosts' ? named(refers[key], value) : value]));
    const stations = values['station'];
    if (section === 'link' && stations && typeof stations === 'object' && !Array.isArray(stations)) values['station'] = Object.fromEntries(Object.entries(stations).map(([host, table]) => [String(named('hosts', host)), table]));
    if (position) values['position'] = [position[0] + 40, position[1] + 70];
    return { op: 'add', section, name: next, values };
  });
  return { edits, added };
}

function read(text: string): Copied[] | undefined {
  try {
    const { trunkline } = JSON.parse(text) as { trunkline?: unknown };
    if (!Array.isArray(trunkline)) return undefined;
    const isItem = (one: Partial<Copied> | null): one is Copied => SECTIONS.includes(one?.section as SectionName) && typeof one?.name === 'string' && typeof one.keys === 'object';
    return trunkline.every(isItem) && trunkline.length > 0 ? trunkline : undefined;
  } catch {
    return undefined;
  }
}
