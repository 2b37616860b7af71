/** Learned paths: listed, with their values and the evidence for them, and an experiment over one. */
import { at, expect, learned, picture, test } from './use';

test('a learned path is shown with its evidence, and an experiment over it is drawn and predicted', async ({ page }) => {
  test.skip(!learned(), 'a server from outside has a library of its own');
  await page.goto(at('/advise'));
  await page.getByRole('link', { name: 'Paths', exact: true }).click();
  await expect(page.getByRole('table', { name: 'Paths' }).getByRole('row', { name: /home forward 8 Mbit\/s 15 ms/ })).toBeVisible();
  await page.getByRole('link', { name: 'home', exact: true }).click();
  await expect(page.getByRole('table', { name: 'forward' }).getByRole('row', { name: 'rate 8 Mbit/s 7.9 Mbit/s to 8.1 Mbit/s: 4 overloads' })).toBeVisible();
  await expect(page.getByRole('table', { name: 'backward' }).getByRole('row')).toHaveCount(2);
  await expect(page.getByRole('table', { name: 'Predicted and measured' }).getByRole('row', { name: /a call delay p95 20 ms .* 21 ms 5 %/ })).toBeVisible();
  await picture(page, 'learned-path');
  await page.getByRole('button', { name: 'Draw an experiment over it' }).click();
  await expect(page.getByText('No problems')).toBeVisible();
  // 15 ms, and a packet at 8 Mbit/s.
  await expect(page.locator('.svelte-flow')).toContainText(/15\.1.ms/);
  await page.goto(at('/paths/none'));
  await expect(page.getByRole('alert')).toHaveText('there is no learned path none');
});
