/** Runs while they are measured and afterwards: watched by several, stopped and resumed, tagged, found and deleted; plans. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { at, begin, draft, expect, experiment, finished, picture, run, server, test } from './use';

/** Eight channels in real time on this machine. */
const LIVE = `name = "watched by two"
duration = "6 s"

[hosts]
a = {}
b = {}

[link.line]
between = ["a", "b"]
rate = "100 Mbit/s"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice", samples = 80 }
count = 8
`;

test('two browsers watch a run; one that was cut off misses nothing', async ({ page, browser, request }) => {
  const { job } = await begin(request, LIVE.replace('"6 s"', '"12 s"'), 'live');
  const other = await browser.newContext();
  const second = await other.newPage();
  await Promise.all([page, second].map((each) => each.goto(at(`/jobs/${job}`))));
  const received = (each: typeof page) => each.locator('[data-received]').getAttribute('data-received').then(Number);
  await Promise.all([page, second].map((each) => expect.poll(() => received(each)).toBeGreaterThan(0)));
  await other.setOffline(true);
  await page.waitForTimeout(1_000);
  await other.setOffline(false);
  await finished(request, job);
  for (const each of [page, second]) {
    await expect(each.getByRole('link', { name: 'See the results' })).toBeVisible();
    const counts = each.locator('[data-received]');
    await expect(counts).toHaveAttribute('data-missed', '0');
    // What arrived last is counted with the next picture; both counts of one picture are read at once.
    const lacking = () => counts.evaluate((shown: HTMLElement) => Number(shown.dataset.measured) - Number(shown.dataset.received));
    await expect.poll(lacking).toBe(0);
    const here = await received(each);
    // 800 a second for twelve seconds, without those before it began to watch.
    expect(here).toBeGreaterThan(1_600);
  }
  await other.close();
});

test('a live run has the simulated band behind its points in every browser, and the page says when it leaves it', async ({ page, browser }) => {
  await draft(page, LIVE.replace('rate = "100 Mbit/s"', 'rate = "100 Mbit/s"\ndelay = "30 ms"').replace('"6 s"', '"14 s"').replace('count = 8', 'count = 2'));
  await page.goto(at('/edit'));
  await page.getByLabel('Where to run').selectOption('live');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await expect(page.getByText('Shaded: where the simulation of the file')).toBeVisible();
  // The link that is drawn does not apply: this machine is faster.
  await expect(page.getByRole('status').filter({ hasText: /^voice has left the simulated band since \d+ s: 100 % of its messages take less than 30\.0\u202fms.* less delay would fit better\.$/ })).toBeVisible();
  await picture(page, 'band');
  // Another browser has it too.
  const other = await browser.newContext();
  const second = await other.newPage();
  await second.goto(page.url());
  await expect(second.getByText('Shaded: where the simulation of the file')).toBeVisible();
  await other.close();
});

/** A call of a second and a bulk transfer, which fills the drawing of a loopback. */
const BESIDE = `name = "beside bulk"
duration = "1500 ms"

[hosts]
a = {}
b = {}

[link.line]
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "30 ms"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
reflect = true
playout = "40 ms"
source = { kind = "voice", samples = 80 }

[flow.bulk]
from = "a"
to = "b"
transport = "tcp"
source = { kind = "bulk", message = "8 KiB", interval = "2 ms" }

[limits]
"flow.voice.latency.p99" = "< 150 ms"
"flow.voice.loss" = "< 1 %"
"flow.bulk.throughput" = "> 1 Mbit/s"
`;

test('a live run of a moment has its band, figures and limits while it runs, and says that the links do not apply', async ({ page, request }) => {
  const { job } = await begin(request, BESIDE.replace('"1500 ms"', '"1500 ms"\nrepetitions = 8'), 'live');
  await page.goto(at(`/jobs/${job}`));
  await expect(page.getByText('The network was used as it is: links of the file do not apply to live, but to sim and wire. All hosts were this machine.')).toBeVisible();
  const table = page.getByRole('region', { name: 'Figures so far, table' });
  const voice = table.getByRole('row', { name: /voice/ });
  // One warning says both that the links do not apply and what is outside the band that was simulated with them.
  await expect(page.locator('p.warning').filter({ hasText: 'The network was used as it is' }).filter({ hasText: 'voice has left the simulated band' })).toBeVisible();
  await expect(page.locator('p.warning').filter({ hasText: 'voice has left the simulated band' })).toHaveCount(1);
  await expect(voice).toContainText(/\d\s\S?s round trip/);
  await expect(voice).toContainText(/latency\.p99 < 150 ms: .*s ✓\s*held/);
  await expect(voice).toContainText(/loss < 1 %: .*% ✓\s*held/);
  await expect(table.getByRole('row', { name: /bulk/ })).toContainText('one way');
  await expect(table.getByRole('row', { name: /bulk/ })).toContainText('judged at the end');
  await expect(page.getByText('Shaded: where the simulation of the file')).toBeVisible();
  await expect(page.getByRole('status').filter({ hasText: /^voice has left the simulated band since / })).toBeVisible();
  await picture(page, 'live-figures');
  await page.locator('.scatter').getByRole('button', { name: 'bulk', exact: true }).click();
  await expect(page.locator('.scatter').getByRole('button', { name: 'bulk', exact: true })).toHaveAttribute('aria-pressed', 'false');
});

test('a run is stopped, and resumed to its end', async ({ page, request }) => {
  test.setTimeout(180_000);
  // In real time, so that no machine is done before the button is pressed.
  const repeated = LIVE.replace('"6 s"', '"5 s"\nrepetitions = 2').replace('watched by two', 'stopped and resumed');
  const { job } = await begin(request, repeated, 'live');
  // What is stopped before it begins has no results.
  await expect.poll(async () => (await (await request.get(`${server()}/api/v1/jobs/${job}`)).json()).run).toBeTruthy();
  await page.goto(at(`/jobs/${job}`));
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('link', { name: 'See the results' }).click();
  await expect(page.getByText(/partial, \d+ of \d+ repetitions/)).toBeVisible();
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect(page.getByRole('region', { name: 'Progress' })).toBeVisible();
  await expect(page.getByText('complete', { exact: true })).toBeVisible({ timeout: 150_000 });
});

test('after a restart of the server the page of a job says that it is over, and offers to resume it', async ({ browser, playwright }) => {
  const [command, library] = [process.env.TRUNKLINE_TOKEN_COMMAND, process.env.TRUNKLINE_LIBRARY];
  test.skip(!command || !library, 'a server from outside is not restarted');
  test.setTimeout(150_000);
  const [program, ...first] = (JSON.parse(command ?? '[]') as string[]).slice(0, -1);
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-restart-'));
  const env = { ...process.env, TRUNKLINE_WEB: join(library ?? '', '../../dist'), TRUNKLINE_STORE: join(folder, 'store'), XDG_CONFIG_HOME: folder };
  const begun = (port: string) =>
    new Promise<{ child: ChildProcess; port: string }>((resolve, reject) => {
      const child = spawn(program ?? '', [...first, '--no-login', '--listen', `127.0.0.1:${port}`], { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
      const read = (said: Buffer) => {
        const found = /127\.0\.0\.1:([1-9]\d*)/.exec(said.toString())?.[1];
        if (found) resolve({ child, port: found });
      };
      child.stdout?.on('data', read);
      child.stderr?.on('data', read);
      child.once('exit', () => reject(new Error('the server ended')));
    });
  const kill = ({ child }: { child: ChildProcess }) => child.pid && process.kill(-child.pid, 'SIGKILL');
  let server = await begun('0');
  const context = await browser.newContext();
  const address = `http://127.0.0.1:${server.port}`;
  const client = await playwright.request.newContext();
  try {
    // A search that has ended is in the store.
    const planned = experiment('planned before a restart', { seconds: 1 }).replace(/\[sweep\][\s\S]*?(?=\[limits\])/, '');
    const { job: search } = (await (await client.post(`${address}/api/v1/plan`, { data: { text: planned, maximise: 'flow.voice.count', between: ['1', '4'], backend: 'sim' } })).json()) as { job: string };
    await expect.poll(async () => (await (await client.get(`${address}/api/v1/jobs/${search}`)).json()).state, { timeout: 60_000 }).toBe('done');
    const text = LIVE.replace('"6 s"', '"3 s"\nrepetitions = 3').replace('watched by two', 'begun before a restart');
    const { job } = (await (await client.post(`${address}/api/v1/runs`, { data: { text, backend: 'live' } })).json()) as { job: string };
    const page = await context.newPage();
    await page.goto(`${address}/#/jobs/${job}`);
    await expect.poll(() => page.locator('[data-received]').getAttribute('data-received').then(Number)).toBeGreaterThan(0);
    kill(server);
    server = await begun(server.port);
    await expect(page.getByText('The server was restarted and no longer has this job')).toBeVisible();
    await expect(page.getByRole('button', { name: 'Stop' })).toHaveCount(0);
    await expect(page.getByText(/, stopped/)).toBeVisible();
    await picture(page, 'restarted');
    await page.getByRole('button', { name: 'Resume' }).click();
    await expect(page).not.toHaveURL(new RegExp(job));
    await expect(page.getByRole('link', { name: 'See the results' })).toBeVisible({ timeout: 60_000 });
    await page.goto(`${address}/#/plan`);
    await page.getByRole('region', { name: 'Earlier' }).getByRole('link', { name: /the largest flow\.voice\.count/ }).click();
    await expect(page.getByText(/is the largest value|keeps? the limits/).first()).toBeVisible();
    await picture(page, 'kept-plan');
  } finally {
    await context.close();
    await client.dispose();
    kill(server);
    rmSync(folder, { recursive: true, force: true });
  }
});

test('the list of runs has the answer of each, opens by a click, and tags and deletes several at once', async ({ page, request }) => {
  const text = experiment('one of several', { seconds: 1, repetitions: 1 });
  const held = await run(request, text);
  const broken = await run(request, text.replace('"< 150 ms"', '"< 10 ms"'));
  await page.goto(at('/runs?name=one+of+several'));
  const row = (id: number) => page.getByRole('row').filter({ has: page.getByRole('cell', { name: String(id), exact: true }) });
  await expect(row(held)).toContainText('limits hold');
  await expect(row(held)).toContainText(/latency p99 is .* ms at voice.count = \d/);
  await expect(row(broken)).toContainText('limits broken');
  await expect(row(broken)).toContainText(/voice latency p99\.9 is .* ms at voice.count = \d/);
  await picture(page, 'runs-with-answers');
  await row(broken).getByRole('cell').nth(6).click();
  await expect(page).toHaveURL(new RegExp(`#/runs/${broken}$`));
  await page.goBack();
  for (const id of [held, broken]) await row(id).getByRole('checkbox').check();
  await page.getByRole('button', { name: 'Tag 2 runs …' }).click();
  await page.getByRole('dialog').getByLabel('New tag').fill('in one go');
  await page.getByRole('dialog').getByRole('button', { name: 'Tag', exact: true }).click();
  for (const id of [held, broken]) await expect(row(id)).toContainText('in one go');
  for (const id of [held, broken]) await row(id).getByRole('checkbox').check();
  await page.getByRole('button', { name: 'Delete 2 runs …' }).click();
  await expect(page.getByRole('dialog')).toContainText(`Runs ${held}, ${broken} with all figures, traces and audio are removed`);
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await expect(page.getByText('No run fits.')).toBeVisible();
});

test('a run is tagged, found by its tag, and deleted after a question', async ({ page, request }) => {
  const id = await run(request, experiment('to be tagged and deleted', { seconds: 1 }));
  await page.goto(at(`/runs/${id}`));
  await page.getByLabel('New tag').fill('before the concert');
  await page.getByRole('button', { name: 'Add tag' }).click();
  await expect(page.getByRole('button', { name: 'Take the tag before the concert away' })).toBeVisible();

  await page.goto(at('/runs'));
  await page.getByLabel('Tag', { exact: true }).fill('before the concert');
  await expect(page.getByText('1 of 1 run')).toBeVisible();
  await page.getByRole('link', { name: 'to be tagged and deleted' }).click();
  await page.getByRole('button', { name: 'Take the tag before the concert away' }).click();
  await expect(page.getByRole('button', { name: 'Take the tag before the concert away' })).toHaveCount(0);
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await expect(page).toHaveURL(/#\/runs$/);
  await expect(page.getByRole('link', { name: 'to be tagged and deleted' })).toHaveCount(0);
});

test('a run leaves as an archive and comes back', async ({ page, request }) => {
  const id = await run(request, experiment('there and back', { seconds: 1 }));
  await page.goto(at(`/runs/${id}?tab=downloads`));
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'The whole run' }).click();
  const path = await (await download).path();
  await request.delete(`${server()}/api/v1/runs/${id}`);
  await page.goto(at('/runs'));
  await page.getByLabel('Archive of a run').setInputFiles(path);
  await expect(page.getByRole('link', { name: 'there and back' })).toBeVisible();
});

test('every name of a figure leads to what it means', async ({ page, request }) => {
  const id = await run(request, experiment('defined', { seconds: 1 }));
  await page.goto(at(`/runs/${id}?tab=figures`));
  const table = page.getByRole('region', { name: 'Every figure at one point' });
  await expect(table.getByRole('link').first()).toBeVisible();
  const links = await table.getByRole('rowheader').or(table.getByRole('cell')).getByRole('link').evaluateAll((all) => all.map((one) => one.getAttribute('href') ?? ''));
  expect(links.length).toBeGreaterThan(30);
  const known = (await (await request.get(`${server()}/api/v1/definitions`)).json()) as { metric?: string }[];
  const metrics = new Set(known.map((one) => one.metric));
  expect(links.filter((link) => !metrics.has(decodeURIComponent(link.replace('#/definitions/', ''))))).toEqual([]);
  await table.getByRole('link', { name: 'interarrival jitter (RFC 3550)' }).click();
  await expect(page.getByText('RFC 3550 section 6.4.1').first()).toBeVisible();
});

test('a plan ends in an experiment', async ({ page }) => {
  await draft(page, experiment('planned', { seconds: 3 }).replace(/\[sweep\][\s\S]*?(?=\[limits\])/, ''));
  await page.goto(at('/plan'));
  await expect(page.getByText('flow.voice.loss < 1 %')).toBeVisible();
  // What is wrong is said in one line.
  await page.getByLabel('of the key').fill('flow.voice.conut');
  await page.getByRole('button', { name: 'Search' }).click();
  const wrong = page.getByRole('alert');
  await expect(wrong).toHaveText('unknown key flow.voice.conut; did you mean flow.voice.count?');
  expect((await wrong.boundingBox())?.height).toBeLessThan(40);
  await page.getByLabel('of the key').fill('flow.voice.count');
  await page.getByRole('button', { name: 'Search' }).click();
  await expect(page.getByText(/is the largest value shown to keep the limits/)).toBeVisible({ timeout: 150_000 });
  await picture(page, 'planned');
  await page.getByRole('button', { name: 'Open as experiment' }).click();
  await expect(page).toHaveURL(/#\/edit/);
  await expect(page.getByText('No problems')).toBeVisible();
});

test('a probe ends in advice and in an experiment', async ({ page }) => {
  const reflector = process.env.TRUNKLINE_REFLECTOR;
  test.skip(!reflector, 'a server from outside has no reflector: TRUNKLINE_REFLECTOR=HOST:PORT names one');
  await page.goto(at('/advise'));
  await page.getByRole('button', { name: 'Measure' }).click();
  await expect(page.getByText(/Where .* listens/)).toBeVisible();
  await page.getByLabel('Other end').fill(reflector ?? '');
  await page.getByLabel('Time it may take').fill('4');
  await page.getByLabel('For', { exact: true }).selectOption('telephony');
  await page.getByRole('button', { name: 'Measure' }).click();
  await expect(page.getByRole('progressbar')).toBeVisible();
  // What was measured so far is said while it goes on.
  await expect(page.getByRole('region', { name: 'Progress' }).getByText(/^udp, .*: round trip [\d.]+ ms, p99 [\d.]+ ms; \d+ of \d+ lost$/).first()).toBeVisible();
  await expect(page.getByRole('heading', { name: 'For telephony' })).toBeVisible({ timeout: 40_000 });
  await expect(page.getByRole('cell', { name: /^\d+ of \d+$/ }).first()).toBeVisible();
  await picture(page, 'advised');
  // The result says why, from its numbers; a reload keeps it, its commands are copied, and it is printed without the form.
  await expect(page.getByText(/The highest mean opinion score, [\d.]+ \(R = \d+\): .* from mouth to ear/)).toBeVisible();
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', { name: /^Copy trunkline send/ }).first().click();
  await expect(page.getByText('The command is in the clipboard.')).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^trunkline send /);
  await page.reload();
  await expect(page.getByRole('heading', { name: 'For telephony' })).toBeVisible();
  await page.emulateMedia({ media: 'print' });
  await expect(page.getByRole('button', { name: 'Measure' })).toBeHidden();
  await expect(page.getByRole('heading', { name: 'What was measured' })).toBeVisible();
  await page.emulateMedia({ media: 'screen' });
  await page.getByRole('button', { name: 'Open as experiment' }).click();
  await expect(page).toHaveURL(/#\/edit/);
  await expect(page.getByText('No problems')).toBeVisible();
});

test('published studies stand beside ours', async ({ page }) => {
  await page.goto(at('/papers'));
  await expect(page.getByRole('listitem')).toHaveCount(4);
  await page.getByRole('link', { name: /Datakit/ }).click();
  await expect(page.getByRole('heading', { level: 1 })).toContainText('Datakit');
  await expect(page.getByRole('button', { name: 'Simulate all tables' })).toBeEnabled();
  const tables = page.locator('details');
  await expect(tables.first()).toBeVisible();
  await tables.first().locator('summary').click();
  await expect(tables.first().getByRole('columnheader').first()).toBeVisible();
  await picture(page, 'study');
  // Goals name tables and columns as people do.
  await expect(page.getByRole('listitem').filter({ hasText: /^✓\s*met/ }).filter({ hasText: 'Throughput of bulk transfers, 1 and 4 conversations, throughput per conversation, B/s: median error at most 3 %' })).toBeVisible();
  // Its files are edited here, with the hosts that they name.
  await page.getByRole('button', { name: 'Open in the editor: throughput.toml' }).click();
  await expect(page.getByLabel('Name of the file')).toHaveValue('hawley1989-throughput.toml');
  await expect(page.getByText('No problems')).toBeVisible();
});

test('each cell of a study says what it is worth as a prediction, and each class has its errors', async ({ page, request }) => {
  const study = (await (await request.get(`${server()}/api/v1/papers/weaver1992`)).json()) as { paper: { classes: { class: string; cells: number; blind_median: number | null }[] }; constants: number };
  const blind = study.paper.classes.find((one) => one.class === 'blind');
  await page.goto(at('/papers/weaver1992'));
  const classes = page.getByRole('region', { name: 'Errors by class' });
  await expect(classes.getByRole('row')).toHaveCount(study.paper.classes.length + 1);
  const row = classes.getByRole('row', { name: /^blind/ });
  await expect(row).toContainText('not seen until the model was fixed');
  await expect(row.getByRole('cell').nth(0)).toHaveText(String(blind?.cells));
  // As the terminal prints it: one digit behind the point.
  await expect(row.getByRole('cell').nth(3)).toHaveText(`${((blind?.blind_median ?? 0) * 100).toFixed(1).replace(/\.0$/, '')}\u202f%`);
  await expect(page.getByText(`${study.constants} constants taken from published cells`)).toBeVisible();
  await picture(page, 'classes');
  const table = page.locator('details', { has: page.getByText(/^99\.9 % latency beside single packets per token/) });
  await table.locator('summary').click();
  await expect(table.getByRole('columnheader', { name: 'class', exact: true }).first()).toBeVisible();
  await expect(table.getByText(/^f fitted, b blind; \( \) repeats another cell, not counted$/)).toBeVisible();
  await expect(table.getByRole('cell', { name: 'fitted, repeats another cell' })).toHaveCount(10);
  await expect(table.getByRole('cell', { name: 'blind', exact: true })).toHaveCount(30);
  await table.scrollIntoViewIfNeeded();
  await picture(page, 'classes-of-cells');
});
