/** What stands where in a drawing: hosts and shared media as nodes, links and flows as edges. */
import type { Edge, Node } from '@xyflow/svelte';
import type { DrawnFlow, DrawnHost, DrawnLink, Drawing, Edit, Tree } from '../../api/types';
import { seriesVariable } from '../../ui/series';
import { spread } from './geometry';
import { problemsOf, same, shown, type Item, type PlacedProblem } from '../items';

/** How far from the straight line the first flow between two hosts runs, and each further one beside it. */
const FIRST_ARC = 78;
const NEXT_ARC = 50;
const BESIDE = 34;

export interface HostData extends Record<string, unknown> {
  host: DrawnHost;
  item: Item;
  problems: number;
}

export interface MediumData extends Record<string, unknown> {
  link: DrawnLink;
  label: string;
  swept: string[];
  item: Item;
  problems: number;
}

export interface LinkData extends Record<string, unknown> {
  link: DrawnLink;
  /** Its rate, its delay, and what it does to packets. */
  label: string;
  /** What of it is swept. */
  swept: string[];
  item: Item;
  bend: number;
  /** Only the line of a station to its medium, which says the rest. */
  branch: boolean;
  problems: number;
}

export interface FlowData extends Record<string, unknown> {
  flow: DrawnFlow;
  /** What of it is swept. */
  swept: string[];
  item: Item;
  bend: number;
  /** A CSS variable's name. */
  colour: string;
  /** The bundles that it is in. */
  bundles: string[];
  /** Only the first of the arcs to several sinks has the label. */
  labelled: boolean;
  problems: number;
}

export type CanvasNode = Node<HostData, 'host'> | Node<MediumData, 'medium'>;
export type CanvasEdge = Edge<LinkData, 'link'> | Edge<FlowData, 'flow'>;

/** `bulk.count: 0, 1, 2, 4` of every swept key of an item. */
function sweptOf(drawing: Drawing, { section, name }: Item): string[] {
  const isIts = (key: string) => key.split(',').some((part) => part.trim().startsWith(`${section}.${name}.`));
  return drawing.sweep.filter((axis) => isIts(axis.key)).map((axis) => `${axis.key.replaceAll(`${section}.`, '')}: ${axis.shown.join(', ')}`);
}

/** The label of a link with its losses and its jitter. */
export function linkLabel(link: DrawnLink): string {
  const told = (['loss', 'jitter'] as const).flatMap((key) => {
    const value = link.keys[key];
    if (value === undefined || value === null) return [];
    return [`${key} ${typeof value === 'object' ? shown((value as Tree)['kind']) : shown(value)}`];
  });
  return [link.label, ...told].filter((text) => text !== '').join(' · ');
}

function toldOf({ label, swept }: { label: string; swept: string[] }): string {
  return [label, ...swept.map((text) => `swept ${text}`)].join(', ');
}

function has(selected: readonly Item[], item: Item): boolean {
  return selected.some((one) => same(one, item));
}

export const hostNode = (name: string) => `host:${name}`;
export const mediumNode = (name: string) => `medium:${name}`;

/** Edits that write down where all hosts stand that have no place of their own, but for some. */
export function pins(drawing: Drawing | undefined, but: readonly string[] = []): Edit[] {
  const free = drawing?.hosts.filter((host) => !host.placed && !but.includes(host.name)) ?? [];
  return free.map((host) => ({ op: 'place', host: host.name, x: Math.round(host.x), y: Math.round(host.y) }));
}

/** Nodes and edges of a drawing. */
export function graph(drawing: Drawing, selected: readonly Item[], problems: readonly PlacedProblem[]): { nodes: CanvasNode[]; edges: CanvasEdge[] } {
  const hosts = new Map(drawing.hosts.map((host) => [host.name, host]));
  const nodes: CanvasNode[] = drawing.hosts.map((host) => hostAt(host, selected, problems));
  const edges: CanvasEdge[] = [];
  const between = new Map<string, number>();
  /** How many things are between two hosts already, whichever way. */
  const next = (a: string, b: string) => {
    const key = [a, b].toSorted().join('\0');
    const count = between.get(key) ?? 0;
    between.set(key, count + 1);
    return count;
  };

  for (const link of drawing.links) {
    const item: Item = { section: 'link', name: link.name };
    const known = link.between.filter((name) => hosts.has(name));
    const count = problemsOf(problems, item).length;
    if (link.between.length === 2) {
      const [a, b] = known;
      if (a === undefined || b === undefined || a === b) continue;
      // Bends are seen from the way of the edge: the same side for both ways.
      const side = a < b ? 1 : -1;
      edges.push(linkEdge(`link:${link.name}`, hostNode(a), hostNode(b), { link, label: linkLabel(link), swept: sweptOf(drawing, item), item, bend: side * spread(next(a, b), BESIDE), branch: false, problems: count }, selected));
    } else {
      nodes.push(mediumAt(known.flatMap((name) => hosts.get(name) ?? []), selected, { link, label: linkLabel(link), swept: sweptOf(drawing, item), item, problems: count }));
      known.forEach((name, index) => {
        edges.push(linkEdge(`link:${link.name}:${index}`, hostNode(name), mediumNode(link.name), { link, label: '', swept: [], item, bend: 0, branch: true, problems: count }, selected));
      });
    }
  }

  const arcs = new Map<string, number>();
  drawing.flows.forEach((flow, index) => {
    const item: Item = { section: 'flow', name: flow.name };
    const bundles = drawing.bundles.filter((bundle) => bundle.flows.includes(flow.name)).map((bundle) => bundle.name);
    // A bundle has no line of its own: its flows stand out together.
    const marked = has(selected, item) || selected.some((one) => one.section === 'bundle' && bundles.includes(one.name));
    flow.to.forEach((to, sink) => {
      if (!hosts.has(flow.from) || !hosts.has(to) || flow.from === to) return;
      const key = `${flow.from}\0${to}`;
      const place = arcs.get(key) ?? 0;
      arcs.set(key, place + 1);
      edges.push({
        id: `flow:${flow.name}:${sink}`,
        type: 'flow',
        source: hostNode(flow.from),
        target: hostNode(to),
        selected: marked,
        ariaLabel: `Flow ${flow.name} from ${flow.from} to ${to}, ${flow.label}${sweptOf(drawing, item).map((text) => `, swept ${text}`).join('')}`,
        data: {
          flow,
          swept: sweptOf(drawing, item),
          item,
          // Always to the left of the way there: what goes the other way has the other side.
          bend: -(FIRST_ARC + place * NEXT_ARC),
          colour: seriesVariable(index),
          bundles,
          labelled: sink === 0,
          problems: problemsOf(problems, item).length,
        },
      });
    });
  });
  return { nodes, edges };
}

function hostAt(host: DrawnHost, selected: readonly Item[], problems: readonly PlacedProblem[]): CanvasNode {
  const item: Item = { section: 'hosts', name: host.name };
  return {
    id: hostNode(host.name),
    type: 'host',
    position: { x: host.x, y: host.y },
    origin: [0.5, 0.5],
    selected: has(selected, item),
    ariaLabel: `Host ${host.name}${host.count > 1 ? `, ${host.count} of them` : ''}${host.agent ? `, agent ${host.agent}` : ''}`,
    data: { host, item, problems: problemsOf(problems, item).length },
  };
}

function mediumAt(hosts: readonly DrawnHost[], selected: readonly Item[], data: MediumData): CanvasNode {
  const { link } = data;
  const mean = (of: (host: DrawnHost) => number) => (hosts.length === 0 ? 0 : hosts.reduce((sum, host) => sum + of(host), 0) / hosts.length);
  // A little off the middle: there the hosts of a row would hide it.
  return {
    id: mediumNode(link.name),
    type: 'medium',
    position: { x: mean((host) => host.x), y: mean((host) => host.y) + (hosts.length < 3 || flat(hosts) ? 110 : 0) },
    origin: [0.5, 0.5],
    draggable: false,
    selected: has(selected, data.item),
    ariaLabel: `${link.medium} ${link.name} of ${link.between.join(', ')}; ${toldOf(data)}`,
    data,
  };
}

function flat(hosts: readonly DrawnHost[]): boolean {
  const ys = hosts.map((host) => host.y);
  return Math.max(...ys) - Math.min(...ys) < 60;
}

function linkEdge(id: string, source: string, target: string, data: LinkData, selected: readonly Item[]): CanvasEdge {
  return {
    id,
    type: 'link',
    source,
    target,
    selected: has(selected, data.item),
    focusable: !data.branch,
    ariaLabel: `Link ${data.link.name} between ${data.link.between.join(' and ')}; ${toldOf(data)}`,
    data,
  };
}
