// Writes the types of the API: those of its objects that the page names, with all that these consist of. Types of addresses are
// left out, and how many bits a number has: JavaScript has one kind.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';

const source = new URL('../src/', import.meta.url);
const target = new URL('api/schema.d.ts', source);
const document = JSON.parse(
  readFileSync(new URL('../../crates/server/openapi.json', import.meta.url), 'utf8'),
  (key, value) => (key === 'format' && typeof value === 'string' ? undefined : value),
);
const { schemas } = document.components;

const needed = new Set();
function need(name) {
  if (!(name in schemas) || needed.has(name)) return;
  needed.add(name);
  for (const [, inner] of JSON.stringify(schemas[name]).matchAll(/#\/components\/schemas\/(\w+)/g)) need(inner);
}
for (const file of readdirSync(source, { recursive: true })) {
  if (!/(?<!schema\.d)\.(ts|svelte)$/.test(file)) continue;
  for (const [, name] of readFileSync(new URL(file, source), 'utf8').matchAll(/(?:Schemas|\['schemas'\])\['(\w+)'\]/g)) need(name);
}
document.components.schemas = Object.fromEntries(Object.entries(schemas).filter(([name]) => needed.has(name)));
writeFileSync(target, COMMENT_HEADER + astToString(await openapiTS({ ...document, paths: {} })));
