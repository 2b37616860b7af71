/** What all tests use: a page that reports what it asks of other sites and what goes wrong in it, and short cuts of the API. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test as base, type APIRequestContext, type Page, type Request } from '@playwright/test';

export { expect };

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface Violation {
  id: string;
  help: string;
  nodes: { target: unknown[]; failureSummary?: string }[];
}

const output = join(dirname(fileURLToPath(import.meta.url)), 'output');

/** Two hosts, a line, and voices beside a bulk transfer: some seconds of simulation. */
export function experiment(name: string, { seed = 7, rate = '1594 kbit/s', seconds = 20, repetitions = 3 } = {}): string {
  return `name = "${name}"
duration = "${seconds} s"
repetitions = ${repetitions}
seed = ${seed}

[hosts]
berlin = {}
ottawa = {}

[link.trunk]
between = ["berlin", "ottawa"]
rate = "${rate}"
delay = "51.5 ms"
queue = { kind = "round-robin", quantum = "64 B" }

[flow.voice]
from = "berlin"
to = "ottawa"
transport = "udp"
source = { kind = "voice", samples = 80 }     # 80 B every 10 ms

[flow.bulk]
from = "berlin"
to = "ottawa"
transport = { kind = "tcp", window = "16 KiB" }
source = { kind = "bulk", message = "8 KiB" }

[sweep]
"flow.voice.count" = [1, 6]

[limits]
"flow.voice.loss" = "< 1 %"
"flow.voice.latency.p999" = "< 150 ms"
`;
}

/** The address of the server, without a slash at its end. */
export function server(): string {
  const url = process.env.TRUNKLINE_URL;
  if (!url) throw new Error('no server: TRUNKLINE_URL is not set');
  return url.replace(/\/$/, '');
}

/** A page of the application. */
export function at(path: string): string {
  return `${server()}/#${path}`;
}

/** Every view, by a name: some are of two runs. */
export function routes(first: number, second: number): Record<string, string> {
  return {
    start: '/start', draw: '/edit', runs: '/runs', run: `/runs/${first}`, figures: `/runs/${first}?tab=figures`, latency: `/runs/${first}?tab=latency`, moment: `/runs/${first}?tab=latency&point=1&flow=voice&at=1&from=0.5&to=1.5`,
    distribution: `/runs/${first}?tab=distribution`, links: `/runs/${first}?tab=links`, sound: `/runs/${first}?tab=sound`, file: `/runs/${first}?tab=file`, downloads: `/runs/${first}?tab=downloads`,
    lacking: '/runs/999999', job: '/jobs/none', nowhere: '/nowhere', login: '/login', compare: `/compare/${first}/${second}`, definitions: '/definitions/latency_mean', papers: '/papers', study: '/papers/schiavoni2013', advise: '/advise', plan: '/plan', agents: '/agents', paths: '/paths', path: '/paths/home', docs: '/docs/metrics.html',
  };
}

/** The address of a view. */
export function address(path: string): string {
  return path.startsWith('/docs/') ? server() + path : at(path);
}

/** Saves what is seen, for people to look at. */
export async function picture(page: { screenshot: (options: { path: `${string}.png` }) => Promise<unknown> }, name: string): Promise<void> {
  mkdirSync(output, { recursive: true });
  await page.screenshot({ path: `${output}/${name}.png` });
}

/** What axe finds. */
export async function read(page: { evaluate: (what: string | (() => unknown)) => Promise<unknown> }, name: string): Promise<string[]> {
  await page.evaluate(axe);
  const violations = (await page.evaluate(async () => {
    const run = (window as unknown as { axe: { run: (context: Document, options: object) => Promise<{ violations: unknown[] }> } }).axe;
    return (await run.run(document, { resultTypes: ['violations'] })).violations;
  })) as Violation[];
  return violations.map(({ id, help, nodes }) => `${name}: ${id}: ${help}: ${nodes.slice(0, 3).map((node) => node.target.join(' ')).join('; ')}`);
}

/** The text of an example that the server has. */
export async function example(request: APIRequestContext, name: string): Promise<string> {
  const examples = (await (await request.get(`${server()}/api/v1/examples`)).json()) as { name: string; text: string }[];
  const found = examples.find((one) => one.name === name);
  if (!found) throw new Error(`no example ${name}`);
  return found.text;
}

/** Begins a run and says which job and run it is. */
export async function begin(request: APIRequestContext, text: string, backend = 'sim'): Promise<{ job: string }> {
  const response = await request.post(`${server()}/api/v1/runs`, { data: { text, backend } });
  expect(response.ok(), await response.text()).toBe(true);
  return (await response.json()) as { job: string };
}

/** Waits for the end of a job; says which run it wrote. */
export async function finished(request: APIRequestContext, job: string, patience = 100_000): Promise<number> {
  const until = Date.now() + patience;
  for (;;) {
    const found = (await (await request.get(`${server()}/api/v1/jobs/${job}`)).json()) as { state: string; run?: number; error?: string };
    if (found.state === 'done') return found.run ?? 0;
    if (found.state === 'failed' || found.state === 'stopped' || Date.now() > until) throw new Error(`the job is ${found.state}: ${found.error ?? 'it took too long'}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** Runs an experiment in the simulator; says its number. */
export async function run(request: APIRequestContext, text: string): Promise<number> {
  return finished(request, (await begin(request, text)).job);
}

/** Puts an experiment into the editor before the page is opened. */
export async function draft(page: Page, text: string, name = 'drawn.toml'): Promise<void> {
  // The server keeps drafts by their ids.
  const id = `t-${Date.now()}-${Math.floor(Math.random() * 1e9)}`;
  await page.addInitScript(([text, name, id]) => {
    try {
      if (sessionStorage.getItem('drafted')) return;
      // This window begins with it, and with no draft of its own.
      sessionStorage.removeItem('trunkline.draft');
      localStorage.setItem(`trunkline.draft.${id}`, JSON.stringify({ text, name, at: Date.now() }));
      sessionStorage.setItem('drafted', 'yes');
    } catch {
      // A report is shown without any storage.
    }
  }, [text, name, id]);
}

/** Puts the path `home` into the library, as `trunkline learn` writes it; false without a library of ours. */
export function learned(): boolean {
  const folder = process.env.TRUNKLINE_LIBRARY;
  if (!folder) return false;
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, 'home.toml'),
    `# The path to studio, learned by \`trunkline learn\` on 2026-01-02 03:04.
doc = "The path to studio, learned on 2026-01-02 03:04."

[forward]
rate = "8 Mbit/s"   # 7.9 Mbit/s to 8.1 Mbit/s: 4 overloads
delay = "15 ms"   # 14.9 ms to 15.1 ms: smallest delay of the thin flow

[backward]
rate = "2 Mbit/s"   # 1.9 Mbit/s to 2.1 Mbit/s: 4 overloads

# Predicted, and then measured, for traffic that was not learned from:
#   a call, delay p95: predicted 20 ms (18 ms to 22 ms), measured 21 ms, off by 5 %
`,
  );
  return true;
}

/** Holds back what is asked of these addresses. What it returns lets that through, and all that comes later. */
export async function hold(page: Page, addresses: string | RegExp, which: (request: Request) => boolean = () => true): Promise<() => Promise<void>> {
  let release = () => {};
  const held: Promise<unknown>[] = [];
  const released = new Promise<void>((resolve) => (release = resolve));
  await page.route(addresses, (route) => {
    if (!which(route.request())) return route.fallback();
    // The page may have given it up meanwhile.
    const passed = released.then(() => route.continue()).catch(() => undefined);
    held.push(passed.then(() => route.request().response()).catch(() => undefined));
    return passed;
  });
  return async () => {
    release();
    await Promise.all(held);
    // What the page makes of it is there two frames later.
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  };
}

/** Every test fails if its page asks anything of another site, or if something goes wrong in it. */
export const test = base.extend({
  page: async ({ page }, use) => {
    const foreign: string[] = [];
    const wrong: string[] = [];
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (/^(https?|wss?):$/.test(url.protocol) && url.origin !== new URL(server()).origin) foreign.push(request.url());
    });
    page.on('pageerror', (error) => wrong.push(error.message));
    page.on('console', (message) => {
      // What the content security policy forbids is said on the console only.
      if (message.type() === 'error' && /Content Security Policy|Refused to/.test(message.text())) wrong.push(message.text());
    });
    await use(page);
    // A list may be asked for again at any moment; at the end, an answer that a test was about to change is no longer there.
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    expect(foreign, 'requests to other sites').toEqual([]);
    expect(wrong, 'errors in the page').toEqual([]);
  },
});
