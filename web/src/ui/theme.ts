/** Light, dark, or as the system says: chosen once, kept in this browser, applied to the root element. */
import type { Plot } from './chart';
import { keep, kept } from './kept';

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
  keep(KEY, next === 'system' ? undefined : next);
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
  const choice = kept(KEY);
  return choice === 'light' || choice === 'dark' ? choice : 'system';
}

dark.addEventListener('change', applyTheme);

/** Shades parts of x over the height of a plot. */
export function shade({ context, x, top, height, ratio }: Plot, bands: readonly { from: number; to: number; colour: string }[]): void {
  for (const { from, to, colour } of bands) {
    context.fillStyle = `color-mix(in srgb, ${themeColour(colour)} 35%, transparent)`;
    context.fillRect(x(from), top, Math.max(x(to) - x(from), ratio), height);
  }
}
