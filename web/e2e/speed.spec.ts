/**
 * How fast the page is: measured and printed. Times depend on the machine and are not judged; sizes and counts are.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { APIRequestContext, Page } from '@playwright/test';
import { at, begin, draft, example, expect, finished, picture, server, test } from './use';

/** Edits of each example, an even number. */
const EDITS = Number(process.env.TRUNKLINE_EDITS ?? 2);

test('the first load is small', async ({ page, browser }) => {
  const palette = { name: 'Add to the drawing' };
  const from = Date.now();
  await page.goto(at('/edit'));
  await page.getByRole('group', palette).waitFor();
  const took = Date.now() - from;
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);

  // Once more from the beginning: reading what came takes time of its own.
  const context = await browser.newContext();
  const again = await context.newPage();
  const bodies: Promise<number>[] = [];
  again.on('response', (response) => {
    if (!response.url().startsWith(server()) || response.url().includes('/api/')) return;
    bodies.push(response.body().then((body) => gzipSync(body).length));
  });
  await again.goto(at('/edit'));
  await again.getByRole('group', palette).waitFor();
  await again.waitForLoadState('networkidle');
  const sizes = await Promise.all(bodies);
  const size = sizes.reduce((sum, one) => sum + one, 0);
  await context.close();
  console.log(`first load: ${(size / 1000).toFixed(0)} kB compressed in ${sizes.length} files; first paint after ${paint?.toFixed(0)} ms, drawing usable after ${took} ms`);
  expect(size).toBeGreaterThan(20_000);
  expect(size).toBeLessThan(300_000);
});

test('64 channels at 100 packets a second each are shown live, and no record is lost', live);

async function live({ page, request }: { page: Page; request: APIRequestContext }): Promise<void> {
  const text = `name = "64 channels"
duration = "10 s"

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
source = { kind = "voice", samples = 80 }     # 80 B every 10 ms
count = 64
`;
  const { job } = await begin(request, text, 'live');
  await page.goto(at(`/jobs/${job}`));
  await expect.poll(async () => Number(await page.locator('[data-received]').getAttribute('data-received'))).toBeGreaterThan(6_400);
  const busy = await meter(page);
  const before = await busy();
  const gaps = await framesOf(page, 8_000);
  const share = ((await busy()) - before) / 8;
  await picture(page, 'live-64-channels');
  const run = await finished(request, job);
  await expect(page.getByRole('link', { name: 'See the results' })).toBeVisible();
  const counts = page.locator('[data-received]');
  const figures = (await (await request.get(`${server()}/api/v1/runs/${run}`)).json()) as { figures: { points: { runs: { flows: { figures: Record<string, { mean: number }> }[] }[] }[] } };
  const sent = figures.figures.points[0]?.runs[0]?.flows[0]?.figures['sent']?.mean ?? 0;
  // What arrived last is counted with the next picture.
  await expect.poll(() => counts.getAttribute('data-received').then(Number)).toBe(sent);
  const [received, measured, missed] = await Promise.all(['data-received', 'data-measured', 'data-missed'].map(async (name) => Number(await counts.getAttribute(name))));
  console.log(`live, 64 channels x 100/s: ${said(gaps)}, main thread busy ${(share * 100).toFixed(0)} %; ${received} records here of ${measured} measured, ${missed} updates missed; the run has ${sent} messages`);
  expect(missed).toBe(0);
  expect(received).toBe(measured);
  // Also those of the moment before this browser began to watch.
  expect(sent).toBeGreaterThanOrEqual(64_000);
  expect(received).toBe(sent);
}

test('a slider is dragged while the figures follow', async ({ page, request }) => {
  await draft(page, await example(request, 'voice-beside-bulk'));
  await page.goto(at('/edit'));
  await page.locator('.svelte-flow__edge-label', { hasText: 'trunk' }).click();
  await page.getByLabel('delay, the value', { exact: true }).first().focus();
  const box = await page.getByLabel('delay, slider').boundingBox();
  if (!box) throw new Error('no slider');
  const predicted = () => page.locator('.svelte-flow__edge-label', { hasText: 'voice' }).locator('.predicted').textContent();
  const [y, middle] = [box.y + box.height / 2, box.x + box.width / 2];
  await page.mouse.move(middle, y);
  await page.mouse.down();
  let cancelled = 0;
  page.on('requestfailed', (request) => (cancelled += Number(request.url().endsWith('/predict'))));
  const frames = framesOf(page, 4_000);
  const seen = new Set<string | null>();
  for (const until = Date.now() + 4_000; Date.now() < until; ) {
    const phase = ((until - Date.now()) / 4_000) * 4 * Math.PI;
    await page.mouse.move(middle + (box.width / 3) * Math.sin(phase), y);
    seen.add(await predicted());
  }
  await page.mouse.up();
  console.log(`a slider dragged in voice-beside-bulk: ${said(await frames)}; ${seen.size} predictions seen`);
  expect(cancelled).toBe(0);
  expect(seen.size).toBeGreaterThan(3);
});

test('a trace of a million messages is opened and zoomed', async ({ page, request }) => {
  test.setTimeout(150_000);
  const text = `name = "a million messages"
duration = "100 s"
seed = 1

[hosts]
a = {}
b = {}

[link.line]
between = ["a", "b"]
rate = "100 Mbit/s"
delay = "5 ms"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice", samples = 80 }
count = 100
`;
  const run = await finished(request, (await begin(request, text)).job, 120_000);
  await page.goto(at('/runs'));
  await expect(page.getByRole('link', { name: 'a million messages' })).toBeVisible();
  const from = Date.now();
  await page.goto(at(`/runs/${run}?tab=latency`));
  const chart = page.locator('[data-version]');
  await expect(chart).toHaveAttribute('data-version', '1');
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  const took = Date.now() - from;
  const fetched = await chart.getAttribute('data-took');
  await picture(page, 'million');
  const zoomFrom = Date.now();
  await page.getByRole('group', { name: /Latency of voice/ }).focus();
  for (let i = 0; i < 5; i += 1) await page.keyboard.press('+');
  await expect(page.getByText('Every message is a dot')).toBeVisible();
  console.log(`a trace of 1,000,000 messages: seen after ${took} ms (${fetched} ms for its points); a part of it message by message ${Date.now() - zoomFrom} ms after the first key`);
  await picture(page, 'million-zoomed');
});

test('every example is predicted after every edit', async ({ page }) => {
  test.setTimeout(400_000);
  const folder = new URL('../../examples/', import.meta.url);
  const all: number[] = [];
  const lines: string[] = [];
  await page.goto(at('/edit'));
  await page.getByRole('tab', { name: 'Text' }).click();
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.toml'))) {
    const path = fileURLToPath(new URL(file, folder));
    // The first rate, delay or duration with a unit gets one more digit, and loses it again.
    const value = /^[^]*?^(?:rate|delay|duration) = "\d+/m.exec(readFileSync(path, 'utf8'));
    if (!value) throw new Error(`${file} has no number to edit`);
    await page.getByRole('button', { name: 'Open…' }).click();
    await page.getByLabel('A file of this computer').setInputFiles(path);
    await expect(page.getByLabel('Name of the file')).toHaveValue(file);
    await page.locator('.bar:not(.stale)', { has: page.locator('.took, .why') }).waitFor();
    // What is too large for every edit is simulated when it is asked for.
    if ((await page.locator('.bar .why').count()) > 0) {
      lines.push(`${file}: on request`);
      continue;
    }
    await page.locator('.cm-content').click();
    await page.keyboard.press('Control+Home');
    const before = value[0].split('\n');
    for (let line = 1; line < before.length; line += 1) await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Home');
    for (let column = 0; column < (before.at(-1) ?? '').length; column += 1) await page.keyboard.press('ArrowRight');
    const took: number[] = [];
    for (let i = 0; i < EDITS; i += 1) {
      await page.evaluate(() => {
        const bar = document.querySelector('.bar');
        const shown = new Promise<number>((resolve) => {
          const pressed = ({ timeStamp }: KeyboardEvent) => {
            let wasStale = false;
            const changes = new MutationObserver(() => {
              const isStale = bar?.classList.contains('stale') ?? false;
              wasStale ||= isStale;
              if (!wasStale || isStale) return;
              changes.disconnect();
              // The frame that is painted next shows it.
              requestAnimationFrame(() => resolve(performance.now() - timeStamp));
            });
            if (bar) changes.observe(bar, { attributeFilter: ['class'] });
          };
          addEventListener('keydown', pressed, { once: true, capture: true });
        });
        Object.assign(window, { shown });
      });
      await page.keyboard.press(i % 2 === 0 ? '1' : 'Backspace');
      took.push(await page.evaluate(() => (window as unknown as { shown: Promise<number> }).shown));
      // The next edit comes when nothing of this one is left to do.
      await page.waitForTimeout(100);
    }
    expect(took.length).toBe(EDITS);
    all.push(...took);
    lines.push(`${file}: ${took.map((ms) => ms.toFixed(0)).join(', ')} ms`);
  }
  all.sort((a, b) => a - b);
  console.log(`${lines.join('\n')}\nfrom the last key to the figures on the drawing: ${all.length} edits, median ${all[all.length >> 1]?.toFixed(0)} ms, p95 ${all[Math.ceil(all.length * 0.95) - 1]?.toFixed(0)} ms, largest ${all.at(-1)?.toFixed(0)} ms`);
});

/** The times between the frames of a part of time, in milliseconds. */
function framesOf(page: Page, ms: number): Promise<number[]> {
  return page.evaluate(
    (ms) =>
      new Promise<number[]>((resolve) => {
        const gaps: number[] = [];
        const from = performance.now();
        let last = from;
        const step = (now: number) => {
          gaps.push(now - last);
          last = now;
          if (now - from < ms) requestAnimationFrame(step);
          else resolve(gaps.slice(1));
        };
        requestAnimationFrame(step);
      }),
    ms,
  );
}

function said(gaps: readonly number[]): string {
  const sorted = gaps.toSorted((a, b) => a - b);
  const seconds = gaps.reduce((sum, gap) => sum + gap, 0) / 1e3;
  return `${gaps.length} frames in ${seconds.toFixed(1)} s, median ${sorted[gaps.length >> 1]?.toFixed(1)} ms, longest ${sorted.at(-1)?.toFixed(1)} ms, ${gaps.filter((gap) => gap > 25).length} frames dropped`;
}

/** Reads the processor time of the page's main thread, in seconds: other programs on a busy machine do not count. */
async function meter(page: Page): Promise<() => Promise<number>> {
  const client = await page.context().newCDPSession(page);
  await client.send('Performance.enable', { timeDomain: 'threadTicks' });
  return async () => {
    const { metrics } = await client.send('Performance.getMetrics');
    return metrics.find((metric) => metric.name === 'TaskDuration')?.value ?? 0;
  };
}
