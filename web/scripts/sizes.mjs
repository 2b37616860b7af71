// Prints what a browser loads first, compressed: the shell with the files that it names, and each route on top of it.
// Exits with 1 when the start page takes more than the budget.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const BUDGET = 300_000;
const dist = process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), '..', 'dist');
const size = (file) => gzipSync(readFileSync(join(dist, file)), { level: 9 }).length;
const references = (text) => [...text.matchAll(/["'(](?:\.\/)?(?:assets\/)?([\w.-]+\.(?:js|css))["')]/g)].map((found) => `assets/${found[1]}`);

/** The files that `file` loads at once: its static imports, and theirs. */
function loaded(file, into = new Set()) {
  if (into.has(file)) return into;
  into.add(file);
  const text = readFileSync(join(dist, file), 'utf8');
  for (const found of text.matchAll(/(?:from|import)\s*["']\.\/([\w.-]+\.js)["']/g)) loaded(`assets/${found[1]}`, into);
  return into;
}

const sum = (files) => [...files].reduce((total, file) => total + size(file), 0);
const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1).padStart(7)} kB`;

const page = readFileSync(join(dist, 'index.html'), 'utf8');
const shell = new Set(['index.html']);
for (const file of references(page)) for (const each of file.endsWith('.js') ? loaded(file) : [file]) shell.add(each);
console.log(`\nshell          ${kilobytes(sum(shell))}   compressed, ${shell.size} files`);

// What Vite preloads with a dynamic import stands in the entry's table of files.
const entry = references(page).find((file) => file.endsWith('.js'));
const text = readFileSync(join(dist, entry), 'utf8');
const table = JSON.parse(text.match(/m\.f\s*\|\|\s*\(m\.f\s*=\s*(\[[^\]]*\])/)?.[1] ?? '[]');
let start = 0;
for (const found of text.matchAll(/import\([`"']\.\/((?:[A-Z]\w*)-[\w-]+\.js)[`"']\)\s*,\s*__vite__mapDeps\(\[([\d,]*)\]\)/g)) {
  const files = new Set(shell);
  loaded(`assets/${found[1]}`, files);
  for (const index of found[2].split(',').filter(Boolean)) {
    const file = table[Number(index)]?.replace(/^\.?\//, '');
    if (file) for (const each of file.endsWith('.js') ? loaded(file) : [file]) files.add(each);
  }
  const name = found[1].split('-')[0];
  if (name === 'Editor') start = sum(files);
  console.log(`${name.padEnd(14)} ${kilobytes(sum(files))}   with the shell, ${files.size} files`);
}
if (start > BUDGET) {
  console.error(`The start page takes ${start} bytes compressed; the budget is ${BUDGET}.`);
  process.exit(1);
}
