// Takes the picture of docs/page.md from a server that runs: node scripts/picture.mjs [URL] [FILE].
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const url = process.argv[2] ?? 'http://127.0.0.1:4780/';
const file = process.argv[3] ?? join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'docs', 'page.png');

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 760 }, colorScheme: 'light', reducedMotion: 'reduce' });
  await page.goto(url);
  await page.getByRole('button', { name: 'Open…' }).click();
  await page.getByText('bundle.toml', { exact: true }).click();
  await page.locator('.svelte-flow__edge-label', { hasText: 'bulk' }).click();
  await page.getByRole('button', { name: 'Show the whole drawing' }).click();
  await page.getByLabel('window', { exact: true }).first().focus();
  await page.getByText('No problems').waitFor();
  await page.mouse.move(400, 700);
  await page.waitForTimeout(500);
  await page.screenshot({ path: file });
  console.log(file);
} finally {
  await browser.close();
}
