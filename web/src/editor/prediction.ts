/** What a prediction says of a flow and of a link, in the few words that fit into the drawing. */

import type { Prediction } from '../api/types';
import { isOfFlow } from '../results/figures';
import { show, type Estimate, type Quantity } from '../results/quantity';

/** How something fares: by its limits if it has some. */
export type Fate = 'good' | 'bad' | 'plain';

export interface Told {
  text: string;
  fate: Fate;
  /** The same in a sentence: what the limits are, and which way the latency is. */
  title: string;
}

/** The delay, the loss and the quality of a flow, or the rate of a transfer. */
export function ofFlow({ report }: Prediction, name: string, isBulk: boolean): Told | undefined {
  const flow = report.points[0]?.runs[0]?.flows.find((each) => each.flow === name);
  if (!flow) return undefined;
  const figure = (id: string, quantity: Quantity) => (flow.figures[id] ? show(quantity, rounded(flow.figures[id].mean)) : undefined);
  const delay = figure('latency_p99', 'time');
  const late = figure('loss_and_late', 'share');
  const lost = late ? `${late} lost or late` : figure('loss', 'share') && `${figure('loss', 'share')} lost`;
  const isRound = flow.measured === 'round-trip';
  const mos = flow.figures['mos'] && `MOS ${flow.figures['mos'].mean.toFixed(1)}`;
  const rate = isBulk ? figure('throughput_user', 'rate') : undefined;
  const texts = [rate, delay && `${delay}${isRound ? ' RTT' : ''}`, isBulk || (flow.figures['loss_and_late'] ?? flow.figures['loss'])?.mean === 0 ? undefined : lost, mos].filter((text) => text !== undefined);
  if (texts.length === 0) return undefined;
  const limits = report.limits.filter((limit) => isOfFlow(limit.key, name)).map((limit) => ({ text: `${limit.key.split('.').slice(2).join('.')} ${limit.condition}`, outcome: limit.runs[0]?.outcome }));
  const broken = limits.filter(({ outcome }) => outcome === 'broken');
  const held = limits.filter(({ outcome }) => outcome === 'holds');
  const fate = broken.length > 0 ? 'bad' : held.length > 0 ? 'good' : 'plain';
  const said = [
    `Predicted for ${name}:`,
    [rate && `rate ${rate}`, delay && `${isRound ? 'round trip' : 'one-way delay'} p99 ${delay}`, lost, mos].filter(Boolean).join(', '),
    broken.length > 0 ? `; breaks ${broken.map(({ text }) => text).join(' and ')}` : held.length > 0 ? `; keeps ${held.map(({ text }) => text).join(' and ')}` : '',
  ];
  return { text: texts.join(' · '), fate, title: `${said[0]} ${said[1]}${said[2]}.` };
}

/** How busy a link is, in the direction that is busier, and what it drops. */
export function ofLink({ report }: Prediction, name: string): (Told & { used: number }) | undefined {
  const directions = report.points[0]?.runs[0]?.links.filter(({ link }) => link === name || link.startsWith(`${name} `)) ?? [];
  const medium = report.points[0]?.runs[0]?.media.find((each) => each.medium === name && each.station == null);
  // A link without a rate is never busy.
  if (!medium && directions.every((link) => link.utilisation == null)) return undefined;
  const used = (medium?.figures['channel_use'] as Estimate | null | undefined)?.mean ?? Math.max(...directions.map((link) => link.utilisation?.mean ?? 0));
  const drops = directions.flatMap(({ dropped }) => dropped.flatMap((causes) => Object.values(causes))).reduce((sum, count) => sum + count, 0);
  const waits = Math.max(...directions.map((link) => link['sojourn_p99']?.mean ?? 0));
  const wait = waits > 0 ? `, queue ${show('time', rounded(waits))} at p99` : '';
  const text = `${Math.round(used * 100)} % used${drops > 0 ? ` · ${drops.toLocaleString('en')} dropped` : ''}`;
  return { text, used, fate: drops > 0 || used > 0.97 ? 'bad' : 'plain', title: `Predicted for ${name}: ${text.replace(' · ', ', ')}${wait}.` };
}

/** To three digits: more says nothing of one repetition. */
function rounded(value: number): number {
  return Number(value.toPrecision(3));
}
