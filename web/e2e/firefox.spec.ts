/** Every view in Debian's Firefox. Playwright speaks only to a Firefox of its own, so Puppeteer drives this one. */
import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from '@playwright/test';
import { launch, type Browser, type Page } from 'puppeteer-core';
import { STATE } from './server';
import { address, at, experiment, learned, picture, read, routes, run, server } from './use';

const FIREFOX = process.env.FIREFOX ?? '/usr/bin/firefox-esr';

let browser: Browser;
let page: Page;
let wrong: string[] = [];

test.skip(!existsSync(FIREFOX) && !process.env.CI, 'install the Debian package `firefox-esr`');

test.beforeAll(async () => {
  browser = await launch({ browser: 'firefox', executablePath: FIREFOX, defaultViewport: { width: 1280, height: 900 } });
  const { cookies } = JSON.parse(readFileSync(STATE, 'utf8')) as { cookies: { name: string; value: string; domain: string; path: string; httpOnly: boolean; secure: boolean }[] };
  await browser.setCookie(...cookies.map(({ name, value, domain, path, httpOnly, secure }) => ({ name, value, domain, path, httpOnly, secure })));
  page = await browser.newPage();
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && message.text().includes('Content-Security-Policy')) wrong.push(message.text());
  });
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (/^(https?|wss?):$/.test(url.protocol) && url.origin !== new URL(server()).origin) wrong.push(`asked of another site: ${url}`);
  });
});

test.beforeEach(() => {
  wrong = [];
  test.setTimeout(120_000);
});

test.afterEach(() => expect(wrong, 'errors in the page').toEqual([]));

test.afterAll(() => browser?.close());

test('every view opens in Firefox, without a fault of accessibility', async ({ request }) => {
  learned();
  const text = (seed: number) => experiment('for Firefox', { seconds: 2, seed }).replace('samples = 80 }', 'samples = 80, file = "speech.wav" }');
  const [first, second] = [await run(request, text(7)), await run(request, text(9))];
  const faults: string[] = [];
  for (const [name, path] of Object.entries(routes(first, second))) {
    await page.goto(address(path));
    await settled();
    if (name === 'latency') expect(await inks(), 'charts with something on them').toBeGreaterThan(1);
    faults.push(...(await read(page, name)));
    await picture(page, `${name}-firefox`);
  }
  expect(faults).toEqual([]);
});

test('in Firefox a question is answered by a click, an edit is predicted, and a run has results', async () => {
  await page.goto(at('/start'));
  await page.locator('button ::-p-text(Do calls survive beside uploads)').click();
  await expect.poll(ofVoice).toMatch(/^✗30\d.ms RTT/);
  await picture(page, 'start-answer-firefox');
  await page.locator('.svelte-flow__edge-label ::-p-text(trunk)').click();
  await page.locator('::-p-aria([role="combobox"][name="queue"])').fill('fq-codel');
  await expect.poll(ofVoice).toMatch(/^✓[4-9]\d(\.\d)?.ms RTT/);
  await page.locator('::-p-aria([role="tab"][name="Text"])').click();
  await expect.poll(written).toContain('[link.trunk]');
  await page.keyboard.down('Control');
  await page.keyboard.press('Home');
  await page.keyboard.up('Control');
  await page.keyboard.type('# typed in Firefox\n');
  await expect.poll(written).toMatch(/^# typed in Firefox/);
  await page.locator('::-p-aria([role="button"][name="Run"])').click();
  await page.waitForFunction(() => /#\/runs\/\d+$/.test(location.href));
  // Two flows at four points.
  await expect.poll(() => page.$$eval('[aria-label^="Figures of every flow"] tbody tr', (rows) => rows.length)).toBe(8);
  await settled();
  await picture(page, 'results-firefox');
});

/** What is predicted of the flow `voice`. */
async function ofVoice(): Promise<string> {
  return page.$$eval('.svelte-flow__edge-label', (all) => all.find((one) => one.textContent?.includes('voice'))?.querySelector('.predicted')?.textContent ?? '');
}

/** What the text editor shows, which gets the focus. It is in a shadow root, where locators do not see changes. */
async function written(): Promise<string> {
  return page.evaluate(() => {
    const roots = [...document.querySelectorAll('.text')].map((one) => one.shadowRoot);
    const content = roots.map((root) => root?.querySelector<HTMLElement>('.cm-content')).find((one) => one);
    content?.focus();
    return content?.textContent ?? '';
  });
}

/** The page shows what it fetched. */
async function settled(): Promise<void> {
  await page.waitForSelector('main h1');
  await page.waitForNetworkIdle({ idleTime: 150, concurrency: 2 });
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

/** The number of canvases with more than one colour. */
async function inks(): Promise<number> {
  return page.$$eval('canvas', (all) => all.filter((canvas) => {
    const pixels = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
    return new Set(pixels).size > 1;
  }).length);
}
