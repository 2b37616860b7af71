/** Light, dark, or as the system says: chosen once, kept in this browser, applied to the root element. */
export { seriesVariable } from './series';

export type ThemeChoice = 'system' | 'light' | 'dark';

const KEY = 'trunkline.theme';
const dark = matchMedia('(prefers-color-scheme: dark)');
const watchers = new Set<() => void>();
let choice: ThemeChoice = read();

/** What has been chosen. */
export function themeChoice(): ThemeChoice {
  return choice;
}

/** Chooses, keeps and applies a theme. */
export function chooseTheme(next: ThemeChoice): void {
  choice = next;
  try {
    if (next === 'system') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, next);
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
  applyTheme();
}

/** Puts the theme that holds now on the root element. */
export function applyTheme(): void {
  const now = choice === 'system' ? (dark.matches ? 'dark' : 'light') : choice;
  document.documentElement.dataset['theme'] = now;
  for (const watcher of watchers) watcher();
}

/** Calls `watcher` whenever colours have changed (what draws on a canvas reads them anew). Returns how to stop. */
export function onTheme(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/** The value of a CSS variable now, such as `--accent`. */
export function themeColour(variable: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}

function read(): ThemeChoice {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === 'light' || kept === 'dark' ? kept : 'system';
  } catch {
    return 'system';
  }
}

dark.addEventListener('change', applyTheme);
