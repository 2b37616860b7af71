// Answers the API with plausible data, for working on the page without a server: node mock/server.mjs [PORT] [DIST].
// It judges little and forgets everything; what it says is not what Trunkline would say. It also serves a built page, with the
// server's content security policy.
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify, TomlError } from 'smol-toml';
import { answer as results } from './results.mjs';
import { schema } from './schema.mjs';

const port = Number(process.argv[2] ?? 4790);
const dist = process.argv[3];
const examples = fileURLToPath(new URL('../../examples', import.meta.url));

const known = (table, noun, names, of) => names.filter((name) => !(name in table)).map((name) => `${of}: there is no ${noun} \`${name}\``);
const list = (value) => (Array.isArray(value) ? value : value === undefined ? [] : [value]);
const kind = (value, otherwise = '') => (typeof value === 'object' && value ? value.kind : value) ?? otherwise;
const seconds = (text) => parseFloat(text) * { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 }[String(text).replace(/[\d.\s]/g, '')];

function read(text) {
  try {
    return { file: parse(text), problems: [] };
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    return { problems: [{ message: error.message.split('\n')[0], line: error.line, column: error.column, end_line: error.line, end_column: error.column + 1 }] };
  }
}

function problem(text, path, message) {
  const lines = text.split('\n');
  const header = `[${path.slice(0, 2).join('.')}`;
  let line = lines.findIndex((each) => each.startsWith(header));
  const within = path[2] && lines.findIndex((each, index) => index > line && each.startsWith(`${path[2]} `));
  if (within > 0) line = within;
  return { message, line: line + 1 || 1, column: 1, end_line: line + 1 || 1, end_column: (lines[line] ?? '').length + 1 };
}

function check({ text }) {
  const { file, problems } = read(text);
  if (!file) return { problems };
  for (const key of ['name', 'duration']) if (!(key in file)) problems.push(problem(text, [], `\`${key}\` is missing: expected it before the first table`));
  const hosts = file.hosts ?? {};
  for (const [name, link] of Object.entries(file.link ?? {})) {
    for (const message of known(hosts, 'host', list(link.between), 'between')) problems.push(problem(text, ['link', name, 'between'], message));
    if (link.rate !== undefined && !/^[\d.]+ [kMG]?bit\/s$/.test(link.rate)) problems.push(problem(text, ['link', name, 'rate'], `\`${link.rate}\` is no rate: expected a number and bit/s, kbit/s, Mbit/s or Gbit/s`));
  }
  for (const [name, flow] of Object.entries(file.flow ?? {})) {
    for (const end of ['from', 'to']) for (const message of known(hosts, 'host', list(flow[end]).map((each) => each.host ?? each), end)) problems.push(problem(text, ['flow', name, end], message));
  }
  if (problems.length > 0) return { problems };
  const points = Object.values(file.sweep ?? {}).reduce((product, values) => product * values.length, 1);
  const repetitions = file.repetitions ?? 1;
  const count = (section) => Object.keys(file[section] ?? {}).length;
  const summary = { name: file.name, points, repetitions, duration_s: points * repetitions * (seconds(file.duration) + 1), ends_early: 'until' in file, hosts: count('hosts'), links: count('link'), flows: count('flow') };
  const agents = Object.values(hosts).some((host) => host.agent);
  return { problems, summary, backends: { sim: null, wire: count('hosts') > 8 ? 'too many hosts' : null, live: agents ? null : 'no host has an agent' } };
}

function drawing(text) {
  const { file, problems } = read(text);
  // It does not know where keys stand.
  const places = [];
  if (!file) return { problems, places };
  const hosts = Object.entries(file.hosts ?? {}).map(([name, keys], index) => ({
    name, x: keys.position?.[0] ?? 60 + (index % 4) * 320, y: keys.position?.[1] ?? 60 + Math.floor(index / 4) * 180, placed: 'position' in keys, count: keys.count ?? 1, agent: keys.agent, keys,
  }));
  const links = Object.entries(file.link ?? {}).map(([name, keys]) => ({
    name, between: list(keys.between), medium: keys.medium ?? 'serial', label: [keys.rate, keys.delay, kind(keys.queue)].filter(Boolean).join(' · '), keys,
  }));
  const flows = Object.entries(file.flow ?? {}).map(([name, keys]) => ({
    name, from: keys.from ?? '', to: list(keys.to).map((each) => each.host ?? each), transport: kind(keys.transport), source: kind(keys.source), count: keys.count ?? 1,
    label: `${keys.count ?? 1} × ${kind(keys.source)} · ${kind(keys.transport)}`, keys,
  }));
  const bundles = Object.entries(file.bundle ?? {}).map(([name, keys]) => ({ name, flows: list(keys.flows), keys }));
  const experiment = Object.fromEntries(Object.entries(file).filter(([key]) => !['hosts', 'link', 'flow', 'bundle', 'sweep', 'limits'].includes(key)));
  const sweep = Object.entries(file.sweep ?? {}).map(([key, values]) => ({ key, values }));
  const limits = Object.entries(file.limits ?? {}).map(([key, limit]) => ({ key, limit }));
  return { drawing: { title: file.name ?? '', hosts, links, flows, bundles, experiment, sweep, limits }, problems, places };
}

/** Unlike the server, this loses comments. */
function edit({ text, edits }) {
  const { file } = read(text);
  if (!file) throw new Error('the text is not TOML; fix that first');
  for (const each of edits) {
    if (each.op === 'place') file.hosts[each.host].position = [Math.round(each.x), Math.round(each.y)];
    else if (each.op === 'add') {
      if (file[each.section]?.[each.name]) throw new Error(`a ${each.section} \`${each.name}\` already exists; choose another name`);
      const usual = each.section === 'link' ? { rate: '10 Mbit/s' } : {};
      (file[each.section] ??= {})[each.name] = { ...usual, ...each.values };
    } else if (each.op === 'rename') {
      file[each.section] = Object.fromEntries(Object.entries(file[each.section]).map(([name, value]) => [name === each.from ? each.to : name, value]));
      if (each.section === 'hosts') {
        const other = (name) => (name === each.from ? each.to : name);
        for (const link of Object.values(file.link ?? {})) link.between = link.between.map(other);
        for (const flow of Object.values(file.flow ?? {})) [flow.from, flow.to] = [other(flow.from), Array.isArray(flow.to) ? flow.to.map(other) : other(flow.to)];
      }
    } else {
      const path = each.path.slice(0, -1);
      const last = each.path.at(-1);
      let table = file;
      for (const part of path) table = table[part] = typeof table[part] === 'string' ? { kind: table[part] } : (table[part] ?? {});
      if (each.op === 'set') table[last] = each.value;
      else delete table[last];
      if (each.op === 'remove' && path.length === 1 && path[0] === 'hosts') {
        for (const [name, link] of Object.entries(file.link ?? {})) if (link.between.includes(last)) delete file.link[name];
        for (const [name, flow] of Object.entries(file.flow ?? {})) if (flow.from === last || flow.to === last) delete file.flow[name];
      }
    }
  }
  const next = stringify(file);
  return { text: next, problems: check({ text: next }).problems, ...drawing(next) };
}

const routes = {
  'GET /server': () => ({ version: '0.0.0', machine: 'a mock', backends: ['sim'], availability: [{ backend: 'sim', unavailable: null }], authenticated: false, store: 'nowhere' }),
  'GET /schema': () => schema,
  'GET /examples': () =>
    readdirSync(examples).filter((file) => file.endsWith('.toml')).map((file) => {
      const text = readFileSync(join(examples, file), 'utf8');
      return { topic: 'All', name: file.replace('.toml', ''), title: /^name = "(.*)"/m.exec(text)?.[1] ?? file, text };
    }),
  'POST /check': check,
  'POST /drawing': ({ text }) => drawing(text),
  'POST /edit': edit,
};

const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };

createServer(async (request, response) => {
  const answer = (status, body, type = 'application/json') => {
    response.writeHead(status, { 'content-type': type, 'content-security-policy': "default-src 'self'" });
    response.end(type === 'application/json' ? JSON.stringify(body) : body);
  };
  const { pathname: path, searchParams: query } = new URL(request.url, 'http://localhost');
  if (!path.startsWith('/api/v1')) {
    const file = path === '/' ? 'index.html' : path.slice(1).replaceAll('..', '');
    try {
      return answer(200, readFileSync(join(dist ?? '', file)), types[extname(file)] ?? 'application/octet-stream');
    } catch {
      return answer(404, 'nothing here', 'text/plain');
    }
  }
  let body = '';
  for await (const chunk of request) body += chunk;
  const name = path.slice('/api/v1'.length);
  try {
    const given = body && request.headers['content-type'] === 'application/json' ? JSON.parse(body) : undefined;
    const route = routes[`${request.method} ${name}`];
    const said = route ? route(given) : results(request.method, name, query, given);
    if (typeof said === 'function') return said(response);
    if (said === undefined) return answer(404, { error: { message: `the mock knows no ${request.method} ${path}`, kind: 'not-found' } });
    answer(200, said);
  } catch (error) {
    answer(error.status ?? 400, { error: { message: error.message, kind: 'input' } });
  }
}).listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}/`));
