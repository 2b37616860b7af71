/** The page inside a file in which a run was saved: the views of a run, without a server. On paper, and where this fails, the file is the report. */
import { mount } from 'svelte';
import { hold } from './api/client';
import App from './App.svelte';
import Definitions from './results/Definitions.svelte';
import RunPage from './results/RunPage.svelte';
import type { Page } from './routes';
import { applyTheme } from './ui/theme';
import './ui/theme.css';

const [ofReport, ofPage] = document.querySelectorAll('style');
const report = [...document.body.childNodes];
const page = document.createElement('div');
page.id = 'page';

const run: Page = { title: document.title.replace(/ · Trunkline$/, ''), section: 'runs', load: () => Promise.resolve({ default: RunPage }) };
const definitions: Page = { title: 'What figures mean', section: 'runs', load: () => Promise.resolve({ default: Definitions }) };

const answers = await unpack();
const start = [...answers.keys()].find((path) => /^\/runs\/\d+$/.test(path)) ?? '';
hold(answers);
applyTheme();
show(false);
mount(App, { target: page, props: { pages: { '/runs/:id': run, '/definitions': definitions, '/definitions/:metric': definitions }, start: () => start } });
addEventListener('beforeprint', () => show(true));
addEventListener('afterprint', () => show(false));

/** Shows the report, or the page in its place. */
function show(isReport: boolean) {
  document.body.replaceChildren(...(isReport ? report : [page]));
  if (ofReport) ofReport.media = isReport ? 'all' : 'not all';
  if (ofPage) ofPage.media = isReport ? 'not all' : 'all';
}

/** The server's answers: those that are packed, and the sounds of the report. */
async function unpack() {
  const packed = decoded(document.getElementById('saved')?.textContent ?? '');
  const bytes = new Uint8Array(await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer());
  const first = 4 + new DataView(bytes.buffer).getUint32(0, true);
  const places = JSON.parse(new TextDecoder().decode(bytes.subarray(4, first))) as [path: string, from: number, to: number, base?: string | null][];
  const found = new Map<string, Uint8Array<ArrayBuffer>>();
  for (const [path, from, to, base] of places) {
    const body = bytes.subarray(first + from, first + to);
    found.set(path, base == null ? body : differing(body, found.get(base) ?? body));
  }
  for (const { dataset, src } of document.querySelectorAll('audio')) found.set(dataset['path'] ?? '', decoded(src.slice(src.indexOf(',') + 1)));
  return found;
}

/** An answer that is stored as its difference from another one. */
function differing(difference: Uint8Array, base: Uint8Array) {
  const answer = new Uint8Array(difference.length);
  for (let i = 0; i < answer.length; i += 1) answer[i] = (difference[i] as number) ^ (base[i] as number);
  return answer;
}

function decoded(base64: string) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
