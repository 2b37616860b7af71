import { describe, expect, test } from 'vitest';
import type { Drawing, FormKey } from '../src/api/types';
import { beside, border, curve, spread } from '../src/editor/canvas/geometry';
import { graph } from '../src/editor/canvas/graph';
import { rangeOf } from '../src/editor/form/units';
import { History } from '../src/editor/history';
import { arranged, isName, itemOf, mended, messageAt, placeProblems, sweptBy, typed } from '../src/editor/items';
import { quantityOf } from '../src/editor/form/quantity';
import { lineOf, offsetOf, pathAt } from '../src/editor/locate';
import { axisText, axisValue, condition, chosen, limitable, listed, sweepable, unlisted } from '../src/editor/sweeps';
import { difference } from '../src/editor/text/difference';

describe('the history', () => {
  test('goes back and forth', () => {
    const history = new History('a');
    expect(history.undo()).toBeUndefined();
    history.push('b', 'adding a host', 0);
    history.push('c', 'moving it', 10);
    expect(history.undoable).toBe('moving it');
    expect(history.undo()?.text).toBe('b');
    expect(history.redoable).toBe('moving it');
    expect(history.undo()?.text).toBe('a');
    expect(history.undo()).toBeUndefined();
    expect(history.redo()?.text).toBe('b');
    history.push('d', 'something else', 20);
    expect(history.redo()).toBeUndefined();
    expect(history.undo()?.text).toBe('b');
  });

  test('gathers what is typed at a stretch, and nothing else', () => {
    const history = new History('');
    history.push('n', 'typing', 0);
    history.push('na', 'typing', 300);
    history.push('nam', 'typing', 900);
    history.push('name', 'typing', 5000);
    expect(history.undo()?.text).toBe('nam');
    expect(history.undo()?.text).toBe('');
    history.push('x', 'typing', 5001);
    history.push('xy', 'moving b', 5002);
    history.push('xyz', 'typing', 5003);
    expect(history.undo()?.text).toBe('xy');
    expect(history.undo()?.text).toBe('x');
  });

  test('long typing without a pause makes several steps, and so does each line', () => {
    const history = new History('');
    for (let at = 0; at <= 8000; at += 500) history.push('x'.repeat(1 + at / 500), 'typing', at);
    expect(history.undo()?.text.length).toBeGreaterThan(8);
    const lines = new History('');
    for (const [at, text] of ['a', 'ab', 'ab\n', 'ab\nc'].entries()) lines.push(text, 'typing', at * 100);
    expect([lines.undo()?.text, lines.undo()?.text]).toEqual(['ab', '']);
  });

  test('the same text is no step', () => {
    const history = new History('a');
    history.push('a', 'nothing', 0);
    expect(history.undoable).toBeUndefined();
  });

  test('typing after an undo does not change what the redo was', () => {
    const history = new History('');
    history.push('a', 'typing', 0);
    history.push('b', 'a step', 1);
    history.undo();
    history.push('ab', 'typing', 2);
    expect(history.undo()?.text).toBe('a');
  });
});

const FILE = `# A comment with [brackets] and = signs
name = "voice # not a comment"
duration = "30 s"

[hosts]
berlin = {}
ottawa = { agent = "ottawa:4781", position = [
  10, # ten
  20,
] }

[link.trunk]
between = ["berlin", "ottawa"]
queue = { kind = "fifo", limit = "64 KiB" }

[link.trunk.backward]
rate = "1 Mbit/s"

[sweep]
"flow.voice.count" = [1, 2]
flow.voice.channels = [1]

[flow.voice]
source.kind = "voice"
text = """
[not.a.table]
"""
to = 'ottawa'`;

/** Places of some keys of the file, as the server finds them. */
const PLACES = ([
  [['hosts'], /\[hosts\][^]*?\] \}/],
  [['hosts', 'berlin'], /berlin = \{\}/],
  [['link', 'trunk'], /\[link\.trunk\]\n[^]*?KiB" \}/],
  [['link', 'trunk', 'queue'], /queue = .*/],
  [['link', 'trunk', 'queue', 'limit'], /limit = "64 KiB"/],
  [['flow', 'voice', 'source', 'kind'], /source\.kind = "voice"/],
] as const).map(([path, pattern]) => {
  const [found = ''] = pattern.exec(FILE) ?? [];
  return { path: [...path], from: FILE.indexOf(found), to: FILE.indexOf(found) + found.length };
});

describe('places in the text', () => {
  test.each([
    ['[link.trunk]', ['link', 'trunk']],
    ['64 KiB', ['link', 'trunk', 'queue', 'limit']],
    ['{ kind = "fifo"', ['link', 'trunk', 'queue']],
    ['# ten', ['hosts']],
    ['name = ', []],
  ])('%s', (needle, path) => {
    expect(pathAt(FILE.indexOf(needle), PLACES)).toEqual(path);
  });

  test('and back', () => {
    const line = (needle: string) => FILE.slice(0, FILE.indexOf(needle)).split('\n').length;
    expect(lineOf(FILE, ['link', 'trunk'], PLACES)).toBe(line('[link.trunk]'));
    // A flow that is only keys with dots.
    expect(lineOf(FILE, ['flow', 'voice'], PLACES)).toBe(line('source.kind'));
    expect(lineOf(FILE, ['nothing'], PLACES)).toBeUndefined();
  });

  test('columns count characters', () => {
    expect(offsetOf('a\n𝄞b', 2, 2)).toBe(4);
    expect(offsetOf('a\nb', 9, 1)).toBe(3);
    expect(offsetOf('ab\ncd', 1, 9)).toBe(2);
  });
});

const DRAWING: Drawing = {
  title: 't',
  hosts: ['a', 'b', 'c'].map((name, index) => ({ name, x: index * 320, y: 60, placed: false, count: 1, keys: {} })),
  links: [
    { name: 'one', between: ['a', 'b'], medium: 'serial', label: '2 Mbit/s', keys: { between: ['a', 'b'], rate: '2 Mbit/s' } },
    { name: 'two', between: ['b', 'a'], medium: 'serial', label: '', keys: {} },
    { name: 'ring', between: ['a', 'b', 'c'], medium: 'fddi', label: '', keys: { medium: 'fddi' } },
    { name: 'broken', between: ['a', 'nobody'], medium: 'serial', label: '', keys: {} },
  ],
  flows: [
    { name: 'there', from: 'a', to: ['b'], transport: 'udp', source: 'voice', count: 8, label: '', keys: { source: { kind: 'voice', samples: 80 } } },
    { name: 'too', from: 'a', to: ['b'], transport: 'tcp', source: 'bulk', count: 1, label: '', keys: {} },
    { name: 'many', from: 'a', to: ['b', 'c', 'nobody'], transport: 'udp', source: 'voice', count: 1, label: '', keys: {} },
  ],
  bundles: [{ name: 'all', flows: ['there', 'too'], keys: {} }],
  experiment: {},
  sweep: [{ key: 'flow.there.count, flow.too.count', values: [1, 2, 4], shown: ['1', '2', '4'] }],
  limits: [],
};

describe('the drawing', () => {
  const { nodes, edges } = graph(DRAWING, [{ section: 'flow', name: 'many' }], []);

  test('has hosts and shared media as nodes', () => {
    expect(nodes.map((node) => node.id)).toEqual(['host:a', 'host:b', 'host:c', 'medium:ring']);
  });

  test('a shared medium says what lines say: losses, jitter, and what is swept', () => {
    const links = DRAWING.links.map((link) => (link.name === 'ring' ? { ...link, label: '100 Mbit/s', keys: { ...link.keys, loss: '2 %' } } : link));
    const swept = graph({ ...DRAWING, links, sweep: [{ key: 'link.ring.rate', values: ['1 Mbit/s'], shown: ['1 Mbit/s'] }] }, [], []);
    const ring = swept.nodes.find((node) => node.id === 'medium:ring');
    expect(ring?.data).toMatchObject({ label: '100 Mbit/s · loss 2 %', swept: ['ring.rate: 1 Mbit/s'], problems: 0 });
    expect(ring?.ariaLabel).toBe('fddi ring of a, b, c; 100 Mbit/s · loss 2 %, swept ring.rate: 1 Mbit/s');
  });

  test('leaves out what leads nowhere', () => {
    expect(edges.some((edge) => edge.id.startsWith('link:broken'))).toBe(false);
    expect(edges.filter((edge) => edge.id.startsWith('flow:many')).map((edge) => edge.target)).toEqual(['host:b', 'host:c']);
  });

  test('keeps things between the same hosts apart', () => {
    const bends = edges.filter((edge) => edge.source.startsWith('host:') && edge.target === 'host:b').map((edge) => edge.data?.bend);
    expect(new Set(bends).size).toBe(bends.length);
  });

  test('marks what is selected, and says bundles', () => {
    expect(edges.filter((edge) => edge.selected).map((edge) => edge.id)).toEqual(['flow:many:0', 'flow:many:1']);
    expect(edges.find((edge) => edge.id === 'flow:there:0')?.data).toMatchObject({ bundles: ['all'] });
  });

  test('a bundle marks its flows', () => {
    const { edges } = graph(DRAWING, [{ section: 'bundle', name: 'all' }], []);
    expect(edges.filter((edge) => edge.selected).map((edge) => edge.id)).toEqual(['flow:there:0', 'flow:too:0']);
  });

  test('labels are beside their lines', () => {
    const box = (x: number, y: number) => ({ x, y, width: 100, height: 40 });
    const at = (to: { x: number; y: number }) => beside(curve(box(0, 0), box(to.x, to.y), 0), box(0, 0), box(to.x, to.y), 120, 30);
    expect(at({ x: 400, y: 0 })).toEqual({ x: 200, y: 18 });
    expect(at({ x: -400, y: 0 })).toEqual({ x: -200, y: 18 });
    expect(at({ x: 0, y: 400 })).toEqual({ x: 63, y: 200 });
    expect(at({ x: 0, y: -400 })).toEqual({ x: 63, y: -200 });
  });

  test('lines go from border to border', () => {
    const a = { x: 0, y: 0, width: 100, height: 40 };
    const b = { x: 300, y: 0, width: 100, height: 40 };
    const straight = curve(a, b, 0);
    expect(straight.end).toEqual({ x: 250, y: 0 });
    expect(straight.angle).toBe(0);
    expect(straight.middle).toEqual({ x: 150, y: 0 });
    expect(curve(a, b, 40).middle.y).toBeGreaterThan(0);
    expect(border(a, { x: 0, y: 0 })).toEqual({ x: 0, y: 0 });
    expect(curve(a, a, 10).path).not.toMatch(/NaN/);
    expect([0, 1, 2, 3].map((index) => spread(index, 10))).toEqual([0, 10, -10, 20]);
  });
});

const key = (more: Partial<FormKey>): FormKey => ({ name: 'k', doc: '', required: false, share: false, shape: 'text', ...more });

describe('forms', () => {
  test('numbers are numbers where the key takes them', () => {
    expect(typed(' 8 ', key({ shape: 'integer' }))).toBe(8);
    expect(typed('0.01', key({ shape: 'ratio' }))).toBe(0.01);
    expect(typed('1 %', key({ shape: 'ratio' }))).toBe('1 %');
    expect(typed('10', key({ shape: 'integer', name: 'x' }))).toBe(10);
    expect(typed('eight', key({ shape: 'integer' }))).toBe('eight');
  });

  test.each([
    ['1.5Mbps', 'rate', undefined, '1.5 Mbit/s'],
    ['64 kb/s', 'rate', undefined, '64 kbit/s'],
    ['10 MB/s', 'rate', undefined, '10 MB/s'],
    ['10 MBps', 'rate', undefined, '10 MBps'],
    ['2 mbit/s', 'rate', undefined, '2 Mbit/s'],
    ['20', 'rate', undefined, '20'],
    ['20', 'rate', '2 Mbit/s', '20 Mbit/s'],
    ['20', 'duration', undefined, '20 ms'],
    ['20', 'duration', '3 s', '20 s'],
    ['10 msec', 'duration', undefined, '10 ms'],
    ['10MS', 'duration', undefined, '10 ms'],
    ['160', 'bytes', undefined, '160 B'],
    ['a while', 'duration', undefined, 'a while'],
    ['5 parsec', 'duration', undefined, '5 parsec'],
    ['0', 'duration', undefined, '0 ms'],
    ['3M', 'rate', undefined, '3 Mbit/s'],
    ['1,5 Mbit/s', 'rate', undefined, '1.5 Mbit/s'],
    ['1.5 Mb/s', 'rate', undefined, '1.5 Mbit/s'],
    ['20ms', 'duration', undefined, '20 ms'],
    ['0,5 s', 'duration', undefined, '0.5 s'],
    [',5', 'duration', '2 min', '0.5 min'],
    ['10 minutes', 'duration', undefined, '10 min'],
    ['1 500 bytes', 'bytes', undefined, '1500 B'],
    ['1,500 B', 'bytes', undefined, '1,500 B'],
    ['64k', 'bytes', undefined, '64k'],
    ['160', 'sizes', '80 B', '160 B'],
    ['20 pkts', 'limit', undefined, '20 packets'],
    ['20', 'limit', '64 KiB', '20 KiB'],
    ['20', 'limit', undefined, '20 packets'],
    ['1,5%', 'ratio', undefined, '1.5 %'],
    ['5', 'ratio', undefined, '5 %'],
    ['0,01', 'ratio', undefined, 0.01],
    ['0.5', 'ratio', '2 %', '0.5 %'],
    ['2,5', 'number', undefined, 2.5],
  ] as const)('%s as a %s is written as people mean it', (text, shape, before, written) => {
    const units = { rate: ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s'], duration: ['ns', 'us', 'ms', 's', 'min', 'h'], bytes: ['B', 'KiB', 'MiB'], sizes: undefined, limit: undefined, ratio: undefined, number: undefined }[shape];
    expect(typed(text, key({ shape, units }), before)).toBe(written);
  });

  test.each([
    ['10 MB/s', 'rate', '80 Mbit/s'],
    ['20', 'rate', '20 Mbit/s'],
    ['1,500 B', 'bytes', '1500 B'],
    ['64k', 'bytes', '64 KiB'],
    ['3m', 'duration', '3 min'],
    ['a while', 'duration', undefined],
  ] as const)('what may be meant by %s as a %s is suggested', (text, shape, meant) => {
    expect(quantityOf(text, key({ shape }), undefined)?.text).toBe(meant);
  });

  test('a share in the place of a table is one', () => {
    expect(typed('5', key({ shape: 'one-of', share: true }))).toBe('5 %');
  });

  test('what is required, common or written comes first', () => {
    const keys = ['z', 'count', 'from', 'position', 'must'].map((name) => key({ name, required: name === 'must', shape: name === 'position' ? 'position' : 'text' }));
    const { first, more } = arranged(keys, 'flow', { position: [1, 2] });
    expect(first.map((each) => each.name)).toEqual(['from', 'count', 'must']);
    expect(more.map((each) => each.name)).toEqual(['z']);
    expect(arranged(keys, 'flow', { z: 1 }).more).toEqual([]);
  });

  test('a range in words', () => {
    expect(rangeOf(key({ min: '1 ms', max: '1 h', default: '1 s' }))).toBe('1 ms to 1 h · default 1 s');
    expect(rangeOf(key({ required: true, units: ['B', 'KiB'] }))).toBe('in B, KiB · required');
  });

  test('problems find their fields', () => {
    const offset = FILE.indexOf('64 KiB');
    const before = FILE.slice(0, offset);
    const line = before.split('\n').length;
    const column = offset - before.lastIndexOf('\n');
    const [placed] = placeProblems([{ message: 'too small', line, column, end_line: line, end_column: column + 6 }], FILE, PLACES);
    expect(placed?.path).toEqual(['link', 'trunk', 'queue', 'limit']);
    const all = placed ? [placed] : [];
    expect(messageAt(all, ['link', 'trunk', 'queue', 'limit'], true)).toBe('too small');
    expect(messageAt(all, ['link', 'trunk', 'queue'], false)).toBeUndefined();
    expect(messageAt(all, ['link', 'trunk', 'queue'], true)).toBe('too small');
    expect(messageAt(all, ['link', 'trunk', 'rate'], true)).toBeUndefined();
  });

  test.each([
    ['"flow.vocie.loss" = "< 1 %"', 'there is no flow `vocie`; did you mean `voice`?', '"flow.voice.loss" = "< 1 %"'],
    ['"flow.voice.latency.p9" = "< 1 s"', 'a flow has no figure `latency.p9`; did you mean `latency.p99`?', '"flow.voice.latency.p99" = "< 1 s"'],
    ['"bundle.trunk.upd.loss" = "< 1 %"', 'the bundle `trunk` has no transport `upd`; did you mean `udp`?', '"bundle.trunk.udp.loss" = "< 1 %"'],
    ['"flow.vocie.count, flow.a.count" = [1]', 'unknown key `flow.vocie.count`; did you mean `flow.voice`?', '"flow.voice.count, flow.a.count" = [1]'],
    ['"flow.voice.cont" = [1]', 'unknown key `flow.voice.cont`; did you mean `flow.voice.count`?', '"flow.voice.count" = [1]'],
    ['tcpp = "16 KiB"', 'unknown key `tcpp` in the transport `tcp`; did you mean `tcp-x`?', 'tcp-x = "16 KiB"'],
    ["'upd'", 'there is no transport `upd`; did you mean `udp`?', "'udp'"],
    // Which one is meant is not certain, or nothing of the message stands there.
    ['"flow.flow.loss" = "< 1 %"', 'there is no flow `flow`; did you mean `flows`?', undefined],
    ['"a-vocie" = 1', 'there is no flow `vocie`; did you mean `voice`?', undefined],
    ['"vocie" = 1', 'there is no flow `vocie`; known: `voice`', undefined],
  ])('in %s the suggestion replaces the wrong word only', (line, message, expected) => {
    const text = `# 𝄞\n${line}`;
    const key = line.split(' = ')[0] ?? '';
    const found = mended(text, { message, line: 2, column: 1, end_line: 2, end_column: key.length + 1 });
    expect(found && text.slice(0, found.from) + found.text + text.slice(found.to)).toBe(expected && `# 𝄞\n${expected}`);
  });

  test('names are what the file takes', () => {
    expect(['Voice', 'a-1', 'B_2'].every(isName)).toBe(true);
    expect(['', 'a b', 'é', 'a.b'].some(isName)).toBe(false);
  });

  test('keys of a sweep or a limit lead to their flow', () => {
    expect(itemOf(['sweep', 'flow.there.count'], DRAWING)).toEqual({ section: 'flow', name: 'there' });
    expect(itemOf(['flow', 'nobody'], DRAWING)).toBeUndefined();
    expect(itemOf(['duration'], DRAWING)).toBeUndefined();
    expect(sweptBy(DRAWING, ['flow', 'too', 'count'])?.values).toEqual([1, 2, 4]);
    expect(sweptBy(DRAWING, ['flow', 'many', 'count'])).toBeUndefined();
  });
});

describe('swept values', () => {
  test.each([
    [[1, 2, 4], '1, 2, 4'],
    [['8 KiB', '16 KiB'], '8 KiB, 16 KiB'],
    [['udp', { kind: 'tcp', window: '32 KiB' }], 'udp, { kind = "tcp", window = "32 KiB" }'],
    [[['lan', 'a = b'], { kind: 'x', list: [1, { 'a b': true }] }], '["lan", "a = b"], { kind = "x", list = [1, { "a b" = true }] }'],
    [[true, false, 'true'], 'true, false, "true"'],
    [['a, b', 'say "x"', '', '12', 0.5], '"a, b", "say \\"x\\"", "", "12", 0.5'],
  ])('%j', (values, text) => {
    expect(listed(values)).toBe(text);
    expect(unlisted(text)).toEqual(values);
  });

  test('what is typed carelessly is understood', () => {
    expect(unlisted(' 1,2 ,, 4,')).toEqual([1, 2, 4]);
    expect(unlisted('{"kind": ')).toEqual(['{"kind":']);
    expect(unlisted('')).toEqual([]);
  });

  test.each([
    [{ from: '10 ms', to: '200 ms', step: '10 ms' }, '10 ms to 200 ms step 10 ms'],
    [{ from: 1, to: 64, factor: 2 }, '1 to 64 factor 2'],
    [{ from: '1 Mbit/s', to: '1 Gbit/s', points: 7, scale: 'logarithmic' }, '1 Mbit/s to 1 Gbit/s points 7 logarithmic'],
  ])('a range %j', (range, text) => {
    expect(axisText({ key: 'a', values: [], shown: [], range })).toBe(text);
    expect(axisValue(text)).toEqual(range);
  });

  test('swept quantities and those of limits have the units of the file', () => {
    expect(axisValue('10ms, 20, 0.1 sec', key({ shape: 'duration' }))).toEqual(['10 ms', '20 ms', '0.1 s']);
    expect(axisValue('1M to 8M factor 2', key({ shape: 'rate' }))).toEqual({ from: '1 Mbit/s', to: '8 Mbit/s', factor: 2 });
    expect(axisValue('1, 2', key({ shape: 'integer' }))).toEqual([1, 2]);
    expect(axisValue('fifo, {kind="fq-codel"}', key({ shape: 'one-of' }))).toEqual(['fifo', { kind: 'fq-codel' }]);
    const figure = (shape: 'duration' | 'ratio') => ({ name: '', doc: '', of: 'flow' as const, shape });
    expect(condition('<150msec', figure('duration'))).toBe('< 150 ms');
    expect(condition('< 1,5 %', figure('ratio'))).toBe('< 1.5 %');
    expect(condition('small', figure('ratio'))).toBe('small');
  });

  test('a list is no range', () => {
    expect(axisText({ key: 'a', values: [1, 'up to'], shown: [] })).toBe('1, up to');
    expect(axisValue('1, up to')).toEqual([1, 'up to']);
    expect(axisValue(' ')).toBeUndefined();
  });

  test('keys that can be swept', () => {
    const schema = {
      sections: [
        { name: 'experiment' as const, doc: '', keys: [key({ name: 'duration' }), key({ name: 'seed' })] },
        {
          name: 'flow' as const,
          doc: '',
          keys: [key({ name: 'source', shape: 'one-of', alternatives: [{ name: 'voice', doc: '', keys: [key({ name: 'samples' })] }] }), key({ name: 'count' })],
        },
      ],
    };
    const found = sweepable(schema, DRAWING);
    expect(found).toContain('duration');
    expect(found).not.toContain('seed');
    expect(found).toContain('flow.there.source.samples');
    expect(found).toContain('flow.too.count');
    expect(found).not.toContain('flow.too.source.samples');
  });
});

describe('limits', () => {
  test('are on figures of flows, of sinks where there are several, and of bundles', () => {
    const figure = (of: 'flow' | 'sink' | 'bundle' | 'transport', name: string) => ({ of, name, doc: '', shape: 'ratio' as const });
    const schema = {
      sections: [
        { name: 'limits' as const, doc: '', keys: [], figures: [figure('flow', 'loss'), figure('sink', 'late'), figure('bundle', 'fairness'), figure('transport', 'throughput.min')] },
      ],
    };
    const found = limitable(schema, DRAWING);
    expect(found).toContain('flow.there.loss');
    expect(found).not.toContain('flow.there.sink.b.late');
    expect(found).toContain('flow.many.sink.c.late');
    expect(found).toContain('bundle.all.fairness');
    expect(found).toContain('bundle.all.tcp.throughput.min');
    expect(found).not.toContain('bundle.all.sctp.throughput.min');
  });
});

describe('one of several', () => {
  const oneOf = key({ shape: 'one-of', default: 'fifo', alternatives: [{ name: 'fifo', doc: '', keys: [] }, { name: 'drr', aliases: ['fair'], doc: '', keys: [] }] });
  test.each([
    [undefined, 'fifo'],
    ['drr', 'drr'],
    ['fair', 'drr'],
    [{ kind: 'drr' }, 'drr'],
    ['1 %', undefined],
    [{}, undefined],
  ])('%j', (value, name) => {
    expect(chosen(oneOf, value)?.name).toBe(name);
  });
});

describe('two texts', () => {
  test.each([
    ['same', 'same', undefined],
    ['abc', 'abXc', { from: 2, to: 2, insert: 'X' }],
    ['aaa', 'aa', { from: 2, to: 3, insert: '' }],
    ['', 'new', { from: 0, to: 0, insert: 'new' }],
    ['one two', 'one 2 two', { from: 4, to: 4, insert: '2 ' }],
  ])('%j to %j', (before, after, change) => {
    expect(difference(before, after)).toEqual(change);
    if (change) expect(before.slice(0, change.from) + change.insert + before.slice(change.to)).toBe(after);
  });
});
