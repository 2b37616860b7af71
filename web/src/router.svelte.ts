/** Routes behind the `#`: which page is shown, with the parts of its address. */

export interface Route {
  /** The pattern that matched, such as `/runs/:id`. */
  pattern: string;
  /** What stood for `:id` and its like. */
  params: Record<string, string>;
  /** What stood after `?`. */
  query: URLSearchParams;
}

/**
 * Finds the first of `patterns` that matches `hash` (`#/runs/12?tab=figures`). A part `:name` stands for anything but a
 * slash.
 */
export function match(patterns: readonly string[], hash: string): Route | undefined {
  const [path = '', query = ''] = split(hash.replace(/^#/, ''));
  const parts = path.split('/').filter(Boolean);
  for (const pattern of patterns) {
    const wanted = pattern.split('/').filter(Boolean);
    if (wanted.length !== parts.length) continue;
    const params: Record<string, string> = {};
    const matches = wanted.every((part, index) => {
      const given = parts[index] ?? '';
      if (!part.startsWith(':')) return part === given;
      const decoded = decode(given);
      if (decoded === undefined) return false;
      params[part.slice(1)] = decoded;
      return true;
    });
    if (matches) return { pattern, params, query: new URLSearchParams(query) };
  }
  return undefined;
}

/** Goes to a page: `go('/runs/12')`. */
export function go(path: string): void {
  location.hash = `#${path}`;
}

/** Puts another address in place of this one, without a step in the browser's history. */
export function replace(path: string): void {
  history.replaceState(null, '', `#${path}`);
  router.hash = location.hash;
}

class Router {
  hash = $state(typeof location === 'undefined' ? '' : location.hash);
}

/** The address now; reading it in a component follows it. */
export const router = new Router();

if (typeof addEventListener !== 'undefined') {
  addEventListener('hashchange', () => {
    router.hash = location.hash;
  });
}

function split(text: string): [string, string] {
  const at = text.indexOf('?');
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
