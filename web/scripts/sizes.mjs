// Prints what a browser loads, compressed: the shell, and each page with it. Exits with 1 when the page where one starts takes
// more than the budget, with all that it loads later. Reads Vite's manifest and takes it away: it is not part of the page.
import { readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const BUDGET = 300_000;
const START = 'src/editor/Editor.svelte';
const dist = process.env.TRUNKLINE_DIST ?? join(dirname(fileURLToPath(import.meta.url)), '..', 'dist');
const manifest = JSON.parse(readFileSync(join(dist, '.vite/manifest.json'), 'utf8'));
rmSync(join(dist, '.vite'), { recursive: true });

const size = (file) => gzipSync(readFileSync(join(dist, file)), { level: 9 }).length;
const total = (files) => [...files].reduce((sum, file) => sum + size(file), 0);
const say = (name, files) => console.log(`${name.padEnd(16)} ${(total(files) / 1000).toFixed(1).padStart(7)} kB compressed, ${files.size} files`);

/** The files of a part of the page and of all that it imports at once. */
function files(key, into = new Set(), seen = new Set()) {
  if (seen.has(key)) return into;
  seen.add(key);
  const part = manifest[key];
  into.add(part.file);
  for (const style of part.css ?? []) into.add(style);
  for (const other of part.imports ?? []) files(other, into, seen);
  return into;
}

const shell = files('index.html', new Set(['index.html']));
say('shell', shell);
for (const key of manifest['index.html'].dynamicImports ?? []) say(key.split('/').pop().replace('.svelte', ''), files(key, new Set(shell)));

const everything = files(START, new Set(shell));
for (const key of manifest[START].dynamicImports ?? []) files(key, everything);
say('Editor and text', everything);
if (total(everything) > BUDGET) {
  console.error(`The start page takes ${total(everything)} bytes compressed; the budget is ${BUDGET}.`);
  process.exit(1);
}
