/** Keys of an experiment file whose largest or smallest value can be searched: amounts and counts, not words. */

import type { Drawing, Json } from '../api/types';

/** Keys that number, but say nothing about the network. */
const NOT = new Set(['seed', 'repetitions', 'position', 'x', 'y']);

/** `flow.voice.count`, `link.trunk.rate` ...: what is swept first, then counts and rates, then the rest. */
export function searchable(drawing: Drawing): string[] {
  const isNumber = (value: Json) => typeof value === 'number' || (typeof value === 'string' && /^\d/.test(value));
  // Between words, such as transports, there is nothing to search.
  const found = new Set<string>(drawing.sweep.filter(({ values }) => values.every(isNumber)).map(({ key }) => key));
  for (const { name } of drawing.flows) found.add(`flow.${name}.count`);
  const add = (path: string, value: Json): void => {
    const last = path.slice(path.lastIndexOf('.') + 1);
    if (NOT.has(last)) return;
    if (isNumber(value)) found.add(path);
    else if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
      for (const [key, inner] of Object.entries(value)) add(`${path}.${key}`, inner);
    }
  };
  for (const { name, keys } of drawing.links) add(`link.${name}`, keys);
  for (const { name, keys } of drawing.flows) add(`flow.${name}`, keys);
  for (const { name, keys } of drawing.bundles) add(`bundle.${name}`, keys);
  return [...found];
}
