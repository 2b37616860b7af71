/**
 * Starts what the tests use: the page as `vite build` makes it, `trunkline serve` on a loopback address with a store of its own,
 * a reflector to probe, and two agents at which nobody has enrolled yet, which end and are removed with them. `TRUNKLINE_URL` names a server that is there already, by its
 * address or by a login link; `TRUNKLINE_BIN` a program that is built already.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const web = join(dirname(fileURLToPath(import.meta.url)), '..');

/** The cookie of a browser that is logged in, as Playwright reads it. */
export const STATE = join(web, 'e2e/output/login.json');

/** How long a server may take until it listens: the program may have to be built first. */
const PATIENCE_MS = 240_000;

export default async function start(): Promise<() => Promise<void>> {
  if (process.env.TRUNKLINE_URL) {
    await login(process.env.TRUNKLINE_URL);
    return async () => {};
  }
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-e2e-'));
  const dist = join(folder, 'dist');
  const vite = join(web, 'node_modules/vite/bin/vite.js');
  execFileSync(process.execPath, [vite, 'build', '--outDir', dist, '--emptyOutDir', '--logLevel', 'warn'], { cwd: web, stdio: 'inherit' });
  const built = process.env.TRUNKLINE_BIN;
  const [program, before] = built ? [built, []] : ['cargo', ['run', '--quiet', '--package', 'trunkline', '--']];
  const begin = (...args: string[]) =>
    spawn(program, [...before, ...args, '--listen', '127.0.0.1:0'], {
      cwd: join(web, '..'),
      env: { ...process.env, TRUNKLINE_WEB: dist, TRUNKLINE_STORE: join(folder, 'store'), XDG_CONFIG_HOME: join(folder, 'config'), NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own: `cargo run` and what it runs are ended together.
      detached: true,
    });
  const begun: ChildProcess[] = [];
  const stop = async () => {
    await Promise.all(begun.map(end));
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const server = begin('serve');
    begun.push(server);
    // Without the terminal of a desktop it opens no browser.
    await login(await listening(server, /http:\S+#\/login\/\S+/));
    process.env.TRUNKLINE_TOKEN_COMMAND = JSON.stringify([program, ...before, 'serve', 'token']);
    process.env.TRUNKLINE_LIBRARY = join(folder, 'store/paths');
    process.env.TRUNKLINE_TOKEN_CONFIG = join(folder, 'config');
    const reflector = begin('reflect');
    begun.push(reflector);
    process.env.TRUNKLINE_REFLECTOR = await listening(reflector);
    // Two hosts may have one name.
    const agents = ['ottawa', 'berlin', 'ottawa'].map((name, i) => {
      const state = join(folder, `agent-${i}`);
      mkdirSync(state);
      // Whatever address this machine has: an agent goes to private networks only unless told.
      const anywhere = '[controller-default]\nto = ["0.0.0.0/0", "::/0"]\n';
      writeFileSync(join(state, 'agent.toml'), `name = "${name}"\n${anywhere}`);
      const agent = begin('agent', '--config', join(state, 'agent.toml'), '--state', state);
      begun.push(agent);
      return { name, state, agent };
    });
    const [first, second, namesake] = await Promise.all(agents.map(async ({ name, state, agent }) => ({ name, address: await listening(agent), pair: [program, ...before, 'agent', 'pair', '--state', state] })));
    process.env.TRUNKLINE_AGENTS = JSON.stringify([first, second]);
    process.env.TRUNKLINE_NAMESAKE = JSON.stringify(namesake);
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}

/** Logs in with a link, and keeps the cookie for all tests. An address without a code needs no login. */
async function login(link: string): Promise<void> {
  const [url, code] = link.split('/#/login/');
  process.env.TRUNKLINE_URL = url;
  let cookies: object[] = [];
  if (code) {
    const response = await fetch(`${url}/api/v1/login`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ code }) });
    const value = /^trunkline=([^;]+)/.exec(response.headers.get('set-cookie') ?? '')?.[1];
    if (!value) throw new Error(`the link does not log in: ${response.status} ${await response.text()}`);
    cookies = [{ name: 'trunkline', value, domain: new URL(url).hostname, path: '/', expires: -1, httpOnly: true, secure: false, sameSite: 'Strict' }];
  }
  mkdirSync(dirname(STATE), { recursive: true });
  writeFileSync(STATE, JSON.stringify({ cookies, origins: [] }), { mode: 0o600 });
}

/** What a server says that matches: by default the address that it listens on. */
function listening(server: ChildProcess, wanted = /127\.0\.0\.1:[1-9]\d*/): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = '';
    const timer = setTimeout(() => reject(new Error(`the server did not say where it listens:\n${said}`)), PATIENCE_MS);
    const read = (chunk: Buffer) => {
      said += chunk.toString();
      const address = wanted.exec(said)?.[0];
      if (!address) return;
      clearTimeout(timer);
      resolve(address);
    };
    server.stdout?.on('data', read);
    server.stderr?.on('data', read);
    server.once('error', reject);
    server.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`the server ended with ${code}:\n${said}`));
    });
  });
}

/** Ends the server and waits until it has ended. */
function end(server: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (server.exitCode !== null || server.pid === undefined) return resolve();
    server.removeAllListeners('exit');
    const signal = (name: NodeJS.Signals) => {
      try {
        process.kill(-(server.pid as number), name);
      } catch {
        // It has ended meanwhile.
      }
    };
    const kill = setTimeout(() => signal('SIGKILL'), 8_000);
    server.once('exit', () => {
      clearTimeout(kill);
      resolve();
    });
    signal('SIGINT');
  });
}
