import { beforeEach, describe, expect, test, vi } from 'vitest';

/** Storage with so much room, in characters. */
class Store {
  private items = new Map<string, string>();
  constructor(private room = Infinity) {}
  get length() {
    return this.items.size;
  }
  setRoom = (room: number) => void (this.room = room);
  key = (index: number) => [...this.items.keys()][index] ?? null;
  getItem = (key: string) => this.items.get(key) ?? null;
  removeItem = (key: string) => void this.items.delete(key);
  setItem = (key: string, value: string) => {
    const others = [...this.items].filter(([other]) => other !== key).reduce((sum, [, text]) => sum + text.length, 0);
    if (others + value.length > this.room) throw new DOMException('full', 'QuotaExceededError');
    this.items.set(key, value);
  };
}

/** A window of the browser: its own module and session, and what it locks until it is closed. */
async function window(local: Store, locked: Set<string>, session = new Store(), hasLocks = true) {
  const own = new Set<string>();
  const request = (name: string, _: object, granted: (lock: object | null) => Promise<void> | undefined) => {
    const isFree = !locked.has(name);
    if (isFree) locked.add(name), own.add(name);
    return Promise.resolve(granted(isFree ? {} : null));
  };
  vi.stubGlobal('localStorage', local);
  vi.stubGlobal('sessionStorage', session);
  const query = () => Promise.resolve({ held: [...locked].map((name) => ({ name })) });
  vi.stubGlobal('navigator', hasLocks ? { locks: { request, query } } : {});
  vi.resetModules();
  const files = await import('../src/editor/files');
  return { ...files, session, close: () => own.forEach((name) => locked.delete(name)) };
}

describe('drafts', () => {
  let local: Store;
  let locked: Set<string>;
  beforeEach(() => {
    local = new Store();
    locked = new Set();
    local.setItem('trunkline.draft.old', JSON.stringify({ text: 'old', name: 'old.toml', at: 1 }));
    local.setItem('trunkline.draft.new', JSON.stringify({ text: 'new', name: 'new.toml', at: 2 }));
  });

  test('a new window takes the newest over: starts make no drafts', async () => {
    for (let start = 0; start < 50; start++) {
      const { claimDraft, keepDraft, close } = await window(local, locked);
      const draft = await claimDraft();
      expect(draft?.text).toBe('new');
      keepDraft(draft!);
      close();
    }
    expect(local.length).toBe(2);
  });

  test('what another window edits is copied', async () => {
    await (await window(local, locked)).claimDraft();
    const second = await window(local, locked);
    expect((await second.claimDraft())?.text).toBe('new');
    second.keepDraft({ text: 'newer', name: 'new.toml' });
    expect(second.drafts().map(({ text }) => text)).toEqual(['newer', 'new', 'old']);
  });

  test('a copy that nobody changes is not kept, and is not taken for the newest', async () => {
    await (await window(local, locked)).claimDraft();
    const second = await window(local, locked);
    const copy = await second.claimDraft();
    // The first window edits it.
    local.setItem('trunkline.draft.new', JSON.stringify({ text: 'edited', name: 'new.toml', at: 3 }));
    second.keepDraft(copy!);
    expect(second.drafts().map(({ text }) => text)).toEqual(['edited', 'old']);
    second.keepDraft({ ...copy!, name: 'renamed.toml' });
    expect(second.drafts().map(({ text }) => text).toSorted()).toEqual(['edited', 'new', 'old']);
  });

  test('without locks, what is taken over is copied, and a window that is loaded again keeps its own', async () => {
    const first = await window(local, locked, new Store(), false);
    const draft = await first.claimDraft();
    expect(draft?.text).toBe('new');
    first.keepDraft({ ...draft!, text: 'newer' });
    expect(first.drafts().map(({ text }) => text)).toEqual(['newer', 'new', 'old']);
    const again = await window(local, locked, first.session, false);
    expect((await again.claimDraft())?.text).toBe('newer');
    expect(again.stored()).toBe(first.stored());
  });

  test('a draft that another window has open makes no room', async () => {
    const small = new Store(300);
    for (let at = 1; at <= 3; at++) small.setItem(`trunkline.draft.${at}`, JSON.stringify({ text: `${at}`.repeat(30), name: 'x', at }));
    locked.add('trunkline.draft.1');
    const { claimDraft, keepDraft, drafts } = await window(small, locked);
    await claimDraft();
    keepDraft({ text: 'b'.repeat(150), name: 'x' });
    expect(drafts().map(({ text }) => text[0])).toEqual(['b', '1']);
  });

  test('a window that is loaded again has its own, and a copied window a copy', async () => {
    const first = await window(local, locked);
    await first.claimDraft();
    first.close();
    const again = await window(local, locked, first.session);
    await again.claimDraft();
    expect(again.stored()).toBe('new');
    const copied = new Store();
    copied.setItem('trunkline.draft', 'new');
    const copy = await window(local, locked, copied);
    expect((await copy.claimDraft())?.text).toBe('new');
    expect(copy.stored()).not.toBe('new');
  });

  test('where there is no room, undo steps and then the oldest drafts make some', async () => {
    const small = new Store(300);
    for (let at = 1; at <= 3; at++) small.setItem(`trunkline.draft.${at}`, JSON.stringify({ text: `${at}`.repeat(30), name: 'x', at }));
    const { claimDraft, keepDraft, drafts } = await window(small, locked);
    await claimDraft();
    const history = { steps: [{ text: 'x'.repeat(300), name: '', what: '' }], at: 0 };
    keepDraft({ text: 'a'.repeat(30), name: 'x', history });
    expect(drafts().map(({ text, history }) => [text[0], history])).toEqual([['a', undefined], ['2', undefined], ['1', undefined]]);
    keepDraft({ text: 'b'.repeat(150), name: 'x', history });
    expect(drafts().map(({ text }) => text[0])).toEqual(['b', '2']);
    keepDraft({ text: 'c'.repeat(240), name: 'x', history });
    expect(drafts().map(({ text }) => text[0])).toEqual(['c']);
    keepDraft({ text: 'd'.repeat(400), name: 'x', history });
    expect(drafts().map(({ text }) => text[0])).toEqual(['c']);
    // As soon as there is room, the same text is kept.
    small.setRoom(900);
    keepDraft({ text: 'd'.repeat(400), name: 'x', history });
    expect(drafts().map(({ text }) => text[0])).toEqual(['d']);
  });
});
