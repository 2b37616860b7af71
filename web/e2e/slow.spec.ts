/** A slow server, a slow browser: nothing acts before its data is there, and no late answer acts on something else. */
import type { Page } from '@playwright/test';
import { at, draft, expect, experiment, hold, run, server, test } from './use';

const TEXT = experiment('slow', { seconds: 20 });
const duration = (page: Page) => page.getByLabel('duration', { exact: true });

async function change(page: Page, to: string): Promise<void> {
  await duration(page).fill(to);
  await duration(page).press('Enter');
}

test('what is opened in the first moment is not taken away by the draft', async ({ page }) => {
  await draft(page, TEXT);
  await page.addInitScript(() => {
    const asked = new Promise<void>((resolve) => Object.assign(window, { answer: resolve }));
    const query = navigator.locks.query.bind(navigator.locks);
    navigator.locks.query = () => asked.then(query);
  });
  await page.goto(at('/edit'));
  await expect(page.getByRole('button', { name: 'Save', exact: true })).toBeDisabled();
  await page.getByRole('button', { name: 'New', exact: true }).click();
  await page.evaluate(() => (window as unknown as { answer: () => void }).answer());
  await expect(duration(page)).toHaveValue('30 s');
  await expect(page.getByLabel('Name of the file')).toHaveValue('experiment.toml');
  await expect(page.getByRole('button', { name: 'Save', exact: true })).toBeEnabled();
});

test('an edit on its way to the server stays with its file', async ({ page }) => {
  await draft(page, TEXT, 'first.toml');
  await page.goto(at('/edit'));
  await expect(duration(page)).toHaveValue('20 s');
  const release = await hold(page, '**/api/v1/edit');
  await change(page, '11 s');
  await page.getByRole('button', { name: 'New', exact: true }).click();
  await release();
  await expect(page.getByLabel('Name of the file')).toHaveValue('experiment.toml');
  await expect(duration(page)).toHaveValue('30 s');
  await page.getByRole('button', { name: 'Open…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: /^slow first\.toml/ }).click();
  await expect(duration(page)).toHaveValue('11 s');
});

test('a draft that arrives after its dialog was closed is not opened, and History lists no other draft', async ({ page }) => {
  await draft(page, TEXT, 'late.toml');
  await page.goto(at('/edit'));
  await expect(duration(page)).toHaveValue('20 s');
  const kept = () => page.waitForResponse((response) => response.url().includes('/drafts/') && response.request().method() === 'PUT');
  const first = kept();
  await change(page, '11 s');
  await first;
  const versions = page.getByRole('dialog', { name: 'History' }).getByRole('listitem');
  await page.getByRole('button', { name: 'History' }).click();
  await expect(versions).toHaveCount(1);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'New', exact: true }).click();
  await expect(duration(page)).toHaveValue('30 s');
  const second = kept();
  await change(page, '12 s');
  await second;
  const release = await hold(page, '**/api/v1/drafts/*', (request) => request.method() === 'GET');
  await page.getByRole('button', { name: 'History' }).click();
  await expect(page.getByRole('dialog', { name: 'History' })).toBeVisible();
  await expect(versions).toHaveCount(0);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Open…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: /^slow late\.toml/ }).click();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await release();
  await expect(duration(page)).toHaveValue('12 s');
});

test('what was selected while the server renames stays selected', async ({ page }) => {
  await draft(page, TEXT);
  await page.goto(at('/edit'));
  await page.locator('.svelte-flow__node', { hasText: 'berlin' }).click();
  const release = await hold(page, '**/api/v1/edit');
  const name = page.getByLabel('name', { exact: true });
  await name.fill('paris');
  await name.press('Enter');
  await page.locator('.svelte-flow__edge-label', { hasText: 'voice' }).first().click();
  await expect(page.getByLabel('Properties of')).toHaveValue('flow/voice');
  await release();
  await expect(page.locator('.svelte-flow__node', { hasText: 'paris' })).toBeVisible();
  await expect(page.getByLabel('Properties of')).toHaveValue('flow/voice');
});

test('what runs is the file as it was when Run was pressed', async ({ page }) => {
  await draft(page, TEXT.replace(/\[sweep\][\s\S]*?(?=\[limits\])/, ''));
  await page.goto(at('/edit'));
  await expect(page.getByText('No problems')).toBeVisible();
  await page.getByLabel('Where to run').selectOption('live');
  const release = await hold(page, '**/api/v1/predict');
  let sent = '';
  await page.route('**/api/v1/runs', (route) => {
    sent = (route.request().postDataJSON() as { text: string }).text;
    return route.abort();
  });
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await change(page, '11 s');
  await expect(duration(page)).toHaveValue('11 s');
  await expect(page.getByRole('button', { name: /^Undo: duration/ })).toBeEnabled();
  await release();
  await expect.poll(() => sent).toContain('duration = "20 s"');
});

test('of two questions at the start the last one is answered', async ({ page }) => {
  const release = await hold(page, '**/api/v1/examples');
  await page.goto(at('/start'));
  await page.getByRole('button', { name: /^Do calls survive/ }).click();
  await page.getByRole('button', { name: /^Start from nothing/ }).click();
  await expect(duration(page)).toHaveValue('30 s');
  await release();
  await page.getByRole('link', { name: 'Runs', exact: true }).click();
  await expect(page.getByRole('heading', { name: 'Runs', exact: true })).toBeVisible();
  await page.getByRole('link', { name: 'Draw', exact: true }).click();
  await expect(page.getByText('No problems')).toBeVisible();
  await expect(page.getByLabel('Name of the file')).toHaveValue('experiment.toml');
});

test('runs are found by all that was asked, and older ones of another list are not added', async ({ page, request }) => {
  await run(request, experiment('listed', { seconds: 1, repetitions: 1 }));
  await page.route('**/api/v1/runs?*', async (route) => {
    const isOlder = route.request().url().includes('before=');
    const answer = (await (await route.fetch()).json()) as { runs: { id: number; name: string }[]; next: number | null };
    const [first] = answer.runs;
    if (isOlder && first) answer.runs = [{ ...first, id: 987_654, name: 'of another list' }];
    await route.fulfill({ json: { ...answer, next: isOlder ? null : 1_000_000 } }).catch(() => undefined);
  });
  const release = await hold(page, '**/api/v1/runs?*', (asked) => asked.url().includes('before='));
  await page.goto(at('/runs'));
  await page.getByRole('button', { name: 'Older runs' }).click();
  await page.getByLabel('Name', { exact: true }).fill('listed');
  await page.getByLabel('Backend', { exact: true }).selectOption('sim');
  await expect(page).toHaveURL(/name=listed&backend=sim$/);
  await expect(page.getByRole('table', { name: 'Runs' }).getByRole('link', { name: 'listed' }).first()).toBeVisible();
  await release();
  await expect(page.getByText('of another list')).toHaveCount(0);
});

test('dots of one point are not looked at in another', async ({ page, request }) => {
  const id = await run(request, experiment('two points', { seconds: 2, repetitions: 1 }));
  await page.goto(at(`/runs/${id}?tab=latency`));
  await expect(page.locator('[aria-busy=false][data-version]')).toBeVisible();
  const release = await hold(page, '**/points/1/**/latency?*');
  await page.getByLabel('Point', { exact: true }).selectOption({ label: 'voice.count = 6' });
  await expect(page.locator('[aria-busy=true][data-version]')).toBeVisible();
  await page.getByRole('button', { name: 'What caused the worst?' }).click();
  await expect(page).toHaveURL(/tab=latency$/);
  await release();
  await expect(page.locator('[aria-busy=false][data-version]')).toBeVisible();
  await page.getByRole('button', { name: 'What caused the worst?' }).click();
  await expect(page).toHaveURL(/point=1/);
});

test('a plan waits until its experiment was read, and leaves a key that was written', async ({ page }) => {
  await draft(page, TEXT);
  const release = await hold(page, '**/api/v1/check');
  await page.goto(at('/plan'));
  await expect(page.getByLabel('Experiment', { exact: true })).toHaveValue('editor');
  const search = page.getByRole('button', { name: 'Search' });
  await expect(search).toBeDisabled();
  const key = page.getByLabel(/^of the key/);
  await key.fill('flow.bulk.transport.window');
  await release();
  await expect(search).toBeEnabled();
  await expect(key).toHaveValue('flow.bulk.transport.window');
});

test('an agent that was enrolled stays in the list when an older answer arrives', async ({ page }) => {
  const agent = (name: string) => ({ name, address: `${name}.example:4781`, enrolled: '2026-01-02T03:04:05Z', fingerprint: 'ab:cd' });
  const known = ['ottawa'];
  await page.route(/\/api\/v1\/agents(\?|$)/, async (route) => {
    if (route.request().method() === 'POST') {
      known.push('berlin');
      return route.fulfill({ json: agent('berlin') });
    }
    return route.fulfill({ json: known.map((name) => ({ ...agent(name), ...(route.request().url().includes('status') ? { reachable: true } : {}) })) });
  });
  let isFirst = true;
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  await page.route('**/api/v1/agents?status=true', async (route) => {
    if (!isFirst) return route.fallback();
    isFirst = false;
    await released;
    await route.fulfill({ json: [{ ...agent('ottawa'), reachable: true }] }).catch(() => undefined);
  });
  await page.goto(at('/agents'));
  await expect(page.getByText('asking …')).toBeVisible();
  await page.getByLabel(/^Address/).fill('berlin.example:4781');
  await page.getByLabel(/^Code/).fill('ABCD-EFGH');
  await page.getByRole('button', { name: 'Enrol', exact: true }).click();
  const berlin = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'berlin' }) });
  await expect(berlin.getByText('answers')).toBeVisible();
  release();
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 100)));
  await expect(berlin.getByText('answers')).toBeVisible();
});

test('a job of one study is not that of the next', async ({ page, request }) => {
  const papers = (await (await request.get(`${server()}/api/v1/papers`)).json()) as { name: string; title: string }[];
  const [first, second] = papers.map(({ name }) => name);
  const job = { id: 'of-the-first', kind: 'paper', state: 'running', title: 'Tables of the first', created: '2026-01-02T03:04:05Z', progress: { fraction: 0.5, points: 1, repetitions: 2, repetitions_done: 1 } };
  await page.route(`**/api/v1/papers/${first}`, async (route) => route.fulfill({ json: { ...((await (await route.fetch()).json()) as object), job: job.id } }));
  await page.route(`**/api/v1/jobs/${job.id}`, (route) => route.fulfill({ json: job }));
  await page.goto(at(`/papers/${first}`));
  await expect(page.getByRole('progressbar', { name: job.title })).toBeVisible();
  await page.goto(at(`/papers/${second}`));
  await expect(page.getByRole('heading', { name: papers[1]?.title ?? '' })).toBeVisible();
  await expect(page.getByRole('progressbar')).toHaveCount(0);
});
