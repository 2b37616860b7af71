/** What a browser keeps. Where it keeps nothing (without storage, or without room), nothing fails. */

type Storage = 'localStorage' | 'sessionStorage';

export function kept(key: string, where: Storage = 'localStorage'): string | undefined {
  try {
    return globalThis[where].getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Keeps a value, or removes it if there is none. Returns whether that was possible. */
export function keep(key: string, value: string | undefined, where: Storage = 'localStorage'): boolean {
  try {
    if (value === undefined) globalThis[where].removeItem(key);
    else globalThis[where].setItem(key, value);
    return true;
  } catch {
    return false;
  }
}
