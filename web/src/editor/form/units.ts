import type { FormKey, Shape } from '../../api/types';

/** What a value looks like, for a field without a value and without a default. */
const EXAMPLES: Partial<Record<Shape, string>> = {
  duration: '10 ms',
  durations: '10 ms',
  rate: '2 Mbit/s',
  bytes: '64 KiB',
  sizes: '160 B',
  ratio: '1 %',
  limit: '64 KiB or 100 packets',
  file: 'path of a file',
  steps: '[["0 s", "20 Mbit/s"], ["15 s", "5 Mbit/s"]]',
};

/** What stands in a field as long as nothing is written: the default that holds, or an example of what could. */
export function placeholderOf(key: FormKey): string {
  if (key.default) return key.default;
  const example = EXAMPLES[key.shape];
  return example ? `e.g. ${example}` : '';
}

/** Usual values of a quantity with its units, as suggestions. */
export function suggestionsOf(key: FormKey): string[] {
  const usual: Partial<Record<Shape, string[]>> = {
    duration: ['1 ms', '5 ms', '10 ms', '20 ms', '50 ms', '100 ms', '1 s', '10 s', '1 min'],
    durations: ['1 ms', '5 ms', '10 ms', '20 ms', '50 ms', '100 ms'],
    rate: ['64 kbit/s', '1 Mbit/s', '2 Mbit/s', '10 Mbit/s', '100 Mbit/s', '1 Gbit/s'],
    bytes: ['80 B', '160 B', '1500 B', '8 KiB', '64 KiB', '1 MiB'],
    sizes: ['80 B', '160 B', '1 KiB', '8 KiB'],
    ratio: ['0.1 %', '1 %', '5 %'],
    limit: ['50 packets', '100 packets', '64 KiB', '128 KiB'],
  };
  return usual[key.shape] ?? key.choices?.map((choice) => choice.name) ?? [];
}

/** In which range a key's values lie, and what holds without it. */
export function rangeOf(key: FormKey): string {
  const parts: string[] = [];
  const given = (value: unknown) => value !== undefined && value !== null && value !== '';
  if (given(key.min) && given(key.max)) parts.push(`${key.min} to ${key.max}`);
  else if (given(key.min)) parts.push(`at least ${key.min}`);
  else if (given(key.max)) parts.push(`at most ${key.max}`);
  if (key.units && key.units.length > 0) parts.push(`in ${key.units.join(', ')}`);
  if (key.required) parts.push('required');
  else if (key.default) parts.push(`default ${key.default}`);
  return parts.join(' · ');
}
