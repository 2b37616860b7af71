/** Columns of published tables as people read them: `throughput per conversation, B/s` for `throughput_per_conversation_bytes_s`. */

const UNITS: [ending: string, unit: string][] = [['kbytes_s', 'KB/s'], ['bytes_s', 'B/s'], ['kbytes', 'KB'], ['bytes', 'B'], ['pct', '%'], ['ms', 'ms'], ['us', 'µs'], ['s', 's']];
const WORDS: Record<string, string> = { std: 'standard deviation', udp: 'UDP', tcp: 'TCP', urp: 'URP', tsdu: 'TSDU' };

export function columnText(name: string): string {
  const found = UNITS.find(([ending]) => name.endsWith(`_${ending}`));
  const bare = found ? name.slice(0, -found[0].length - 1) : name;
  const words = bare.split('_').map((word) => WORDS[word] ?? word).join(' ');
  return found ? `${words}, ${found[1]}` : words;
}

/** Whether a column says how far values scatter, and not the values. */
export function isScatter(name: string): boolean {
  return /(^|_)(std|deviation|bad|good|threshold)(_|$)/.test(name);
}

/** A goal with its table by its title, and its column as people read it. */
export function goalText(goal: string, tables: readonly { name: string; title: string }[]): string {
  const [, name, column = '', rest] = /^(\S+) (\w+)([:,].*)$/s.exec(goal) ?? [];
  const table = tables.find((one) => one.name === name);
  return table ? `${table.title}, ${columnText(column)}${rest}` : goal;
}
