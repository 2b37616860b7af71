/** What two experiment files set differently, setting by setting rather than line by line. */

import type { Drawing, Json } from '../api/types';
import { shown } from '../editor/items';

/** A setting that is not the same in both; `null` where it is not set. */
export interface Setting {
  key: string;
  a: string | null;
  b: string | null;
}

/** Settings that say nothing about the network: where hosts stand on the canvas. */
const LAYOUT = /^hosts\.[^.]+\.position(\.|$)/;

/** The settings in which two files differ, in the order of the first, those of the second only behind. */
export function differing(a: Drawing, b: Drawing): Setting[] {
  const [first, second] = [flattened(a), flattened(b)];
  const keys = new Set([...first.keys(), ...second.keys()]);
  return [...keys]
    .filter((key) => !LAYOUT.test(key) && first.get(key) !== second.get(key))
    .map((key) => ({ key, a: first.get(key) ?? null, b: second.get(key) ?? null }));
}

function flattened(drawn: Drawing): Map<string, string> {
  const settings = new Map<string, string>();
  const add = (key: string, value: unknown): void => {
    // A table of a kind is one setting: of another kind it has other keys.
    if (value !== null && typeof value === 'object' && !Array.isArray(value) && !('kind' in value)) {
      const entries = Object.entries(value);
      // An empty table is a setting too: the host is there.
      if (entries.length === 0) settings.set(key, '{}');
      for (const [name, inner] of entries) add(key === '' ? name : `${key}.${name}`, inner);
    } else if (value !== undefined && value !== null) {
      settings.set(key, Array.isArray(value) ? value.map(shown).join(', ') : shown(value as Json));
    }
  };
  add('', drawn.experiment);
  for (const { name, keys } of drawn.hosts) add(`hosts.${name}`, keys ?? {});
  for (const { name, keys } of drawn.links) add(`link.${name}`, keys);
  for (const { name, keys } of drawn.flows) add(`flow.${name}`, keys);
  for (const { name, keys } of drawn.bundles) add(`bundle.${name}`, keys);
  for (const axis of drawn.sweep) add(`sweep ${axis.key}`, axis.shown);
  for (const { key, limit } of drawn.limits) add(`limit ${key}`, limit);
  return settings;
}
