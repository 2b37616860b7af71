/** From an empty drawing to a comparison: with the pointer, and with the keyboard alone. */
import type { Page } from '@playwright/test';
import { at, draft, expect, experiment, picture, run, test } from './use';

const EMPTY = `name = "drawn"
duration = "30 s"
repetitions = 4

[hosts]
`;

test('two hosts and a flow are drawn, run and reported', async ({ page }) => {
  test.setTimeout(120_000);
  await draft(page, EMPTY);
  await page.goto(at('/edit'));
  const palette = page.getByRole('group', { name: 'Add to the drawing' });
  const hosts = page.locator('.svelte-flow__node');
  await palette.getByRole('button', { name: 'Host' }).click();
  await expect(hosts).toHaveCount(1);
  await palette.getByRole('button', { name: 'Host' }).click();
  await expect(hosts).toHaveCount(2);

  await palette.getByRole('button', { name: 'Link' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Rate').fill('2 Mbit/s');
  await dialog.getByLabel('Delay').fill('20 ms');
  await dialog.getByRole('button', { name: 'Add link' }).click();
  await expect(dialog).toBeHidden();

  await palette.getByRole('button', { name: 'Flow' }).click();
  await dialog.getByLabel('How many').fill('20');
  await dialog.getByRole('button', { name: 'Add flow' }).click();
  await expect(dialog).toBeHidden();
  await expect(page.getByText('No problems')).toBeVisible();
  await picture(page, 'drawn');

  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await answered(page);
  await expect(page.getByRole('heading', { name: 'drawn' })).toBeVisible();
  await expect(page.getByRole('tab', { name: 'Summary' })).toBeVisible();

  const opened = page.context().waitForEvent('page');
  await page.getByRole('link', { name: 'Report', exact: true }).click();
  const report = await opened;
  await expect(report.getByRole('heading', { level: 1 })).toContainText('drawn');
  await picture(report, 'report');
});

test('the keyboard alone draws two hosts and a flow and runs them', async ({ page }) => {
  test.setTimeout(120_000);
  await draft(page, EMPTY);
  await page.goto(at('/edit'));
  await expect(page.getByRole('group', { name: 'Add to the drawing' })).toBeVisible();
  const hosts = page.locator('.svelte-flow__node');
  await press(page, 'Host');
  await expect(hosts).toHaveCount(1);
  await press(page, 'Host');
  await expect(hosts).toHaveCount(2);

  const dialog = page.getByRole('dialog');
  for (const what of ['Link', 'Flow']) {
    await press(page, what);
    await expect(dialog).toBeVisible();
    await expect.poll(() => page.evaluate(() => document.querySelector('dialog')?.contains(document.activeElement)), { message: 'the focus is in the dialog' }).toBe(true);
    if (what === 'Link') await type(page, 'Rate', '2 Mbit/s');
    else await type(page, 'How many', '20');
    await page.keyboard.press('Enter');
    await expect(dialog).toBeHidden();
  }
  await expect(page.getByText('No problems')).toBeVisible();
  await press(page, 'Run');
  await answered(page);
});

test('two runs are compared: curves, differences with confidence, settings that differ', async ({ page, request }) => {
  const first = await run(request, experiment('voice beside bulk', { seconds: 5 }));
  const second = await run(request, experiment('voice beside bulk', { seconds: 5, seed: 8, rate: '1200 kbit/s' }));
  await page.goto(at('/runs'));
  await page.getByRole('checkbox', { name: `Choose run ${first} ` }).check();
  await page.getByRole('checkbox', { name: `Choose run ${second} ` }).check();
  await page.getByRole('link', { name: `Compare ${first} with ${second}` }).click();
  await expect(page.getByRole('heading', { name: `Run ${first} and run ${second}` })).toBeVisible();

  const settings = page.getByRole('region', { name: 'Settings that differ' }).last();
  await expect(settings.getByRole('row', { name: /link\.trunk\.rate/ })).toContainText('1594 kbit/s');
  await expect(settings.getByRole('row', { name: /link\.trunk\.rate/ })).toContainText('1200 kbit/s');
  await expect(settings.getByRole('row', { name: /seed/ })).toBeVisible();
  await expect(settings.getByRole('row')).toHaveCount(3);

  const percentiles = page.getByRole('region', { name: 'Percentiles' });
  await expect(percentiles.getByRole('row')).toHaveCount(3);
  const differences = page.getByRole('region', { name: 'Differences' }).last();
  await expect(differences.getByRole('row', { name: /latency mean/ }).first()).toContainText('±');
  await expect(differences.getByText('yes, larger').or(differences.getByText('yes, smaller')).first()).toBeVisible();
  await picture(page, 'compared');
});

/** A simulation leads to its results by itself, and they begin with a number. */
async function answered(page: Page): Promise<void> {
  await expect(page).toHaveURL(/#\/runs\/\d+$/, { timeout: 90_000 });
  const flows = page.getByRole('region', { name: 'Figures of every flow' });
  await expect(flows.getByRole('row').nth(1)).toContainText(/\d/);
  await picture(page, 'answered');
}

/** Reaches a button with the Tab key and presses it. */
async function press(page: Page, name: string): Promise<void> {
  await reach(page, (element) => element.tag === 'BUTTON' && element.name === name, `the button ${name}`);
  await page.keyboard.press('Enter');
}

/** Reaches a field with the Tab key and fills it. */
async function type(page: Page, label: string, text: string): Promise<void> {
  await reach(page, (element) => element.name === label, `the field ${label}`);
  await page.keyboard.press('Control+A');
  await page.keyboard.type(text);
}

async function reach(page: Page, wanted: (element: { tag: string; name: string }) => boolean, what: string): Promise<void> {
  for (let i = 0; i < 80; i += 1) {
    await page.keyboard.press('Tab');
    const focused = await page.evaluate(() => {
      const element = document.activeElement as HTMLElement | null;
      const label = element instanceof HTMLInputElement || element instanceof HTMLSelectElement ? element.labels?.[0]?.textContent : undefined;
      return { tag: element?.tagName ?? '', name: (element?.getAttribute('aria-label') ?? label ?? element?.textContent ?? '').trim() };
    });
    if (wanted(focused)) return;
  }
  throw new Error(`the Tab key does not lead to ${what}`);
}

test('on a phone nothing covers a host, and what is selected stays legible above its properties', async ({ page }) => {
  const pairs = [0, 1, 2, 3, 4, 5];
  const hosts = pairs.map((pair) => `server-${pair} = { position = [0, ${pair * 140}] }\nclient-${pair} = { position = [400, ${pair * 140}] }\n`);
  const links = pairs.map((pair) => `[link.line-${pair}]\nbetween = ["server-${pair}", "client-${pair}"]\nrate = "1 Mbit/s"\n`);
  const flow = '[flow.voice]\nfrom = "server-0"\nto = "client-0"\ntransport = "udp"\nsource = { kind = "voice" }\n';
  await page.setViewportSize({ width: 390, height: 844 });
  await draft(page, `name = "pairs"\nduration = "2 s"\n[hosts]\n${hosts.join('')}${links.join('')}${flow}`);
  await page.goto(at('/edit'));
  const host = (name: string) => page.locator('.svelte-flow__node', { hasText: name });
  const box = async (name: string) => (await host(name).boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
  const bar = page.locator('.bar', { hasText: 'Predict' });
  await expect(bar.locator('.took')).toBeVisible();
  const isFree = async () => {
    const [last, covering] = [await box('server-5'), await bar.boundingBox()];
    return last.height > 0 && last.y + last.height <= (covering?.y ?? 0);
  };
  await expect.poll(isFree).toBe(true);
  await picture(page, 'phone');
  await host('server-3').click();
  await expect(page.getByRole('button', { name: 'Close the properties' })).toBeVisible();
  const area = page.locator('.canvas');
  const isInside = async () => {
    const [all, one, other] = [await area.boundingBox(), await box('server-3'), await box('client-3')];
    const isIn = ({ x, y, width, height }: typeof one) => all !== null && x >= all.x && x + width <= all.x + all.width && y >= all.y && y + height <= all.y + all.height;
    return isIn(one) && isIn(other) && one.width > 70;
  };
  await expect.poll(isInside).toBe(true);
  await picture(page, 'phone-selected');
  // Turned, little of the height is left: what adds to the drawing is there all the same, until something is selected.
  await page.getByRole('button', { name: 'Close the properties' }).click();
  await page.setViewportSize({ width: 844, height: 390 });
  const add = page.getByRole('group', { name: 'Add to the drawing' }).getByRole('button', { name: 'Host' });
  await add.click({ trial: true });
  await picture(page, 'phone-turned');
  await host('server-3').click();
  await expect(add).toBeHidden();
});

test('the label of a flow is in sight, and no station lies over it', async ({ page }) => {
  await page.goto(at('/start'));
  await page.getByText('Can we play music together?').first().click();
  const label = page.locator('.svelte-flow__edge-label .label', { hasText: 'transport = ' });
  await expect(label).toBeVisible();
  const box = async (part: string) => (await page.locator(part).first().boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
  await expect.poll(async () => {
    const [area, own, cell] = [await box('.canvas'), await box('.svelte-flow__edge-label .label'), await box('.svelte-flow__node-medium')];
    return own.x + own.width <= area.x + area.width && own.x >= cell.x + cell.width;
  }).toBe(true);
  await picture(page, 'label');
});

test('the view stays where it is while a host is dragged', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await draft(page, experiment('dragged'));
  await page.goto(at('/edit'));
  const host = page.locator('.svelte-flow__node', { hasText: 'berlin' });
  await expect(page.locator('.bar .took')).toBeVisible();
  const view = () => page.locator('.svelte-flow__viewport').evaluate((part: HTMLElement) => part.style.transform);
  // The drawing has been fitted into its area.
  let last = '';
  const isStill = async () => last === (last = await view());
  await expect.poll(isStill, { intervals: [300] }).toBe(true);
  const from = await host.boundingBox();
  if (!from) throw new Error('no host');
  const [x, y] = [from.x + from.width / 2, from.y + from.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  const before = await view();
  for (const step of [5, 10, 15, 20, 25, 30]) {
    await page.mouse.move(x, y + step);
    await page.waitForTimeout(60);
  }
  expect(await view()).toBe(before);
  const moved = await host.boundingBox();
  expect(Math.abs((moved?.y ?? 0) - from.y - 30)).toBeLessThan(6);
  await page.mouse.up();
  await expect(page.getByRole('button', { name: 'Close the properties' })).toBeVisible();
});

test('what is added is in sight', async ({ page }) => {
  await draft(page, EMPTY);
  await page.goto(at('/edit'));
  const add = page.getByRole('group', { name: 'Add to the drawing' }).getByRole('button', { name: 'Host' });
  const hosts = page.locator('.svelte-flow__node');
  for (let count = 1; count <= 5; count += 1) {
    await add.click();
    await expect(hosts).toHaveCount(count);
    await expect.poll(async () => {
      const [area, boxes] = [await page.locator('.canvas').boundingBox(), await Promise.all((await hosts.all()).map((host) => host.boundingBox()))];
      return boxes.every((box) => area && box && box.x >= area.x && box.x + box.width <= area.x + area.width && box.y >= area.y && box.y + box.height <= area.y + area.height);
    }, { message: `host ${count}` }).toBe(true);
  }
});

test('on a wide screen the properties stand beside the text', async ({ page }) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await draft(page, experiment('side by side'));
  await page.goto(at('/edit'));
  await expect(page.locator('.cm-line', { hasText: 'name = "side by side"' })).toBeVisible();
  await page.getByLabel('duration', { exact: true }).fill('21 s');
  await page.getByLabel('duration', { exact: true }).press('Enter');
  await expect(page.locator('.cm-line', { hasText: 'duration = "21 s"' })).toBeVisible();
  await picture(page, 'side-by-side');
});

test('many hosts and flows are drawn, and no field holds thousands of suggestions', async ({ page }) => {
  const numbers = Array.from({ length: 60 }, (_, i) => i);
  const hosts = numbers.map((i) => `h${i} = {}\n`);
  const links = numbers.slice(1).map((i) => `[link.l${i}]\nbetween = ["h0", "h${i}"]\nrate = "10 Mbit/s"\n`);
  const flows = numbers.slice(1).map((i) => `[flow.f${i}]\nfrom = "h${i}"\nto = "h0"\ntransport = "udp"\nsource = "voice"\n`);
  await draft(page, `name = "many"\nduration = "1 s"\n[hosts]\n${hosts.join('')}${links.join('')}${flows.join('')}`);
  await page.goto(at('/edit'));
  await expect(page.locator('.svelte-flow__node')).toHaveCount(60);
  await expect(page.getByText('No problems')).toBeVisible();
  const lists = () => page.locator('datalist').evaluateAll((all) => all.map((list) => [...(list as HTMLDataListElement).options].map(({ value }) => value)));
  expect(Math.max(...(await lists()).map((list) => list.length))).toBe(100);
  // What is written leads to those that have it.
  await page.getByPlaceholder('flow.voice.count').fill('f59.cou');
  await expect.poll(async () => (await lists()).some((list) => list.length === 1 && list[0] === 'flow.f59.count')).toBe(true);
});
