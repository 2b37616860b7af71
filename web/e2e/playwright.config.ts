import { defineConfig } from '@playwright/test';
import { STATE } from './server';

/** Debian's Chromium; another one by `CHROMIUM`. Everything runs against one server, one test after the other. */
export default defineConfig({
  testDir: '.',
  testMatch: '*.spec.ts',
  outputDir: './output/tests',
  globalSetup: './server.ts',
  globalTimeout: 900_000,
  timeout: 60_000,
  expect: { timeout: 15_000 },
  workers: 1,
  fullyParallel: false,
  reporter: [['list']],
  use: {
    browserName: 'chromium',
    storageState: STATE,
    viewport: { width: 1280, height: 900 },
    launchOptions: { executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] },
    screenshot: 'only-on-failure',
  },
});
