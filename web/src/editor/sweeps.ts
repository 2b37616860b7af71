/** Lists of swept values as one line of text, and the keys that can be swept. */
import type { Drawing, DrawnAxis, FormFigure, FormKey, FormSchema, Json, Tree } from '../api/types';
import { formKeys, items, keysOf, ofToml, section, shown, toml, typed } from './items';

/** `1, 2, 4` or `8 KiB, 16 KiB`; what is no plain value (a table) as in the text. Texts with a comma are quoted. */
export function listed(values: readonly Json[]): string {
  return values
    .map((value) => {
      if (typeof value !== 'string') return toml(value);
      return /[,"]|^\s|\s$|^[[{]|^$/.test(value) || plain(value) !== value ? JSON.stringify(value) : value;
    })
    .join(', ');
}

/** The reverse of `listed`. Empty places between commas are left out. */
export function unlisted(text: string): Json[] {
  const values: Json[] = [];
  const parts = text.split(',');
  for (let first = parts.shift(); first !== undefined; first = parts.shift()) {
    if (first.trim() === '') continue;
    // A comma in quotation marks or brackets ends no value.
    const ends = /^\s*["[{]/.test(first) ? [...parts.keys(), parts.length] : [];
    const found = ends.map((more) => [more, ofToml([first, ...parts.slice(0, more)].join(','))] as const).find(([, value]) => value !== undefined);
    parts.splice(0, found?.[0] ?? 0);
    values.push(found?.[1] ?? plain(first.trim()));
  }
  return values;
}

function plain(text: string): Json {
  if (text === 'true' || text === 'false') return text === 'true';
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : text;
}

/** Values of an axis as one line of text: a list, or a range such as `10 ms to 200 ms step 10 ms`. */
export function axisText(axis: DrawnAxis): string {
  const { range } = axis;
  if (!range) return listed(axis.values);
  const by = STEPS.find((name) => range[name] !== undefined);
  const one = (key: string) => listed([range[key] ?? '']);
  const scale = range['scale'] === undefined ? '' : ` ${one('scale')}`;
  return `${one('from')} to ${one('to')}${by ? ` ${by} ${one(by)}` : ''}${scale}`;
}

/** The reverse of `axisText`, with the quantities of a key in the units of the file; nothing if there is no value. */
export function axisValue(text: string, key?: FormKey): Json | undefined {
  const range = /^\s*(.+?)\s+to\s+(.+?)\s+(step|factor|points)\s+(.+?)(\s+(linear|logarithmic))?\s*$/.exec(text);
  if (range) {
    const [, from = '', to = '', by = '', step = '', , scale] = range;
    const [first, last, between] = united([plain(from), plain(to), plain(step)], key) as [Json, Json, Json];
    return { from: first, to: last, [by]: by === 'step' ? between : plain(step), ...(scale ? { scale } : {}) };
  }
  const values = united(unlisted(text), key);
  return values.length === 0 ? undefined : values;
}

/** Values of a key in the units of the file. A bare number has the unit of the others. */
function united(values: readonly Json[], key: FormKey | undefined): Json[] {
  const unit = values.find((value) => typeof value === 'string' && /^[\d.,]+\s*[^\d\s]/.test(value));
  const before = key && typeof unit === 'string' ? typed(unit, key) : undefined;
  return values.map((value) => (key && (typeof value === 'string' || typeof value === 'number') ? typed(String(value), key, before) : value));
}

/** A condition such as `< 150 ms`, with its quantity in the units of the file. */
export function condition(text: string, figure: FormFigure | undefined): string {
  const [, sign, bound = ''] = /^([<>]=?)\s*(.+)$/.exec(text) ?? [];
  return sign && figure ? `${sign} ${shown(typed(bound, { name: '', doc: '', required: false, share: false, shape: figure.shape }))}` : text;
}

const STEPS = ['step', 'factor', 'points'];

/** Every key that a sweep could vary, as far as the forms know: `flow.voice.count`. */
export function sweepable(schema: FormSchema | undefined, drawing: Drawing | undefined): string[] {
  const keys: string[] = (section(schema, 'experiment')?.keys ?? [])
    .filter((key) => !['name', 'repetitions', 'seed'].includes(key.name))
    .map((key) => key.name);
  for (const item of items(drawing)) {
    if (item.section === 'bundle') continue;
    const written = keysOf(drawing, item) ?? {};
    for (const key of formKeys(schema, item, written)) collect([item.section, item.name, key.name], key, written[key.name], keys);
  }
  return [...new Set(keys)];
}

function collect(path: string[], key: FormKey, written: Json | undefined, into: string[]): void {
  if (key.shape === 'direction' || key.shape === 'stations' || key.shape === 'hosts' || key.shape === 'position') return;
  into.push(path.join('.'));
  for (const inner of chosen(key, written)?.keys ?? []) {
    collect([...path, inner.name], inner, isTree(written) ? written[inner.name] : undefined, into);
  }
}

/** The alternative that a value has chosen, by its word or its `kind`. */
export function chosen(key: FormKey, written: Json | undefined) {
  const kind = isTree(written) ? written['kind'] : (written ?? key.default);
  return key.alternatives?.find((each) => each.name === kind || (typeof kind === 'string' && each.aliases?.includes(kind)));
}

export function isTree(value: Json | undefined): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The figures that a limit can be set on, for this drawing: `flow.voice.loss`, `bundle.trunk.udp.throughput.min`. */
export function limitable(schema: FormSchema | undefined, drawing: Drawing | undefined): string[] {
  const figures = section(schema, 'limits')?.figures ?? [];
  const several = new Set((drawing?.hosts ?? []).filter((host) => host.keys['count'] !== undefined).map((host) => host.name));
  const isText = (value: Json | undefined) => typeof value === 'string';
  const names = (of: string) => figures.filter((figure) => figure.of === of).map((figure) => figure.name);
  const flows = (drawing?.flows ?? []).flatMap((flow) => [
    ...names('flow').map((name) => `flow.${flow.name}.${name}`),
    ...(several.has(flow.from) || (isText(flow.keys['to']) && flow.to.some((sink) => several.has(sink)))
      ? names('flow').map((name) => `flow.${flow.name}.each.${name}`)
      : []),
    ...(flow.to.length > 1 ? flow.to.flatMap((sink) => names('sink').map((name) => `flow.${flow.name}.sink.${sink}.${name}`)) : []),
  ]);
  const bundles = (drawing?.bundles ?? []).flatMap((bundle) => {
    const transports = new Set(drawing?.flows.filter((flow) => bundle.flows.includes(flow.name)).map((flow) => flow.transport));
    return [
      ...names('bundle').map((name) => `bundle.${bundle.name}.${name}`),
      ...[...transports].flatMap((transport) => names('transport').map((name) => `bundle.${bundle.name}.${transport}.${name}`)),
    ];
  });
  return [...new Set([...flows, ...bundles])];
}
