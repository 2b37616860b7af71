/** A bad moment is looked at again: its cause in a sentence, one timeline, a link that holds it, and remedies that are ranked. */
import { at, example, expect, picture, run, test } from './use';

test('a brushed spike says what caused it, its link shows it again, and three remedies are ranked', async ({ page, request, context }) => {
  const id = await run(request, (await example(request, 'voice-beside-bulk')).replace('[0, 1, 2, 4]', '[2]').replace('32 KiB', '256 KiB'));
  await page.goto(at(`/runs/${id}?tab=latency`));
  await expect(page.locator('[aria-busy=false][data-version]')).toBeVisible();
  await page.getByRole('button', { name: 'bulk', exact: true }).first().click();
  const box = (await page.getByRole('group', { name: /^Latency of/ }).boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
  await page.keyboard.down('Shift');
  await page.mouse.move(box.x + box.width * 0.45, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.75, box.y + 90, { steps: 5 });
  await page.mouse.up();
  await page.keyboard.up('Shift');
  const moment = page.getByRole('region', { name: /^What happened: voice at/ });
  const answer = moment.locator('.answer');
  await expect(answer).toHaveText(/^[\d.]+ ms: [\d.]+ ms of it in the queue of trunk \(berlin>ottawa\), \d+ % of it from .*bulk.*grew to [\d.]+ KB\.$/);
  // One axis of time for all.
  for (const title of ['Latency', 'Queue of trunk berlin → ottawa by flow', 'Congestion windows', 'Heard audio of voice, channel 1']) await expect(moment.getByRole('group', { name: `${title}. Chart` })).toBeVisible();
  await expect(moment.getByRole('row', { name: /trunk berlin → ottawa dropped: queue full/ })).toBeVisible();
  await expect(page).toHaveURL(/tab=latency&point=0&repetition=0&flow=voice&at=[\d.]+&latency=[\d.]+&from=[\d.]+&to=[\d.]+$/);
  await picture(page, 'rewind');

  // The link alone shows the same.
  const said = (await answer.textContent()) ?? '';
  const other = await context.newPage();
  await other.goto(page.url());
  await expect(other.getByRole('region', { name: /^What happened/ }).locator('.answer')).toHaveText(said);
  await other.close();

  await moment.getByRole('button', { name: 'Try three remedies' }).click();
  await expect(moment.getByRole('button', { name: 'Run as an experiment' })).toBeVisible();
  const rows = moment.getByRole('table', { name: 'Remedies, the best first' }).getByRole('row');
  await expect(rows).toHaveCount(5);
  await expect(rows.last()).toContainText('fifo, as it was');
  await picture(page, 'remedies');
  await moment.getByRole('button', { name: 'Run as an experiment' }).click();
  await expect(page.getByRole('region', { name: 'Figures of every flow at every point' }).getByRole('row')).toHaveCount(9);
});

test('the summary of a run with a broken limit says why, and which queue would do better', async ({ page, request }) => {
  const id = await run(request, await example(request, 'voice-beside-bulk'));
  await page.goto(at(`/runs/${id}`));
  const why = page.locator('.why');
  await expect(why).toHaveText(/[\d.]+ ms: [\d.]+ ms of it in the queue of trunk \(berlin>ottawa\), \d+ % of it from .*bulk/);
  await expect(why).toHaveText(/With (fq-codel|codel|pie|cake|[\w-]+)[^:]*: [\d.]+ ms at p99, [\d.]+ % lost or late\./);
  await picture(page, 'why');
  await why.getByRole('link', { name: 'What happened, and other remedies' }).click();
  await expect(page.getByRole('region', { name: /^What happened: voice at/ })).toBeVisible();
});

test('a link to a moment shows it where another point is looked at', async ({ page, request, context }) => {
  const id = await run(request, (await example(request, 'voice-beside-bulk')).replace('[0, 1, 2, 4]', '[0, 1]'));
  await page.goto(at(`/runs/${id}?tab=latency`));
  await page.getByLabel('Point', { exact: true }).selectOption({ label: 'bulk.count = 1' });
  await expect(page.locator('[aria-busy=false][data-version]')).toBeVisible();
  await page.getByRole('group', { name: /^Latency of/ }).focus();
  await page.keyboard.press('r');
  const answer = (one: typeof page) => one.getByRole('region', { name: /^What happened: voice at/ }).locator('.answer');
  await expect(answer(page)).toHaveText(/^[\d.]+ ms: /);
  const other = await context.newPage();
  await other.goto(at(`/runs/${id}?tab=latency`));
  await expect(other.locator('[aria-busy=false][data-version]')).toBeVisible();
  await other.evaluate((address) => { location.href = address; }, page.url());
  await expect(answer(other)).toHaveText((await answer(page).textContent()) ?? '');
  // Another point is looked at all the same.
  await other.getByLabel('Point', { exact: true }).selectOption({ label: 'bulk.count = 0' });
  await expect(answer(other)).toHaveCount(0);
  await other.close();
});

test('the keyboard reaches the worst moment, and closing it takes it from the address', async ({ page, request }) => {
  const id = await run(request, (await example(request, 'voice-beside-bulk')).replace('[0, 1, 2, 4]', '[1]'));
  await page.goto(at(`/runs/${id}?tab=latency`));
  await expect(page.locator('[aria-busy=false][data-version]')).toBeVisible();
  await page.getByRole('group', { name: /^Latency of/ }).focus();
  await page.keyboard.press('r');
  const moment = page.getByRole('region', { name: /^What happened/ });
  await expect(moment.locator('.answer')).toHaveText(/^[\d.]+ ms: /);
  // The call has limits, the transfer has none: the call is meant.
  await expect(moment).toHaveAccessibleName(/voice at/);
  await moment.getByRole('button', { name: 'Close' }).click();
  await expect(moment).toHaveCount(0);
  await expect(page).toHaveURL(/tab=latency$/);
});
