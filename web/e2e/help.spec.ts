/** Help: the keys, and the documentation that the server has itself. */
import { at, draft, expect, experiment, picture, run, server, test } from './use';

test('? lists the keys, but not where it is typed, and every view links its chapter', async ({ page, request }) => {
  await draft(page, experiment('helped'));
  await page.goto(at('/edit'));
  await expect(page.locator('.svelte-flow__node').first()).toBeVisible();
  const dialog = page.getByRole('dialog', { name: 'Keys' });
  const name = page.getByLabel('Name of the file');
  await name.click();
  await page.keyboard.type('?');
  await expect(name).toHaveValue(/\?/);
  await expect(dialog).toHaveCount(0);
  await page.getByRole('tab', { name: 'Properties' }).focus();
  await page.keyboard.press('?');
  await expect(dialog.getByText('duplicates the selection')).toBeVisible();
  await picture(page, 'keys');
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);
  const chapters = {
    '/start': 'tutorial.html',
    '/edit': 'page.html#draw',
    '/runs': 'page.html#compare',
    '/runs/1': 'page.html#results',
    '/jobs/1': 'page.html#run-and-watch',
    '/compare/1/2': 'page.html#compare',
    '/definitions': 'metrics.html',
    '/papers': 'papers.html',
    '/advise': 'advisor.html',
    '/plan': 'planning.html',
    '/agents': 'agents.html',
    '/login': 'page.html#access-from-other-machines',
  };
  for (const [path, chapter] of Object.entries(chapters)) {
    await page.goto(at(path));
    const href = (await page.getByRole('link', { name: 'Docs of this page' }).getAttribute('href')) ?? '';
    expect(href, path).toBe(`/docs/${chapter}`);
    const [address = '', place] = href.split('#');
    const answer = await request.get(server() + address);
    expect(answer.ok(), href).toBe(true);
    if (place) expect(await answer.text()).toContain(`id="${place}"`);
  }
});

test('keys of a single character are switched off in the help, for good, and nothing listens to them', async ({ page, request }) => {
  const id = await run(request, experiment('without letters', { seconds: 1, repetitions: 1 }).replace('samples = 80 }', 'samples = 80, file = "speech.wav" }'));
  await page.goto(at(`/runs/${id}?tab=sound`));
  const dialog = page.getByRole('dialog', { name: 'Keys' });
  const sent = page.getByRole('button', { name: 'Sent' });
  await expect(page.getByText(/equally loud/)).toBeVisible();
  await page.keyboard.press('x');
  await expect(sent).toHaveAttribute('aria-pressed', 'true');
  await page.keyboard.press('?');
  await dialog.getByLabel('keys of a single character').uncheck();
  await picture(page, 'keys-off');
  await page.keyboard.press('Escape');
  for (const again of [false, true]) {
    if (again) await page.reload();
    await expect(page.getByText(/equally loud/)).toBeVisible();
    const pressed = await sent.getAttribute('aria-pressed');
    await page.keyboard.press('x');
    await page.keyboard.press('?');
    await expect(sent).toHaveAttribute('aria-pressed', pressed ?? '');
    await expect(dialog).toHaveCount(0);
    await expect(page.getByText(/switches between the two/)).toHaveCount(0);
  }
  await page.getByRole('button', { name: 'Blind test' }).click();
  await page.keyboard.press('x');
  await page.keyboard.press('1');
  await expect(page.getByText('Trial 1.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'A: Sent' })).toHaveAttribute('aria-pressed', 'true');
  // The button of the help is still there, and so is the way back.
  await page.getByRole('button', { name: 'Keys' }).click();
  await dialog.getByLabel('keys of a single character').check();
  await page.keyboard.press('Escape');
  await page.keyboard.press('1');
  await expect(page.getByText('Trial 2.')).toBeVisible();
});

test('the documentation begins where its folder is asked for', async ({ page }) => {
  await page.goto(`${server()}/docs/`);
  await expect(page).toHaveTitle('Trunkline');
  await expect(page.getByRole('navigation', { name: 'Chapters' })).toBeVisible();
});

test('the documentation is whole: every link within it leads somewhere', async ({ page, request }) => {
  const read = new Map<string, string>();
  const wanted = ['/docs/introduction.html'];
  const missing: string[] = [];
  for (let path = wanted.pop(); path !== undefined; path = wanted.pop()) {
    const [address = '', place] = path.split('#');
    if (!read.has(address)) {
      const answer = await request.get(server() + address);
      if (!answer.ok()) missing.push(path);
      read.set(address, answer.ok() && address.endsWith('.html') ? await answer.text() : '');
      for (const [, link = ''] of (read.get(address) ?? '').matchAll(/(?:href|src)="([^"]*)"/g)) {
        if (link.startsWith('#')) wanted.push(address + link);
        else if (link.startsWith('/')) wanted.push(link);
        else expect(link).toMatch(/^https?:/);
      }
    }
    if (place && !read.get(address)?.includes(`id="${place}"`)) missing.push(path);
    for (let at = wanted.length - 1; at >= 0; at--) if (read.has(wanted[at] ?? '')) wanted.splice(at, 1);
  }
  expect(missing).toEqual([]);
  expect(read.size).toBeGreaterThan(30);
  await page.goto(`${server()}/docs/page.html`);
  await expect(page.getByRole('link', { name: 'The page', exact: true })).toHaveAttribute('aria-current', 'page');
  await expect.poll(() => page.getByRole('img').evaluate((image: HTMLImageElement) => image.naturalWidth)).toBeGreaterThan(0);
  await page.getByRole('link', { name: 'Tutorial' }).click();
  await expect(page.getByText('[flow.call]').first()).toBeVisible();
  await picture(page, 'docs');
});
