/** What an agent says of itself, for people. */

import { counted, moment, quantity, span } from '../ui/format';

/** A line: what, and how much. */
export interface Fact {
  name: string;
  value: string;
}

/** Something that somebody should know of an agent. */
export interface Notice {
  at: string;
  text: string;
}

type Said = Record<string, unknown>;

/** What is said with words of its own; the rest follows as it comes. */
const KNOWN = ['name', 'program', 'since', 'sessions', 'parts', 'spool', 'disk_free', 'cpu', 'memory', 'clock_steps', 'controllers', 'notices'];

/** How an agent is: what it is doing first. What a newer one says beyond that stands below, word for word. */
export function facts(status: Said | null | undefined): Fact[] {
  if (!status) return [];
  const { program, since, sessions, parts, spool, disk_free: free, cpu, memory, clock_steps: steps, controllers } = status;
  const lines: (Fact | undefined)[] = [
    Array.isArray(parts) ? { name: 'measuring', value: working(parts) } : undefined,
    fact('kept for controllers', spool, (bytes) => quantity(bytes, 'B')),
    fact('disk free', free, (bytes) => quantity(bytes, 'B')),
    fact('processor', cpu, (cores) => `${quantity(cores, 'ratio', 2)} of a core`),
    fact('memory', memory, (bytes) => quantity(bytes, 'B')),
    fact('connections', sessions, (count) => count.toLocaleString('en')),
    Array.isArray(controllers) ? { name: 'controllers', value: controllers.map(nameOf).join(', ') || 'none' } : undefined,
    typeof since === 'string' ? { name: 'started', value: moment(since) } : undefined,
    typeof program === 'string' ? { name: 'version', value: program } : undefined,
    typeof steps === 'number' && steps > 0 ? { name: 'clock', value: `stepped ${counted(steps, 'time')}` } : undefined,
  ];
  const others = Object.entries(status).filter(([key]) => !KNOWN.includes(key));
  return [...lines.filter((line) => line !== undefined), ...others.flatMap(([key, value]) => plain(key, value))];
}

/** What its owner lets this controller have: the smaller of what all may have and what this one may. */
export function allowed(said: Said | null | undefined): Fact[] {
  const limits = table(said?.['limits']);
  const own = table(said?.['permissions']);
  if (!limits || !own) return [];
  const least = (key: string) => {
    const both = [limits[key], own[key]].filter((value) => typeof value === 'number');
    return both.length > 0 ? Math.min(...both) : undefined;
  };
  const [rate, flows, duration] = [least('rate'), least('flows'), limits['duration_ns']];
  const to = Array.isArray(own['to']) ? own['to'].map(String) : undefined;
  const isAnywhere = to === undefined || ['0.0.0.0/0', '::/0'].every((all) => to.includes(all));
  return [
    { name: 'rate allowed', value: rate === undefined ? 'no limit' : quantity(rate, 'bit/s') },
    { name: 'conversations allowed', value: flows === undefined ? 'no limit' : flows.toLocaleString('en') },
    { name: 'longest part', value: typeof duration === 'number' ? span(duration / 1e9) : 'no limit' },
    { name: 'sends to', value: isAnywhere ? 'anywhere' : (to ?? []).join(', ') || 'nobody' },
  ];
}

/** What somebody should know, the newest first. */
export function notices(status: Said | null | undefined, most = 3): Notice[] {
  const all = status?.['notices'];
  if (!Array.isArray(all)) return [];
  return all.filter((one): one is Notice => typeof one?.at === 'string' && typeof one?.text === 'string').slice(-most).reverse();
}

/** `2 parts running, 1 finished`. */
function working(parts: readonly unknown[]): string {
  const states = new Map<string, number>();
  for (const part of parts) {
    const state = String(table(part)?.['state'] ?? 'known');
    states.set(state, (states.get(state) ?? 0) + 1);
  }
  const told = [...states].map(([state, count], i) => (i === 0 ? `${counted(count, 'part')} ${state}` : `${count} ${state}`));
  return told.join(', ') || 'nothing now';
}

function fact(name: string, value: unknown, tell: (value: number) => string): Fact | undefined {
  return typeof value === 'number' ? { name, value: tell(value) } : undefined;
}

function nameOf(controller: unknown): string {
  const said = table(controller);
  return said ? `${String(said['name'])}${said['connected'] ? ' (connected)' : ''}` : String(controller);
}

function table(value: unknown): Said | undefined {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Said) : undefined;
}

function plain(key: string, value: unknown): Fact[] {
  const name = key.replaceAll('_', ' ');
  if (Array.isArray(value)) return [{ name, value: String(value.length) }];
  if (typeof value === 'boolean') return [{ name, value: value ? 'yes' : 'no' }];
  if (typeof value === 'number') return [{ name, value: value.toLocaleString('en') }];
  return typeof value === 'string' && value !== '' ? [{ name, value }] : [];
}

/** The address and the code of the command that `trunkline agent pair` prints. */
export function pasted(text: string): { address: string; code: string } | undefined {
  const [, address, code] = /\bagent enrol\s+(\S+)\s+([A-Za-z0-9-]+)/.exec(text) ?? [];
  return address && code ? { address, code } : undefined;
}
