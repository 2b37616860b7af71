import { expect, test } from 'vitest';
import type { Drawing, FormKey, FormSchema } from '../src/api/types';
import { copied, pasted } from '../src/editor/canvas/copied';
import { placeProblems } from '../src/editor/items';
import { fixOf, meaningOf, spotAt, wordsAt } from '../src/editor/text/meaning';

const key = (name: string, shape: FormKey['shape'], more: Partial<FormKey> = {}): FormKey => ({ name, shape, doc: `what ${name} is`, required: false, share: false, ...more });
const fifo = { name: 'fifo', doc: 'first in, first out', keys: [key('limit', 'limit')] };
const codel = { name: 'codel', doc: 'controlled delay', keys: [key('target', 'duration', { units: ['ms', 's'] })] };
const SCHEMA: FormSchema = {
  sections: [
    { name: 'experiment', doc: '', keys: [key('duration', 'duration', { units: ['ms', 's'], default: '10 s' })] },
    { name: 'hosts', doc: 'machines', keys: [] },
    { name: 'link', doc: 'lines', keys: [key('between', 'hosts')], media: [{ name: 'serial', doc: '', keys: [key('rate', 'rate', { units: ['bit/s', 'kbit/s', 'Mbit/s'] }), key('queue', 'one-of', { alternatives: [fifo, codel] })], shared: [], stations: { min: 2, max: 2 } }] },
    { name: 'flow', doc: 'conversations', keys: [key('from', 'host'), key('reflect', 'flag')] },
  ],
} as FormSchema;
const TEXT = `duration = "10 s"

[hosts]
a = {}
b = {}

[link.line]
between = ["a", "b"]
rate = "1.5Mbps"
queue = { kind = "codel", target = "5 ms" }

[flow.voice]
from = "a"
`;
const DRAWING = {
  title: 't', experiment: {}, sweep: [], limits: [], bundles: [],
  hosts: ['a', 'b'].map((name, i) => ({ name, x: i * 100, y: 50, placed: false, count: 1, keys: {} })),
  links: [{ name: 'line', between: ['a', 'b'], medium: 'serial', label: '', keys: { between: ['a', 'b'], queue: { kind: 'codel', target: '5 ms' } } }],
  flows: [{ name: 'voice', from: 'a', to: ['b'], transport: 'udp', source: 'voice', count: 1, label: '', keys: { from: 'a', to: 'b' } }],
} as unknown as Drawing;

/** The words that are offered where `|` stands. */
function offered(text: string): string[] {
  const at = text.indexOf('|');
  const spot = spotAt(text, at);
  const line = text.slice(text.lastIndexOf('\n', at - 1) + 1, at);
  return spot ? wordsAt(spot, SCHEMA, DRAWING, (line.match(/"/g)?.length ?? 0) % 2 === 1).map(({ apply, label }) => apply ?? label) : [];
}

test('keys and values are completed where they may stand', () => {
  expect(offered('|')).toEqual(['duration = ']);
  expect(offered('[link.line]\nra|')).toEqual(['between = ', 'rate = ', 'queue = ']);
  expect(offered('[link.line]\nqueue = |')).toEqual(['"fifo"', '"codel"']);
  expect(offered('[link.line]\nqueue = { kind = "|')).toEqual(['fifo', 'codel']);
  // Only the keys of the kind that is written.
  expect(offered('[link.line]\nqueue = { kind = "codel", |')).toEqual(['kind = ', 'target = ']);
  expect(offered('[flow.voice]\nfrom = "|')).toEqual(['a', 'b']);
  expect(offered('[flow.voice]\nreflect = |')).toEqual(['true', 'false']);
  expect(offered('[link.line]\nbetween = ["a", |')).toEqual(['"a"', '"b"']);
  expect(offered('[link.line]\nqueue = { kind = "codel" } # |')).toEqual([]);
  expect(offered('[li|')).toEqual([]);
  expect(offered('[link.none]\n|')).toEqual([]);
});

test('a key is explained with the values that it takes', () => {
  expect(meaningOf(['link', 'line', 'queue', 'target'], SCHEMA, DRAWING)).toEqual({ title: 'target', paragraphs: ['what target is', 'in ms, s'] });
  expect(meaningOf(['duration'], SCHEMA, DRAWING)?.paragraphs).toEqual(['what duration is', 'in ms, s · default 10 s']);
  expect(meaningOf(['hosts'], SCHEMA, DRAWING)?.paragraphs).toEqual(['machines']);
  expect(meaningOf(['link', 'line', 'nonsense'], SCHEMA, DRAWING)).toBeUndefined();
});

test('units as people write them are mended', () => {
  const fix = (text: string, written: string, ...keys: string[]) => {
    const line = text.slice(0, text.indexOf(written)).split('\n').length;
    const column = (text.split('\n')[line - 1] ?? '').indexOf(written) + 1;
    const [problem] = placeProblems([{ message: 'no such unit', line, column, end_line: line, end_column: column + written.length }], text, [{ path: ['link', 'line', ...keys], from: text.indexOf(written), to: text.indexOf(written) + written.length }]);
    return problem && fixOf(text, problem, SCHEMA, DRAWING)?.text;
  };
  expect(fix(TEXT, '"1.5Mbps"', 'rate')).toBe('"1.5 Mbit/s"');
  expect(fix(TEXT.replace('"5 ms"', '20'), '20', 'queue', 'target')).toBe('"20 ms"');
  expect(fix(TEXT.replace('"5 ms"', '"7 lightyears"'), '"7 lightyears"', 'queue', 'target')).toBeUndefined();
});

test('what is copied comes again under other names, connected as before', () => {
  const text = copied(DRAWING, [{ section: 'hosts', name: 'a' }, { section: 'hosts', name: 'b' }]) ?? '';
  const found = pasted(DRAWING, text);
  expect(found?.added.map(({ section, name }) => `${section} ${name}`)).toEqual(['hosts a-2', 'hosts b-2', 'link line-2', 'flow voice-2']);
  const values = found?.edits.map((edit) => (edit.op === 'add' ? edit.values : undefined));
  expect(values?.[0]).toEqual({ position: [40, 120] });
  expect(values?.[2]).toEqual({ between: ['a-2', 'b-2'], queue: { kind: 'codel', target: '5 ms' } });
  expect(values?.[3]).toEqual({ from: 'a-2', to: 'b-2' });
  // One host alone has no links; a flow alone keeps its ends.
  expect(pasted(DRAWING, copied(DRAWING, [{ section: 'hosts', name: 'a' }]) ?? '')?.added).toEqual([{ section: 'hosts', name: 'a-2' }]);
  const flow = pasted(DRAWING, copied(DRAWING, [{ section: 'flow', name: 'voice' }]) ?? '')?.edits[0];
  expect(flow?.op === 'add' && flow.values).toEqual({ from: 'a', to: 'b' });
  for (const other of ['', 'a text', '{"trunkline": 3}', '{"trunkline": [{"section": "sweep", "name": "x", "keys": {}}]}', '[]']) expect(pasted(DRAWING, other)).toBeUndefined();
});
