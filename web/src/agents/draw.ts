/** An experiment between agents, to begin a drawing with. */

import type { Agent } from './types';

/** A host for each agent whose address is known, links from the first to the others, and a voice; nothing for fewer than two. */
export function between(agents: readonly Pick<Agent, 'name' | 'address'>[]): string | undefined {
  const hosts: { name: string; address: string }[] = [];
  for (const { name, address } of agents) {
    if (address) hosts.push({ name: unused(name, hosts.map((host) => host.name)), address });
  }
  const [first, second] = hosts;
  if (!first || !second) return undefined;
  const links = hosts.slice(1).map(({ name }) => `[link.${name}]\nbetween = ["${first.name}", "${name}"]\nrate = "100 Mbit/s"\n`);
  return `name = "between agents"
duration = "30 s"
repetitions = 3

[hosts]
${hosts.map(({ name, address }) => `${name} = { agent = ${JSON.stringify(address)} }`).join('\n')}

# What is assumed to lie between them: \`live\` measures what is there.
${links.join('\n')}
[flow.voice]
from = "${first.name}"
to = "${second.name}"
transport = "udp"
source = "voice"
`;
}

/** A host's name in an experiment file that is like this one. */
function unused(name: string, used: readonly string[]): string {
  const base = name.toLowerCase().replaceAll(/[^a-z0-9_-]/g, '-');
  let free = base;
  for (let number = 2; used.includes(free); number += 1) free = `${base}-${number}`;
  return free;
}
