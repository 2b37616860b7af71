import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ExperimentDocument } from '../src/editor/document.svelte';
import { live } from '../src/ui/live.svelte';

/** A server that counts: every edit appends a line, a text with "broken" is not TOML, one with "wrong" has a problem. */
class Server {
  asked: { path: string; body: { text: string; edits?: { path: string[] }[] } }[] = [];
  /** Called before the answer to an edit goes out. */
  beforeEdit: () => void = () => undefined;
  down = false;

  readonly fetch = async (path: string, init: RequestInit): Promise<Response> => {
    if (this.down) throw new TypeError('fetch failed');
    const body = JSON.parse(String(init.body)) as { text: string; edits?: { path: string[] }[] };
    this.asked.push({ path: path.replace('/api/v1', ''), body });
    if (path.endsWith('/check')) return this.answer(this.checked(body.text));
    if (path.endsWith('/drawing')) return this.answer(this.drawn(body.text));
    this.beforeEdit();
    if (body.text.includes('broken')) return this.answer({ error: { message: 'the text is not TOML', kind: 'input' } }, 400);
    const text = `${body.text}${body.edits?.map((edit) => `${edit.path.join('.')}\n`).join('')}`;
    return this.answer({ text, ...this.checked(text), ...this.drawn(text) });
  };

  private checked(text: string) {
    const line = text.split('\n').findIndex((each) => each.includes('wrong')) + 1;
    return line > 0 ? { problems: [{ message: 'wrong', line, column: 1, end_line: line, end_column: 2 }] } : { problems: [], summary: { points: 1 }, backends: { sim: null } };
  }

  private drawn(text: string) {
    const at = text.indexOf('wrong');
    const places = at < 0 ? [] : [{ path: ['hosts', 'wrong'], from: at, to: at + 5 }];
    if (text.includes('broken')) return { problems: [], places };
    return { places, drawing: { title: text, hosts: [], links: [], flows: [], bundles: [], experiment: {}, sweep: [], limits: [] }, problems: [] };
  }

  private answer(body: unknown, status = 200): Response {
    return new Response(JSON.stringify(body), { status });
  }

  count(path: string): number {
    return this.asked.filter((each) => each.path === path).length;
  }
}

const set = (name: string) => [{ op: 'set' as const, path: [name], value: 1 }];

describe('the file that is edited', () => {
  let server: Server;
  let doc: ExperimentDocument;

  beforeEach(async () => {
    vi.useFakeTimers();
    server = new Server();
    vi.stubGlobal('fetch', server.fetch);
    vi.stubGlobal('location', { hash: '' });
    doc = new ExperimentDocument();
    doc.restore({ text: 'a\n', name: 'a.toml' });
    await vi.runAllTimersAsync();
    live.toasts = [];
  });

  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  test('what is restored is drawn, and is no step back', () => {
    expect(doc.drawing?.title).toBe('a\n');
    expect(doc.current).toBe(true);
    expect(doc.undoable).toBeUndefined();
    expect(doc.changed).toBe(false);
  });

  test('typing is checked once, when it pauses', async () => {
    const before = server.count('/check');
    for (const text of ['a\nb', 'a\nbc', 'a\nbcd']) {
      doc.type(text);
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(server.count('/check')).toBe(before);
    expect(doc.current).toBe(false);
    await vi.runAllTimersAsync();
    expect(server.count('/check')).toBe(before + 1);
    expect(doc.drawing?.title).toBe('a\nbcd');
    expect(doc.changed).toBe(true);
    doc.undo();
    expect(doc.text).toBe('a\n');
  });

  test('a text that is not TOML leaves the drawing as it was, marked', async () => {
    doc.type('broken');
    await vi.runAllTimersAsync();
    expect(doc.stale).toBe(true);
    expect(doc.drawing?.title).toBe('a\n');
    doc.undo();
    await vi.runAllTimersAsync();
    expect(doc.stale).toBe(false);
  });

  test('edits are made one after the other, each on the text of the one before', async () => {
    const all = [doc.edit(set('x'), 'x'), doc.edit(set('y'), 'y')];
    await vi.runAllTimersAsync();
    expect(await Promise.all(all)).toEqual([true, true]);
    expect(doc.text).toBe('a\nx\ny\n');
    expect(doc.undoable).toBe('y');
    doc.undo();
    expect(doc.text).toBe('a\nx\n');
    doc.redo();
    expect(doc.text).toBe('a\nx\ny\n');
  });

  test('what is typed while an edit is under way is not lost', async () => {
    let typed = false;
    server.beforeEdit = () => {
      if (!typed) doc.type('typed\n');
      typed = true;
    };
    const done = doc.edit(set('x'), 'x');
    await vi.runAllTimersAsync();
    expect(await done).toBe(true);
    expect(doc.text).toBe('typed\nx\n');
    expect(server.count('/edit')).toBe(2);
  });

  test('an edit that cannot be made changes nothing, is told, and does not stop the next', async () => {
    doc.type('broken');
    await vi.runAllTimersAsync();
    const done = doc.edit(set('x'), 'x');
    await vi.advanceTimersByTimeAsync(1);
    expect(await done).toBe(false);
    expect(doc.text).toBe('broken');
    expect(live.toasts.map((toast) => toast.text)).toEqual(['the text is not TOML']);
    doc.undo();
    const next = doc.edit(set('y'), 'y');
    await vi.runAllTimersAsync();
    expect(await next).toBe(true);
    expect(doc.text).toBe('a\ny\n');
  });

  test('problems have a place', async () => {
    doc.type('[hosts]\nwrong = 1\n');
    await vi.runAllTimersAsync();
    expect(doc.problems).toMatchObject([{ message: 'wrong', path: ['hosts', 'wrong'] }]);
    expect(doc.summary).toBeUndefined();
  });

  test('a server that is gone is told, and forgotten when it is back', async () => {
    server.down = true;
    doc.type('b\n');
    await vi.runAllTimersAsync();
    expect(doc.offline).toMatch(/does not answer/);
    server.down = false;
    doc.type('c\n');
    await vi.runAllTimersAsync();
    expect(doc.offline).toBeUndefined();
    expect(doc.drawing?.title).toBe('c\n');
  });

  test('opening another file can be taken back', async () => {
    doc.open('other\n', 'other.toml');
    await vi.runAllTimersAsync();
    expect(doc.changed).toBe(false);
    expect(doc.name).toBe('other.toml');
    doc.undo();
    expect(doc.text).toBe('a\n');
    expect(doc.name).toBe('a.toml');
  });
});
