/** Two agents on this machine: enrolled at, drawn, measured between, stopped and resumed, with the page alone. */
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from '@playwright/test';
import { at, draft, expect, picture, test } from './use';

interface StartedAgent {
  name: string;
  address: string;
  /** The command that makes a code. */
  pair: string[];
}

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');

const EMPTY = `name = "between agents"
duration = "5 s"
drain = "100 ms"
repetitions = 2

[hosts]
`;

test('two agents are enrolled at, drawn, measured, stopped, resumed and reported', async ({ page }) => {
  test.skip(!process.env.TRUNKLINE_AGENTS, 'a server from outside has no agents of ours');
  const agents = JSON.parse(process.env.TRUNKLINE_AGENTS ?? '[]') as StartedAgent[];
  await page.goto(at('/agents'));
  await expect(page.getByText('No agent yet')).toBeVisible();
  for (const [i, agent] of agents.entries()) {
    await enrol(page, agent);
    await expect(page.getByText(/An experiment between hosts needs an agent on each of them/)).toHaveCount(i === 0 ? 1 : 0);
  }
  for (const { name } of agents) {
    const card = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name, exact: true }) });
    await expect(card.getByText('answers')).toBeVisible();
    await expect(card.getByText('nothing now')).toBeVisible();
  }
  await picture(page, 'agents-enrolled');
  await page.getByRole('button', { name: 'Draw with them' }).click();
  await expect(page.getByText('No problems')).toBeVisible();
  for (const { address } of agents) await expect(page.locator('.svelte-flow__node').getByText(address)).toBeVisible();

  await draft(page, EMPTY);
  await page.goto(at('/edit'));
  await page.reload();
  await draw(page, agents);
  await page.getByLabel('Where to run').selectOption('live');
  await page.getByRole('button', { name: 'Run', exact: true }).click();

  const received = () => page.locator('[data-received]').getAttribute('data-received').then(Number);
  await expect.poll(received, { message: 'records arrive' }).toBeGreaterThan(20);
  await picture(page, 'agents-measuring');
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('link', { name: 'See the results' }).click();
  await expect(page.getByText(/partial, \d of 2 repetitions/)).toBeVisible();
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect(page.getByText('complete', { exact: true })).toBeVisible();

  // 100 messages a second for five seconds.
  await page.getByRole('tab', { name: 'Figures' }).click();
  await expect(page.getByRole('row', { name: /^messages sent/ })).toContainText('500');
  await expect(page.getByRole('row', { name: /^clock error bound/ })).toBeVisible();
  await page.getByRole('tab', { name: 'Summary' }).click();
  await expect(page.getByRole('region', { name: /Figures of every flow/ }).getByText(/one way ± [\d.]+\s\S?s/), 'the bound of the clocks stands beside the one-way figures').toBeVisible();
  const opened = page.context().waitForEvent('page');
  await page.getByRole('link', { name: 'Report', exact: true }).click();
  const report = await opened;
  await expect(report.getByRole('heading', { level: 1 })).toContainText('between agents');
});

test('two agents with one name are told apart where they are listed, chosen and drawn', async ({ page }) => {
  test.skip(!process.env.TRUNKLINE_NAMESAKE, 'a server from outside has no agents of ours');
  const namesake = JSON.parse(process.env.TRUNKLINE_NAMESAKE ?? '{}') as StartedAgent;
  const [first] = JSON.parse(process.env.TRUNKLINE_AGENTS ?? '[]') as StartedAgent[];
  expect(namesake.name).toBe(first?.name);
  await page.goto(at('/agents'));
  const card = (name: string) => page.getByRole('listitem').filter({ has: page.getByRole('heading', { name, exact: true }) });
  // Tests may run alone.
  await expect(page.getByText('Loading …')).toHaveCount(0);
  if (first && (await card(first.name).count()) === 0) await enrol(page, first);
  await enrol(page, namesake, 'ottawa-2');
  await expect(card('ottawa')).toContainText(first?.address ?? '?');
  await expect(card('ottawa-2')).toContainText(namesake.address);
  await expect(card('ottawa-2').getByText('answers')).toBeVisible();
  await picture(page, 'agents-namesakes');
  await page.getByRole('button', { name: 'Draw with them' }).click();
  for (const [host, { address }] of [['ottawa', first], ['ottawa-2', namesake]] as [string, StartedAgent][]) {
    await expect(page.getByRole('group', { name: `Host ${host}, agent ${address}` }).or(page.getByLabel(`Host ${host}, agent ${address}`)).first()).toBeVisible();
  }
  await page.getByLabel(`Host ottawa-2, agent ${namesake.address}`).click();
  await expect(page.locator(`datalist option[value="${namesake.address}"]`).first()).toHaveText('ottawa-2');
  await page.goto(at('/agents'));
  await card('ottawa-2').getByRole('button', { name: /Forget/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Forget' }).click();
  await expect(card('ottawa-2')).toHaveCount(0);
  await expect(card('ottawa')).toHaveCount(1);
});

/** What the agent's host prints is pasted as it is. `as`: its name here. */
async function enrol(page: Page, { name, address, pair: [program = '', ...rest] }: StartedAgent, as = name): Promise<void> {
  const printed = execFileSync(program, rest, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  // What is printed is pasted as a whole, or its command typed.
  if (name === 'berlin') await page.getByLabel('Address').fill(/.*agent enrol.*/.exec(printed)?.[0] ?? '');
  else await page.getByLabel('Code').evaluate((field, text) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData('text', text);
    field.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
  }, printed);
  await expect(page.getByLabel('Address')).toHaveValue(name === 'berlin' ? /agent enrol/ : address);
  await page.getByRole('button', { name: 'Enrol' }).click();
  await expect(page.getByText(`Enrolled at ${as}.`)).toBeVisible();
}

/** A host for each agent, a link between them, and a flow over it. */
async function draw(page: Page, agents: readonly StartedAgent[]): Promise<void> {
  const palette = page.getByRole('group', { name: 'Add to the drawing' });
  const dialog = page.getByRole('dialog');
  for (const [i, { address }] of agents.entries()) {
    await palette.getByRole('button', { name: 'Host' }).click();
    await expect(page.locator('.svelte-flow__node')).toHaveCount(i + 1);
    const field = page.getByLabel('agent', { exact: true });
    await expect(field).toHaveValue('');
    await expect(page.locator(`datalist option[value="${address}"]`), 'agents that are known are offered').toHaveCount(1);
    await field.fill(address);
    await field.press('Enter');
    await expect(page.locator('.svelte-flow__node').getByText(address)).toBeVisible();
  }
  for (const what of ['Link', 'Flow']) {
    await palette.getByRole('button', { name: what }).click();
    await dialog.getByRole('button', { name: `Add ${what.toLowerCase()}` }).click();
    await expect(dialog).toBeHidden();
  }
  await expect(page.getByText('No problems')).toBeVisible();
}
