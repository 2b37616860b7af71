/** Nothing that was drawn is lost: not between windows, not at New, not by renaming, not without the server. */
import { STATE } from './server';
import { at, draft, expect, experiment, picture, test } from './use';

const TEXT = experiment('of the first window');

test('two windows keep a draft each, also over a reload', async ({ page, context }) => {
  await draft(page, TEXT);
  await page.goto(at('/edit'));
  const duration = (of: typeof page) => of.getByLabel('duration', { exact: true });
  await expect(duration(page)).toHaveValue('20 s');
  const second = await context.newPage();
  await second.goto(at('/edit'));
  await expect(duration(second)).toHaveValue('20 s');
  await duration(page).fill('11 s');
  await duration(page).press('Enter');
  await expect(page.getByText('changed', { exact: true })).toBeVisible();
  await second.getByLabel('repetitions', { exact: true }).fill('5');
  await second.getByLabel('repetitions', { exact: true }).press('Enter');
  await expect(second.getByText('changed', { exact: true })).toBeVisible();
  // What is left is kept as it is then.
  for (const each of [page, second]) await each.reload();
  await expect(duration(page)).toHaveValue('11 s');
  await expect(page.getByLabel('repetitions', { exact: true })).toHaveValue('3');
  await expect(duration(second)).toHaveValue('20 s');
  await expect(second.getByLabel('repetitions', { exact: true })).toHaveValue('5');
  // What was not saved is still said to be changed, and can be undone.
  await expect(page.getByText('changed', { exact: true })).toBeVisible();
  await page.getByRole('button', { name: /^Undo: duration/ }).click();
  await expect(duration(page)).toHaveValue('20 s');
});

test('New keeps what was drawn among the drafts', async ({ page }) => {
  await draft(page, TEXT);
  await page.goto(at('/edit'));
  const duration = page.getByLabel('duration', { exact: true });
  await duration.fill('11 s');
  await duration.press('Enter');
  await expect(page.getByText('changed', { exact: true })).toBeVisible();
  const place = () => page.getByRole('button', { name: 'New', exact: true }).boundingBox();
  const before = await place();
  await page.getByRole('button', { name: 'New', exact: true }).click();
  await expect(duration).toHaveValue('30 s');
  await expect(page.getByText('changed', { exact: true })).toBeHidden();
  expect((await place())?.x, 'nothing moves when the mark goes').toBe(before?.x);
  await page.reload();
  await expect(duration).toHaveValue('30 s');
  await page.getByRole('button', { name: 'Open…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: /^of the first window drawn\.toml/ }).first().click();
  await expect(duration).toHaveValue('11 s');
  await expect(page.getByText('changed', { exact: true })).toBeVisible();
});

test('what is renamed stays selected, with the focus in its name', async ({ page }) => {
  await draft(page, TEXT);
  await page.goto(at('/edit'));
  for (const [what, old, name] of [['.svelte-flow__node', 'berlin', 'paris'], ['.svelte-flow__edge-label', 'voice', 'speech']] as const) {
    await page.locator(what, { hasText: old }).first().click();
    const field = page.getByLabel('name', { exact: true });
    await field.fill(name);
    await field.press('Enter');
    await expect(page.locator(what, { hasText: name }).first()).toBeVisible();
    await expect(page.getByLabel('Properties of')).toHaveValue(new RegExp(`/${name}$`));
    await expect(field).toHaveValue(name);
    await expect(field).toBeFocused();
  }
  // A host is renamed where it stands, by a double click or F2; Escape leaves it as it was.
  await page.locator('.svelte-flow__node', { hasText: 'ottawa' }).dblclick();
  const inPlace = page.getByLabel('New name of ottawa');
  await expect(inPlace).toBeFocused();
  await inPlace.fill('oslo');
  await inPlace.press('Enter');
  const oslo = page.locator('.svelte-flow__node', { hasText: 'oslo' });
  await expect(oslo).toBeVisible();
  await expect(page.getByLabel('Properties of')).toHaveValue('hosts/oslo');
  await expect(oslo).toBeFocused();
  await page.keyboard.press('F2');
  await page.getByLabel('New name of oslo').fill('nowhere');
  await page.keyboard.press('Escape');
  await expect(page.getByLabel('New name of oslo')).toHaveCount(0);
  await expect(oslo).toBeVisible();
  await expect(oslo).toBeFocused();
  // So are links and flows.
  for (const [old, name, section] of [['trunk', 'cable', 'link'], ['speech', 'talk', 'flow']] as const) {
    const label = page.locator('.svelte-flow__edge-label', { hasText: old }).first();
    await label.dblclick();
    const field = page.getByLabel(`New name of ${old}`);
    await expect(field).toBeFocused();
    await field.fill('a b!');
    await field.press('Enter');
    await expect(page.getByRole('log', { name: 'Messages' })).toContainText('letter');
    await label.dblclick();
    await field.fill(name);
    await picture(page, `renamed-${section}`);
    await field.press('Enter');
    await expect(page.locator('.svelte-flow__edge-label', { hasText: name }).first()).toBeVisible();
    await expect(page.getByLabel('Properties of')).toHaveValue(`${section}/${name}`);
    await expect(page.locator('.svelte-flow__edge:focus')).toHaveCount(1);
    await page.keyboard.press('F2');
    await expect(page.getByLabel(`New name of ${name}`)).toBeFocused();
    await page.keyboard.press('Escape');
    await expect(page.locator('.svelte-flow__edge:focus')).toHaveCount(1);
  }
});

test('drafts are in folders, and templates are copied', async ({ page }) => {
  await draft(page, TEXT.replace('of the first window', 'in a folder'), 'plain.toml');
  // Its locks come late: until the file is there, its name cannot be edited.
  await page.addInitScript(() => {
    const query = navigator.locks.query.bind(navigator.locks);
    navigator.locks.query = async () => {
      await new Promise((waited) => setTimeout(waited, 500));
      return query();
    };
  });
  await page.goto(at('/edit'));
  const name = page.getByLabel('Name of the file');
  await name.fill(' calls / office ');
  await name.press('Enter');
  await expect(name).toHaveValue('calls/office.toml');
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  expect((await download).suggestedFilename()).toBe('office.toml');
  const dialog = page.getByRole('dialog');
  const open = () => page.getByRole('button', { name: 'Open…' }).click();
  await open();
  await dialog.getByRole('button', { name: 'Keep office.toml as a template' }).click();
  const template = dialog.getByRole('button', { name: /^office\.toml office\.toml/ });
  await expect(template).toBeVisible();
  await picture(page, 'templates');
  await template.click();
  // A copy, with nothing that could be undone to the template.
  await expect(dialog).toBeHidden();
  await expect(name).toHaveValue('office.toml');
  await page.getByLabel('duration', { exact: true }).fill('17 s');
  await page.getByLabel('duration', { exact: true }).press('Enter');
  await open();
  await dialog.getByRole('button', { name: 'Edit the template office.toml' }).click();
  await expect(name).toHaveValue('templates/office.toml');
  await expect(page.getByLabel('duration', { exact: true })).not.toHaveValue('17 s');
  await open();
  await expect(dialog.getByRole('heading', { name: 'Drafts', exact: true })).toBeVisible();
  await expect(dialog.getByRole('heading', { name: 'Drafts in calls' })).toBeVisible();
  // Examples are grouped, each with a sentence.
  const topic = dialog.getByRole('heading', { name: 'Wi-Fi and mobile networks' });
  await topic.scrollIntoViewIfNeeded();
  await expect(dialog.getByRole('button', { name: /phones in one cell How many simultaneous calls .* phones\.toml/ })).toBeVisible();
  await picture(page, 'examples');
});

test('several are selected, copied, pasted and removed together', async ({ page }) => {
  await draft(page, TEXT);
  await page.goto(at('/edit'));
  const nodes = page.locator('.svelte-flow__node');
  await nodes.filter({ hasText: 'berlin' }).click();
  await nodes.filter({ hasText: 'ottawa' }).click({ modifiers: ['Shift'] });
  await expect(page.locator('.svelte-flow__node.selected')).toHaveCount(2);
  await page.keyboard.press('Control+c');
  await page.keyboard.press('Control+v');
  // Two hosts, their link and their flows.
  await expect(nodes).toHaveCount(4);
  await expect(page.locator('.svelte-flow__edge-label', { hasText: 'voice-2' })).toBeVisible();
  await page.getByRole('tab', { name: 'Text' }).click();
  await expect(page.locator('.cm-line', { hasText: 'between = ["berlin-2", "ottawa-2"]' })).toBeVisible();
  await expect(page.getByText('No problems')).toBeVisible();
  await page.getByRole('button', { name: /^Undo: pasting/ }).click();
  await expect(nodes).toHaveCount(2);
  await page.getByRole('button', { name: /^Redo: pasting/ }).click();
  await expect(nodes).toHaveCount(4);
  // With the keyboard alone.
  await nodes.filter({ hasText: 'berlin-2' }).focus();
  await page.keyboard.press('Enter');
  await nodes.filter({ hasText: 'ottawa-2' }).focus();
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.press('Delete');
  await expect(nodes).toHaveCount(2);
  await expect(page.getByText(/2 hosts are gone, and 3 things/)).toBeVisible();
});

test('a field takes units as people write them, and asks where they may mean two things', async ({ page }) => {
  await draft(page, TEXT);
  await page.goto(at('/edit'));
  await page.locator('.svelte-flow__edge-label', { hasText: 'trunk' }).click();
  const rate = page.getByLabel('rate, the value', { exact: true }).first();
  await rate.fill('3M');
  await rate.press('Enter');
  await expect(rate).toHaveValue('3 Mbit/s');
  await rate.fill('1 MB/s');
  await rate.press('Enter');
  await page.getByRole('button', { name: 'Write 8 Mbit/s' }).first().click();
  await expect(rate).toHaveValue('8 Mbit/s');
  await expect(page.getByText('No problems')).toBeVisible();
});

test('the text completes, explains and mends', async ({ page }) => {
  await draft(page, TEXT.replace('delay = "51.5 ms"', 'delay = "51.5 ms"\nloss = "1 %"').replace('"1594 kbit/s"', '"1.5Mbps"'));
  await page.goto(at('/edit'));
  await page.getByRole('tab', { name: 'Text' }).click();
  await page.getByRole('button', { name: 'Write "1.5 Mbit/s"' }).click();
  await expect(page.locator('.cm-line', { hasText: 'rate = "1.5 Mbit/s"' })).toBeVisible();
  await expect(page.getByText('No problems')).toBeVisible();
  await page.locator('.cm-line', { hasText: 'loss = "1 %"' }).first().click();
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await page.keyboard.type('jit');
  const offered = page.locator('.cm-tooltip-autocomplete');
  await expect(offered.getByText('jitter', { exact: true })).toBeVisible();
  await expect(page.locator('.cm-completionInfo')).toContainText('random delay of each packet');
  await page.keyboard.press('Escape');
  for (let i = 0; i < 3; i += 1) await page.keyboard.press('Backspace');
  await page.keyboard.type('mtu = ');
  await page.keyboard.press('Control+Space');
  await expect(offered).toContainText('1500 B');
  await page.keyboard.press('Escape');
  await page.locator('.cm-line', { hasText: 'rate = "1.5 Mbit/s"' }).hover({ position: { x: 16, y: 9 } });
  await expect(page.locator('.cm-tooltip-hover')).toContainText('1 bit/s to 1000 Gbit/s');
  await picture(page, 'text-help');
});

test('a field shows what the file has when the server did not take the edit', async ({ page }) => {
  await draft(page, TEXT);
  await page.goto(at('/edit'));
  const duration = page.getByLabel('duration', { exact: true });
  await expect(duration).toHaveValue('20 s');
  await page.route('**/api/v1/edit', (route) => route.abort());
  await duration.fill('7 s');
  await duration.press('Enter');
  await expect(page.getByText(/The server does not answer/).first()).toBeVisible();
  await expect(duration).toHaveValue('20 s');
  await page.unroute('**/api/v1/edit');
  await duration.fill('7');
  await duration.press('Enter');
  await expect(duration).toHaveValue('7 s');
});

test('removing a host leaves the others where they are, and the focus in the drawing', async ({ page }) => {
  await draft(page, TEXT.replace('ottawa = {}', 'ottawa = {}\noslo = {}'));
  await page.goto(at('/edit'));
  const oslo = page.locator('.svelte-flow__node', { hasText: 'oslo' });
  const transform = () => oslo.evaluate((node: HTMLElement) => node.style.transform);
  const before = await transform();
  await page.locator('.svelte-flow__node', { hasText: 'ottawa' }).click();
  await page.keyboard.press('Delete');
  await expect(page.locator('.svelte-flow__node')).toHaveCount(2);
  expect(await transform()).toBe(before);
  await expect.poll(() => page.evaluate(() => document.activeElement?.className)).toContain('svelte-flow__node');
});

test('a dialog begins with what it asks, and a link with the host that is selected', async ({ page }) => {
  await draft(page, TEXT.replace('ottawa = {}', 'ottawa = {}\noslo = {}'));
  await page.goto(at('/edit'));
  await page.locator('.svelte-flow__node', { hasText: 'oslo' }).click();
  const palette = page.getByRole('group', { name: 'Add to the drawing' });
  await palette.getByRole('button', { name: 'Link' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByLabel('Between', { exact: true })).toHaveValue('oslo');
  await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toMatch(/INPUT|SELECT/);
  await page.keyboard.press('Escape');
  await palette.getByRole('button', { name: 'Flow' }).click();
  await dialog.getByLabel('Source').selectOption('bulk');
  await expect(dialog.getByLabel('Transport')).toHaveValue('tcp');
  await page.keyboard.press('Escape');
});

test('a file without flows is not said to be without problems', async ({ page }) => {
  await draft(page, TEXT.replace(/\[flow\.voice\][\s\S]*/, ''));
  await page.goto(at('/edit'));
  await expect(page.getByText(/Nothing to run: the file has no flows/)).toBeVisible();
  await expect(page.getByText('No problems')).toHaveCount(0);
  await expect(page.getByText(/in real time/)).toHaveCount(0);
});

test('what was meant is written by a click, and a duplicate stands beside what it is like', async ({ page }) => {
  await draft(page, TEXT.replace('transport = "udp"', 'transport = "upd"'));
  await page.goto(at('/edit'));
  await page.getByRole('button', { name: 'Write udp' }).click();
  await expect(page.getByText('No problems')).toBeVisible();
  await page.getByRole('tab', { name: 'Text' }).click();
  await page.locator('.cm-line', { hasText: 'flow.voice.loss' }).click();
  await page.keyboard.press('Home');
  await page.keyboard.press('Shift+End');
  await page.keyboard.type('"flow.vocie.loss" = "< 1 %"');
  await page.getByRole('button', { name: 'Write voice' }).click();
  await expect(page.locator('.cm-line', { hasText: '"flow.voice.loss" = "< 1 %"' })).toBeVisible();
  await expect(page.getByText('No problems')).toBeVisible();
  await page.getByRole('tab', { name: 'Properties' }).click();
  await page.locator('.svelte-flow__edge-label', { hasText: 'voice' }).first().click();
  await page.getByRole('button', { name: 'Duplicate', exact: true }).click();
  await expect(page.locator('.svelte-flow__edge-label', { hasText: 'voice-2' })).toBeVisible();
  await expect(page.getByLabel('Properties of')).toHaveValue('flow/voice-2');
  await page.locator('.svelte-flow__node', { hasText: 'berlin' }).click();
  await page.keyboard.press('Control+d');
  await expect(page.locator('.svelte-flow__node')).toHaveCount(3);
});

test('the server keeps drafts with their history, and nothing is overwritten in silence', async ({ page, browser }) => {
  await draft(page, TEXT.replace('of the first window', 'seen everywhere'), 'everywhere.toml');
  await page.goto(at('/edit'));
  const duration = (of: typeof page) => of.getByLabel('duration', { exact: true });
  const change = async (of: typeof page, to: string) => {
    const saved = of.waitForResponse((response) => response.url().includes('/drafts/') && response.request().method() === 'PUT' && (response.request().postData() ?? '').includes(to));
    await duration(of).fill(to);
    await duration(of).press('Enter');
    return (await saved).status();
  };
  expect(await change(page, '11 s')).toBe(200);
  expect(await change(page, '12 s')).toBe(200);
  // Another browser has it too.
  const context = await browser.newContext({ storageState: STATE });
  const other = await context.newPage();
  await other.goto(at('/edit'));
  await other.getByRole('button', { name: 'Open…' }).click();
  await other.getByRole('dialog').getByRole('button', { name: /^everywhere\.toml/ }).first().click();
  await expect(duration(other)).toHaveValue('12 s');
  expect(await change(other, '13 s')).toBe(200);
  // The first window does not know of it: it goes on with a draft of its own, and says so.
  expect(await change(page, '14 s')).toBe(409);
  await expect(page.getByText(/also changed in another window. Nothing is overwritten/)).toBeVisible();
  await expect(page.getByLabel('Name of the file')).toHaveValue('everywhere-copy.toml');
  await expect(duration(page)).toHaveValue('14 s');
  await expect(duration(other)).toHaveValue('13 s');
  // An earlier version is had back, as a step that can be undone.
  await other.getByRole('button', { name: 'History' }).click();
  const versions = other.getByRole('dialog').getByRole('listitem');
  await expect(versions).toHaveCount(2);
  await versions.last().getByRole('button').click();
  await expect(duration(other)).toHaveValue('11 s');
  await other.getByRole('button', { name: /^Undo: going back/ }).click();
  await expect(duration(other)).toHaveValue('13 s');
  await other.getByRole('button', { name: 'Duplicate the file' }).click();
  await expect(other.getByLabel('Name of the file')).toHaveValue('everywhere-copy.toml');
  await context.close();
});
