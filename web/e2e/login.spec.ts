/** Who is not logged in sees nothing, also on this machine; a link logs a browser in and is not kept. */
import { execFileSync } from 'node:child_process';
import { at, expect, server, test } from './use';

test.use({ storageState: { cookies: [], origins: [] } });

test('a stranger is asked to log in, and a link logs in without staying in the address bar', async ({ page, request }) => {
  test.skip(!process.env.TRUNKLINE_TOKEN_COMMAND, 'the server was not started by the tests');
  const [program, ...rest] = JSON.parse(process.env.TRUNKLINE_TOKEN_COMMAND ?? '[]') as string[];
  expect((await request.get(`${server()}/api/v1/runs`)).status()).toBe(401);
  await page.goto(at('/runs'));
  await expect(page.getByRole('heading', { name: 'Log in' })).toBeVisible();

  const env = { ...process.env, XDG_CONFIG_HOME: process.env.TRUNKLINE_TOKEN_CONFIG };
  const link = execFileSync(program ?? '', rest, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  const code = link.split('/#/login/')[1] ?? '';
  expect(code.length).toBeGreaterThan(40);
  await page.goto('about:blank');
  await page.goto(link);
  await page.waitForURL((url) => url.hash === '#/start');
  await expect(page.getByRole('heading', { name: 'Log in' })).toBeHidden();
  expect((await page.request.get(`${server()}/api/v1/runs`)).status()).toBe(200);

  // Going back does not show the code either.
  await page.goBack();
  expect(page.url()).not.toContain(code);

  // The link is used up.
  await page.context().clearCookies();
  await page.goto('about:blank');
  await page.goto(link);
  await expect(page.getByText('this link is invalid or has expired')).toBeVisible();
  expect(page.url()).not.toContain(code);
});
