// What /schema answers, read from the reference page of the experiment file: for working on the page without a server.
import { readFileSync } from 'node:fs';

const page = readFileSync(new URL('../../docs/reference/experiment-file.md', import.meta.url), 'utf8');
const words = (text) => [...text.matchAll(/`([^`]+)`/g)].map((found) => found[1]);
const UNITS = { duration: ['ns', 'us', 'ms', 's', 'min', 'h'], rate: ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s'], bytes: ['B', 'KB', 'KiB', 'MB', 'MiB'] };

/** The part of the page below a heading, up to the next one of any level, with its first paragraph and its keys. */
function part(heading) {
  const at = page.indexOf(`\n${heading}\n`);
  if (at < 0) return { doc: '', rows: [] };
  const body = page.slice(at + heading.length + 2).split(/\n#{2,4} /)[0];
  const rows = body.split('\n').filter((line) => /^\| `/.test(line));
  return { doc: body.trim().split('\n')[0], rows };
}

function keys(rows, owner) {
  return rows.map((row) => {
    const [name, value, preset, doc] = row.slice(2, -2).split(' | ').map((cell) => cell.trim());
    return key(words(name)[0], value, preset, doc, owner);
  });
}

function key(name, value, preset, doc, owner) {
  const made = { name, doc, required: preset === 'required', shape: shape(name, value) };
  if (preset && preset !== 'required') made.default = words(preset)[0] ?? preset;
  const range = / from `?([^`]+?)`? to `?([^`(]+?)`?( or|$| \()/.exec(value);
  if (range) [made.min, made.max] = [range[1], range[2].trim()];
  if (UNITS[made.shape]) made.units = UNITS[made.shape];
  if (made.shape === 'choice') made.choices = words(value).map((word) => ({ name: word, doc: new RegExp('`' + word + '`: ([^;]+)').exec(doc)?.[1] ?? '' }));
  if (made.shape === 'durations' || made.shape === 'sizes') made.alternatives = distributions(made.shape === 'durations' ? 'duration' : 'bytes');
  made.share = /^a share, /.test(value);
  if (made.shape === 'one-of') {
    made.alternatives = words(value).map((word) => {
      const { doc, rows } = part(`#### \`${name} = { kind = "${word}" }\``);
      return { name: word, doc: doc.startsWith('|') ? '' : doc, keys: keys(rows) };
    });
  }
  return made;
}

function shape(name, value) {
  if (name === 'to') return 'sinks';
  if (/^the name of a host/.test(value)) return 'host';
  if (/^names of hosts/.test(value)) return 'hosts';
  if (/^the name of a flow/.test(value)) return 'flow';
  if (/names of flows/.test(value)) return 'flows';
  if (/names of links/.test(value)) return 'links';
  if (name === 'forward' || name === 'backward') return 'direction';
  if (name === 'station') return 'stations';
  if (/distribution of durations/.test(value)) return 'durations';
  if (/distribution of sizes/.test(value)) return 'sizes';
  if (/or a table with its keys/.test(value)) return 'one-of';
  if (/`true` or `false`/.test(value)) return 'flag';
  if (/^one of|^`\w+`, /.test(value)) return 'choice';
  if (/^a duration/.test(value)) return 'duration';
  if (/^a rate/.test(value)) return 'rate';
  if (/^a size/.test(value)) return 'bytes';
  if (/^a share/.test(value)) return 'ratio';
  if (/^a limit/.test(value)) return 'limit';
  if (/^a whole number/.test(value)) return 'integer';
  if (/^a number/.test(value)) return 'number';
  return /path of/.test(value) ? 'file' : 'text';
}

function distributions(of) {
  const rows = page.slice(page.indexOf('\n## Distributions')).split('\n').filter((line) => /^\| `/.test(line));
  return rows.map((row) => {
    const [kind, given, doc] = row.slice(2, -2).split(' | ');
    const inner = given.split('; ').map((each) => {
      const [name, text = ''] = each.split(': ');
      const key = words(name)[0];
      return { name: key, doc: text, required: true, shape: key === 'probability' ? 'ratio' : key === 'file' ? 'file' : of };
    });
    return { name: words(kind)[0], doc, keys: inner };
  });
}

const section = (name, heading) => {
  const { doc, rows } = part(heading);
  return { name, doc, keys: keys(rows, name) };
};

export const schema = {
  sections: [
    section('experiment', '## Before the first table'),
    section('hosts', '## `[hosts.NAME]`'),
    {
      ...section('link', '## `[link.NAME]`'),
      media: ['serial', 'trace', 't1', 'fddi', 'ethernet', 'wifi', 'atm'].map((name) => {
        const { doc, rows } = part(`### Medium \`${name}\``);
        const two = ['serial', 'trace', 't1', 'atm'].includes(name);
        return { name, doc, stations: { min: 2, max: two ? 2 : null }, keys: keys(rows) };
      }),
    },
    section('flow', '## `[flow.NAME]`'),
    section('bundle', '## `[bundle.NAME]`'),
    { name: 'sweep', doc: part('## `[sweep]`').doc, keys: [] },
    { ...section('limits', '## `[limits]`'), keys: [], figures: section('limits', '## `[limits]`').keys.map(({ name, doc }) => ({ of: /\.(min|max|deviation)$/.test(name) && !/^(margin|latency|start)/.test(name) ? 'bundle' : 'flow', name, doc, shape: 'text' })) },
  ],
};
const hosts = schema.sections.find((each) => each.name === 'hosts');
if (!hosts.keys.some((each) => each.name === 'agent'))
  hosts.keys.unshift({ name: 'agent', doc: 'In `live`, the agent that is this host: `host:port`.', required: false, shape: 'text' });
const flow = schema.sections.find((each) => each.name === 'flow');
// The keys of one sink stand in the same part of the page.
const sink = flow.keys.splice(flow.keys.findIndex((each) => each.name === 'join'), 3);
flow.keys.find((each) => each.name === 'to').keys = sink;
