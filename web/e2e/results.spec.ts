/** What a run found: its first page answers, its sound plays, its files have names, and nothing that a reader must know is unsaid. */
import { stat } from 'node:fs/promises';
import type { Browser, Page } from '@playwright/test';
import { at, begin, draft, example, expect, experiment, finished, picture, read, run, server, test } from './use';

/** Speech that is reflected, and a transfer beside it. */
const REFLECTED = experiment('reflected', { seconds: 4, repetitions: 1 })
  .replace('to = "ottawa"\ntransport = "udp"', 'to = "ottawa"\nreflect = true\nplayout = "60 ms"\ntransport = "udp"')
  .replace('samples = 80 }', 'samples = 80, file = "speech.wav" }')
  .replace('[1, 6]', '[1, 4]')
  .replace('< 150 ms', '< 100 ms');

/** Notes what the browser is told to let through, in the order in which the two are made: `1:1` for the second. */
async function spyOnGains(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const told: string[] = [];
    const gains: AudioParam[] = [];
    const set = AudioParam.prototype.setTargetAtTime;
    AudioParam.prototype.setTargetAtTime = function (value, at, constant) {
      if (!gains.includes(this)) gains.push(this);
      told.push(`${gains.indexOf(this)}:${value}`);
      return set.call(this, value, at, constant);
    };
    Object.assign(window, { told });
  });
}

const gainsTold = (page: Page) => page.evaluate(() => (window as unknown as { told: string[] }).told);

test('received audio is found and plays', async ({ page, request }) => {
  const text = await example(request, 'voice-beside-bulk');
  const id = await run(request, text);
  await page.goto(at(`/runs/${id}`));
  await page.getByRole('tab', { name: 'Sound' }).click();
  await page.getByLabel('Of', { exact: true }).selectOption({ label: 'bulk.count = 4, repetition 2' });
  const players = page.locator('audio');
  await expect(players).toHaveCount(4);
  await expect(page.getByRole('list').getByText('voice, channel 4', { exact: true })).toBeVisible();
  // Nothing is loaded before it is played: browsers have few connections to a host.
  await expect(players.first()).toHaveJSProperty('readyState', 0);
  await players.first().evaluate((player: HTMLAudioElement) => player.play());
  const seconds = () => players.first().evaluate((player: HTMLAudioElement) => player.duration);
  await expect.poll(seconds, { message: 'the audio has arrived' }).toBeGreaterThan(1.9);
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: /Download voice, channel 1/ }).click();
  expect((await download).suggestedFilename()).toBe('voice-0-0.wav');
  await picture(page, 'sound');
});

test('a simulation leads to its results, which begin with the figures of every flow and say what is a round trip', async ({ page }) => {
  await draft(page, REFLECTED.replace(', file = "speech.wav"', ''));
  await page.goto(at('/edit'));
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await expect(page).toHaveURL(/#\/runs\/\d+$/);
  const flows = page.getByRole('region', { name: 'Figures of every flow at every point' });
  // Two flows at two points, and the heading.
  await expect(flows.getByRole('row')).toHaveCount(5);
  const voice = flows.getByRole('row', { name: /voice round trip/ });
  await expect(voice).toHaveCount(2);
  await expect(flows.getByRole('row', { name: /bulk/ }).first()).not.toContainText('round trip');
  // Two times 51.5 ms are more than the limit.
  await expect(voice.first()).toContainText('breaks < 100 ms');
  await expect(voice.first()).toContainText(/1\d\d/);
  await picture(page, 'summary');
  for (const [tab, name] of [['Latency', 'Latency of voice (round trip), bulk'], ['Distribution', 'voice (round trip)'], ['Figures', 'voice (round trip)']] as const) {
    await page.getByRole('tab', { name: tab, exact: true }).click();
    await expect(page.getByText(name, { exact: true }).first()).toBeVisible();
  }
});

test('the figures of a run keep their name when they are downloaded', async ({ page, request }) => {
  const id = await run(request, experiment('named', { seconds: 1 }));
  await page.goto(at(`/runs/${id}?tab=downloads`));
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Figures as JSON' }).click();
  expect((await download).suggestedFilename()).toBe(`run-${id}.json`);
});

test('a live run says before and after that the links of the drawing do not apply', async ({ page, request }) => {
  const text = experiment('as it is', { seconds: 1, repetitions: 1 }).replace(/\[sweep\][\s\S]*/, '');
  await draft(page, text);
  await page.goto(at('/edit'));
  await expect(page.getByText('No problems')).toBeVisible();
  await expect(page.getByRole('note')).toHaveCount(0);
  await page.getByLabel('Where to run').selectOption('live');
  await expect(page.getByRole('note')).toHaveText('The links that are drawn do not apply: live uses the network as it is; without agents, all hosts are this machine.');
  const id = await finished(request, (await begin(request, text, 'live')).job);
  await page.goto(at(`/runs/${id}`));
  await expect(page.getByText(/The network was used as it is/).first()).toBeVisible();
  await expect(page.getByRole('region', { name: 'How to read it' }).getByText(/Latency is one way/)).toBeVisible();
  await expect(page.getByText(/This machine stalled for up to/)).toBeVisible();
  await page.getByRole('tab', { name: 'Figures', exact: true }).click();
  const stalls = page.getByRole('region', { name: 'Stalls of the machine' });
  await expect(stalls.getByRole('row')).toHaveCount(2);
  for (const heading of ['Probe', '> 1 ms', 'Longest', 'Share of time']) await expect(stalls.getByRole('columnheader', { name: heading })).toBeVisible();
  await stalls.scrollIntoViewIfNeeded();
  await picture(page, 'stalls');
  // They stand wherever the figures do.
  for (const tab of ['Figures', 'Latency', 'Distribution', 'Links']) {
    await page.getByRole('tab', { name: tab, exact: true }).click();
    await expect(page.getByRole('tabpanel').getByText(/This machine stalled for up to/), tab).toBeVisible();
  }
});

test('values outside the model are marked as in the report, and the file says how to run it again and what measured it', async ({ page, request }) => {
  const text = experiment('marked', { seconds: 2, repetitions: 1 }).replace('to = "ottawa"\ntransport = "udp"', 'to = "ottawa"\nplayout = "60 ms"\ntransport = "udp"').replace('51.5 ms', '600 ms');
  const id = await run(request, text);
  await page.goto(at(`/runs/${id}`));
  await expect(page.getByText(/≈ marks percentiles from a histogram \(within 0\.1 %\), \? values outside the E-model's range/)).toBeVisible();
  await expect(page.getByRole('region', { name: 'Figures of every flow' }).getByRole('cell', { name: /^\? \d/ }).first()).toBeVisible();
  await page.getByRole('tab', { name: 'Figures', exact: true }).click();
  for (const table of ['Figures of voice', 'Every figure']) await expect(page.getByRole('region', { name: table }).getByRole('cell', { name: /^\? \d/ }).first(), table).toBeVisible();
  await page.getByRole('tab', { name: 'Distribution', exact: true }).click();
  await expect(page.getByText('One line for each flow, of one repetition.')).toBeVisible();
  await page.getByRole('tab', { name: 'File', exact: true }).click();
  await expect(page.getByText(/^trunkline run \S+ --on sim$/)).toBeVisible();
  await expect(page.getByText(/^Trunkline \d+\.\d+/)).toBeVisible();
  await picture(page, 'again');
});

test('all flows of a repetition are drawn together, each in its colour, and each can be hidden', async ({ page, request }) => {
  const id = await run(request, experiment('drawn together', { seconds: 2, repetitions: 1 }));
  await page.goto(at(`/runs/${id}?tab=latency`));
  await expect(page.locator('[data-version]')).toHaveAttribute('data-version', '1');
  const scatter = page.locator('.scatter');
  const colours = () =>
    page.locator('canvas.dots').evaluate((canvas: HTMLCanvasElement) => {
      const words = new Uint32Array(canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
      return new Set(words.filter((word) => word !== 0)).size;
    });
  await expect.poll(colours).toBe(2);
  await scatter.getByRole('button', { name: 'bulk', exact: true }).click();
  await expect.poll(colours).toBe(1);
  await scatter.getByRole('button', { name: 'bulk', exact: true }).click();
  await expect.poll(colours).toBe(2);
});

test('beside the latency stand throughput, queues, congestion windows and retransmissions, in the colours of the flows, and they follow its zoom', async ({ page, request }) => {
  const text = experiment('over time', { seconds: 4, repetitions: 1 }).replace(/queue = .*/, 'queue = { kind = "fifo", limit = "6 KB" }').replace(/\[sweep\][\s\S]*?(?=\[limits\])/, '');
  const id = await run(request, text.replace('window = "16 KiB"', 'window = "64 KiB"'));
  await page.goto(at(`/runs/${id}?tab=latency`));
  const table = (title: string) => page.getByRole('table', { name: title });
  for (const [title, rows] of [['Throughput', ['voice', 'bulk']], ['Queues', ['trunk berlin → ottawa']], ['Congestion window', ['bulk', 'bulk: slow-start threshold', 'bulk: bytes in flight']], ['Retransmissions', ['bulk']], ['Smoothed round trip', ['bulk']]] as const) {
    for (const row of rows) await expect(table(title).first().getByRole('row', { name: row }).first(), title).toBeAttached();
  }
  const chart = (title: string) => page.locator('figure', { has: page.getByRole('group', { name: title }) });
  for (const caption of [/^Payload received/, /^The most bytes that waited/, /^Solid: congestion window\. Dashed: slow-start threshold\. Thin: bytes in flight\./, /^Segments retransmitted until then/]) await expect(page.getByText(caption)).toBeVisible();
  // The bulk transfer has one colour everywhere.
  const colour = (title: string) => chart(title).getByRole('button', { name: 'bulk', exact: true }).locator('.key').evaluate((mark) => getComputedStyle(mark).color);
  expect(await colour('Throughput')).toBe(await colour('Retransmissions'));
  const latency = page.locator('.scatter').getByRole('button', { name: 'bulk', exact: true }).locator('i');
  expect(await latency.evaluate((mark) => getComputedStyle(mark).backgroundColor)).toBe(await colour('Throughput'));
  await chart('Congestion window').scrollIntoViewIfNeeded();
  await picture(page, 'window');
  const drawn = () => chart('Queues').locator('canvas').evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL());
  let whole = '';
  const isSettled = async () => {
    const before = whole;
    whole = await drawn();
    return whole === before;
  };
  await expect(page.locator('[aria-busy=false][data-version]')).toBeVisible();
  await expect.poll(isSettled, { intervals: [300] }).toBe(true);
  await page.getByRole('group', { name: /^Latency of/ }).press('+');
  await expect.poll(async () => (await drawn()) !== whole).toBe(true);
  await picture(page, 'over-time');
  // One key shows all of it again, in either.
  await page.getByRole('group', { name: /^Latency of/ }).press('0');
  await expect.poll(async () => (await drawn()) === whole).toBe(true);
  // What was repeated has its causes, as in the report.
  await expect(table('Retransmissions').first().getByRole('row', { name: /^bulk: (fast|RACK|tail loss probe|timeout)/ }).first()).toBeAttached();
  await expect(page.getByText(/^Segments retransmitted until then, all and by cause/)).toBeVisible();
  await chart('Retransmissions').scrollIntoViewIfNeeded();
  await picture(page, 'retransmissions');
  // With Ctrl the wheel zooms every kind of chart; alone it scrolls the page.
  for (const one of [chart('Queues'), page.locator('.scatter')]) {
    await one.getByRole('group', { name: /Chart/ }).hover();
    await page.mouse.wheel(0, -10);
    await expect(one.getByRole('button', { name: 'Zoom out' })).toBeDisabled();
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -10);
    await page.keyboard.up('Control');
    await expect(one.getByRole('button', { name: 'Zoom out' })).toBeEnabled();
    await one.getByRole('button', { name: 'All', exact: true }).click();
    await expect(one.getByRole('button', { name: 'Zoom out' })).toBeDisabled();
  }
});

test('what was sent and what is heard play in step, one key switches, and missing pieces are marked', async ({ page, request }) => {
  const text = REFLECTED.replace('delay =', 'loss = "5 %"\njitter = { kind = "exponential", mean = "20 ms" }\ndelay =');
  const id = await run(request, text);
  await spyOnGains(page);
  await page.goto(at(`/runs/${id}?tab=sound`));
  await expect(page.getByText(/[1-9]\d* pieces lost \(\d+\sms\), [1-9]\d* late/)).toBeVisible();
  const pieces = (await (await request.get(`${server()}/api/v1/runs/${id}/points/0/repetitions/0/flows/voice/pieces`)).json()) as { duration: number; lost: [number, number][]; late: [number, number][] };
  expect(pieces.lost.length).toBeGreaterThan(0);
  // At the top of the waveform only the marks are painted: each in its place, in two colours.
  const painted = (some: [number, number][]) =>
    page.locator('.wave canvas').evaluate(
      (canvas: HTMLCanvasElement, places) => places.map((place) => [...(canvas.getContext('2d')?.getImageData(Math.floor(place * canvas.width), 0, 1, 1).data ?? [])].join()),
      some.map(([from, until]) => (from + until) / 2 / pieces.duration),
    );
  const [lost, late] = [new Set(await painted(pieces.lost)), new Set(await painted(pieces.late))];
  expect([lost.size, late.size]).toEqual([1, 1]);
  expect([...lost, ...late]).not.toContain('0,0,0,0');
  expect([...lost]).not.toEqual([...late]);
  const position = page.getByLabel('Position in seconds');
  const seconds = () => position.evaluate((input: HTMLInputElement) => input.valueAsNumber);
  await page.getByRole('button', { name: 'Play' }).click();
  await expect.poll(seconds).toBeGreaterThan(0.3);
  const [before, began] = [await seconds(), Date.now()];
  await page.keyboard.press('x');
  await expect(page.getByRole('button', { name: 'Sent' })).toHaveAttribute('aria-pressed', 'true');
  expect(await gainsTold(page)).toEqual(['0:1', '1:0']);
  const after = await seconds();
  expect(after).toBeGreaterThanOrEqual(before);
  expect(after - before, 'it goes on where it was').toBeLessThan((Date.now() - began) / 1000 + 0.5);
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.keyboard.press('x');
  await expect(page.getByRole('button', { name: 'Heard' })).toHaveAttribute('aria-pressed', 'true');
  expect((await gainsTold(page)).slice(2)).toEqual(['0:0', '1:1']);
  await picture(page, 'sent-and-heard');
  // Both end at the same moment, and begin again.
  await position.fill('3.9');
  await page.getByRole('button', { name: 'Play' }).click();
  await expect(page.getByRole('button', { name: 'Play' })).toBeVisible();
  await expect.poll(seconds).toBeGreaterThan(3.95);
});

test('a blind test hides which sound X is until its end, and says how likely guessing is as good', async ({ page, request }) => {
  const id = await run(request, REFLECTED.replace('delay =', 'loss = "5 %"\ndelay ='));
  await spyOnGains(page);
  await page.goto(at(`/runs/${id}?tab=sound`));
  await page.getByRole('button', { name: 'Blind test' }).click();
  const of = page.getByRole('group', { name: 'Blind test' });
  await page.getByRole('button', { name: 'Play' }).click();
  const painted = () => page.locator('.wave canvas').evaluate((canvas: HTMLCanvasElement) => new Uint32Array(canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height).data.buffer).some((word) => word !== 0));
  // Who looks at what the browser is told knows X: three right answers, by key and by button, and a wrong one.
  for (let trial = 1; trial <= 4; trial += 1) {
    await expect(of.getByText(`Trial ${trial}.`)).toBeVisible();
    await expect(of.getByRole('button', { name: 'A: Sent' })).toHaveAttribute('aria-pressed', 'true');
    expect(await painted()).toBe(true);
    await page.keyboard.press('x');
    await expect(of.getByRole('button', { name: 'X', exact: true })).toHaveAttribute('aria-pressed', 'true');
    // The waveform of X would tell.
    await expect.poll(painted).toBe(false);
    const isB = (await gainsTold(page)).at(-1) === '1:1';
    if (trial < 3) await page.keyboard.press(isB ? '2' : '1');
    else await of.getByRole('button', { name: isB === (trial === 3) ? 'X is B' : 'X is A' }).click();
    await expect(page.getByText(/correct/)).toHaveCount(0);
  }
  await picture(page, 'blind-test');
  await of.getByRole('button', { name: 'End the test' }).click();
  // 5 of 16 ways.
  await expect(page.getByText(/^3 of 4 trials correct\. Guessing alone has as many or more with a chance of 31.%/)).toBeVisible();
  await expect(page.getByText(/✗/)).toHaveText(/✓.*✓.*✓.*✗/);
  await picture(page, 'blind-test-over');
  await page.getByRole('button', { name: 'Begin anew' }).click();
  await expect(of.getByText('Trial 1.')).toBeVisible();
  await of.getByRole('button', { name: 'End the test' }).click();
  await expect(page.getByText('No trial was answered.')).toBeVisible();
  await page.getByRole('button', { name: 'Leave the test' }).click();
  await page.keyboard.press('x');
  await expect(page.getByRole('button', { name: 'Sent' })).toHaveAttribute('aria-pressed', 'true');
});

test('two points, and two runs, are heard against each other in step and equally loud', async ({ page, request }) => {
  const text = (loss: string) => REFLECTED.replace('delay =', `loss = "${loss}"\ndelay =`);
  const [first, second] = [await run(request, text('5 %')), await run(request, text('20 %'))];
  const asked: string[] = [];
  page.on('request', (one) => one.url().includes('sound.wav') && asked.push(one.url()));
  await spyOnGains(page);
  await page.goto(at(`/runs/${first}?tab=sound`));
  await expect(page.getByRole('button', { name: 'Sent' })).toBeVisible();
  await page.getByLabel('Beside').selectOption('voice.count = 4, repetition 1');
  await expect(page.getByText(/voice\.count = 4, repetition 1: \d+ pieces lost .* voice\.count = 1, repetition 1: \d+ pieces lost/)).toBeVisible();
  expect(asked.slice(-2).map((one) => /points\/\d.*of=\w+/.exec(one)?.[0])).toEqual(['points/1/repetitions/0/flows/voice/sound.wav?member=0&channel=0&of=heard', 'points/0/repetitions/0/flows/voice/sound.wav?member=0&channel=0&of=heard']);
  await expect(page.getByRole('button', { name: 'voice.count = 1, repetition 1' })).toHaveAttribute('aria-pressed', 'true');
  await page.getByRole('button', { name: 'Play' }).click();
  await expect(page.getByRole('button', { name: 'Pause' })).toBeVisible();
  await page.keyboard.press('x');
  await expect(page.getByRole('button', { name: 'voice.count = 4, repetition 1' })).toHaveAttribute('aria-pressed', 'true');
  expect(await gainsTold(page)).toHaveLength(2);
  await picture(page, 'two-points');
  await page.goto(at(`/compare/${first}/${second}`));
  const sound = page.getByRole('region', { name: 'Sound' });
  await sound.getByLabel('Channel', { exact: true }).selectOption('voice, member 2, channel 1, voice.count = 4');
  await expect(sound.getByText(new RegExp(`Run ${first}, simulated: \\d+ pieces lost .* Run ${second}, simulated: \\d+ pieces lost`))).toBeVisible();
  await expect(sound.getByText(/equally loud/)).toBeVisible();
  await sound.getByRole('button', { name: 'Play' }).click();
  await page.keyboard.press('x');
  await expect(sound.getByRole('button', { name: `Run ${first}, simulated` })).toHaveAttribute('aria-pressed', 'true');
  expect(asked.slice(-2).map((one) => /runs\/(\d+)/.exec(one)?.[1])).toEqual([String(first), String(second)]);
  await sound.scrollIntoViewIfNeeded();
  await picture(page, 'two-runs');
  await sound.getByRole('button', { name: 'Blind test' }).click();
  await expect(sound.getByRole('button', { name: `A: Run ${first}, simulated` })).toBeVisible();
});

test('a click on a spike of the latency plays that moment, from a second before it, and so does Enter', async ({ page, request }) => {
  const id = await run(request, experiment('spikes', { seconds: 8, repetitions: 1 }).replace(/\[sweep\][\s\S]*?(?=\[limits\])/, ''));
  // When each sound begins, as the browser is told.
  await page.addInitScript(() => {
    const begun: number[] = [];
    const start = AudioBufferSourceNode.prototype.start;
    AudioBufferSourceNode.prototype.start = function (when, offset, ...more) {
      begun.push(offset ?? 0);
      return start.call(this, when, offset, ...more);
    };
    Object.assign(window, { begun });
  });
  const begun = () => page.evaluate(() => (window as unknown as { begun: number[] }).begun);
  const flow = `${server()}/api/v1/runs/${id}/points/0/repetitions/0/flows/voice`;
  const place = async (at: number, latency: number) => ((await (await request.get(`${flow}/moment?at=${at}&latency=${latency}`)).json()) as { position: number }).position;
  await page.goto(at(`/runs/${id}?tab=latency`));
  await page.getByLabel('Flow', { exact: true }).selectOption('voice');
  await expect(page.locator('[aria-busy=false][data-version]')).toBeVisible();
  const chart = page.getByRole('group', { name: /^Latency of/ });
  const dot = page.locator('.scatter .found');
  const told = async () => /([\d.]+).(m?s) at ([\d.]+).(m?s)/.exec((await dot.textContent()) ?? '')?.slice(1) ?? [];
  const seconds = (value?: string, unit?: string) => Number(value) / (unit === 'ms' ? 1000 : 1);
  await chart.focus();
  // The highest of all, and the one after it.
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: /^Sound of voice, channel 1/ })).toBeVisible();
  await expect.poll(begun).toHaveLength(2);
  let [latency, unit, when, whenUnit] = await told();
  const expected = Math.max(0, (await place(seconds(when, whenUnit), seconds(latency, unit))) - 1);
  expect((await begun())[0]).toBeCloseTo(expected, 2);
  await chart.focus();
  await page.keyboard.press('0');
  for (const way of ['ArrowRight', 'ArrowRight', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft']) await page.keyboard.press(`Shift+${way}`);
  const [left, top] = await dot.evaluate((tip: HTMLElement) => [Number.parseFloat(tip.style.left), Number.parseFloat(tip.style.top)]);
  await chart.click({ position: { x: left ?? 0, y: top ?? 0 } });
  await expect.poll(begun).toHaveLength(4);
  [latency, unit, when, whenUnit] = await told();
  const next = Math.max(0, (await place(seconds(when, whenUnit), seconds(latency, unit))) - 1);
  expect(next).not.toBeCloseTo(expected, 2);
  expect((await begun())[2]).toBeCloseTo(next, 2);
  await picture(page, 'spike');
  // What has no sound says so.
  await page.getByLabel('Flow', { exact: true }).selectOption('bulk');
  await expect(page.getByRole('heading', { name: /^Sound of/ })).toHaveCount(0);
  await expect(page.locator('[aria-busy=false][data-version]')).toBeVisible();
  await chart.focus();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('alert')).toContainText('No sound of bulk');
});

test('what a FIFO plays is heard in step with what was sent, with its gaps, and another reserve is heard', async ({ page, request }) => {
  const id = await run(request, await example(request, 'voice-path'));
  await page.goto(at(`/runs/${id}`));
  await page.getByRole('tab', { name: 'Sound' }).click();
  await page.getByLabel('Of', { exact: true }).selectOption({ label: 'burst.source.bytes = 50 KB, repetition 1' });
  await page.getByLabel('Channel', { exact: true }).selectOption('there, channel 4');
  const missing = page.getByText(/pieces? lost .* late/);
  const late = async () => Number(/late \((\d+).ms\)/.exec((await missing.textContent()) ?? '')?.[1]);
  await expect(missing).toBeVisible();
  await expect.poll(late).toBeGreaterThan(0);
  const delay = page.getByRole('slider', { name: /^Playout delay/ });
  await expect(delay).toHaveAccessibleName(/100.ms, as in the run$/);
  await picture(page, 'fifo');
  await page.getByRole('button', { name: 'Play' }).click();
  await expect(page.getByRole('button', { name: 'Pause' })).toBeVisible();
  const before = await late();
  await delay.fill('0');
  await expect.poll(late).toBeGreaterThan(before);
  await expect(page.getByRole('button', { name: 'Pause' })).toBeVisible();
});

test('music has sound, at any rate of the stream, and so does its file', async ({ page, browser, request }, info) => {
  const text = experiment('music', { seconds: 3, repetitions: 1 }).replace(/\[sweep\][\s\S]*?(?=\[limits\])/, '').replace(/source = \{ kind = "voice"[^}]*\}/, 'source = { kind = "audio", signal = "tones" }');
  expect(text).toContain('tones');
  const id = await run(request, text);
  await page.goto(at(`/runs/${id}?tab=sound`));
  await expect(page.getByText(/pieces? lost .* late/)).toBeVisible();
  await page.getByRole('button', { name: 'Play' }).click();
  await expect(page.getByRole('button', { name: 'Pause' })).toBeVisible();
  const { file, asked, wrong } = await saved(browser, page, id, info.outputPath('music.html'));
  await file.getByRole('tab', { name: 'Sound', exact: true }).click();
  await expect(file.getByText(/pieces? lost .* late/)).toBeVisible();
  expect([asked, wrong]).toEqual([[], []]);
  await file.context().close();
});

test('another playout delay is heard within a second, at the same place of the sound', async ({ page, request }) => {
  const id = await run(request, (await example(request, 'voice-beside-bulk')).replace('[0, 1, 2, 4]', '[2]'));
  await page.goto(at(`/runs/${id}?tab=sound`));
  const told = page.getByText(/pieces? lost .* late/);
  await expect(told).not.toContainText(' 0 late');
  const slider = page.getByRole('slider', { name: /^Playout delay: 60\.0.ms, as in the run/ });
  await expect(slider).toHaveValue('60');
  await page.getByRole('slider', { name: 'Position in seconds' }).fill('1');
  const took: number[] = [];
  for (const [ms, late] of [[400, / 0 late/], [0, / [1-9]\d* late/], [400, / 0 late/]] as const) {
    const began = Date.now();
    await page.getByRole('slider', { name: /^Playout delay/ }).fill(String(ms));
    await expect(told).toContainText(late);
    took.push(Date.now() - began);
  }
  expect(Math.min(...took), `of ${took.join(', ')} ms`).toBeLessThan(1000);
  await expect(page.getByRole('slider', { name: 'Position in seconds' })).toHaveValue('1');
  await picture(page, 'playout');
});

/** Saves a run as one file, and opens that without a server in a browser of its own. */
async function saved(browser: Browser, page: Page, id: number, path: string, javaScriptEnabled = true): Promise<{ file: Page; asked: string[]; wrong: string[] }> {
  await page.goto(at(`/runs/${id}`));
  const waiting = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Save as one file' }).click();
  const download = await waiting;
  expect(download.suggestedFilename()).toMatch(new RegExp(`-run-${id}\\.html$`));
  await download.saveAs(path);
  expect((await stat(path)).size).toBeLessThan(5_000_000);
  const context = await browser.newContext({ offline: true, javaScriptEnabled });
  const file = await context.newPage();
  const asked: string[] = [];
  const wrong: string[] = [];
  file.on('request', (request) => /^(file|data|blob):/.test(request.url()) || asked.push(request.url()));
  file.on('pageerror', (error) => wrong.push(error.message));
  file.on('console', (message) => message.type() === 'error' && wrong.push(message.text()));
  await file.goto(`file://${path}`);
  return { file, asked, wrong };
}

test('a run is saved as one file, which without a server shows its charts and plays', async ({ page, browser, request }, info) => {
  const id = await run(request, await example(request, 'voice-beside-bulk'));
  const { file, asked, wrong } = await saved(browser, page, id, info.outputPath('saved.html'));
  await expect(file.getByText(/^This file was saved from run/)).toBeVisible();
  await expect(file.getByRole('region', { name: 'Figures of every flow' }).getByRole('row')).toHaveCount(9);
  await expect(file.getByRole('link', { name: 'Docs' })).toHaveCount(0);
  await expect(file.getByRole('button', { name: 'Delete' })).toHaveCount(0);
  await picture(file, 'saved');
  const faults: string[] = [];
  for (const tab of ['Figures', 'Latency', 'Distribution', 'Links', 'Sound', 'File']) {
    await file.getByRole('tab', { name: tab, exact: true }).click();
    await expect(file.getByRole('tabpanel')).toBeVisible();
    faults.push(...(await read(file, `saved ${tab}`)));
    await picture(file, `saved-${tab.toLowerCase()}`);
  }
  expect(faults).toEqual([]);
  // A chart is zoomed.
  await file.getByRole('tab', { name: 'Latency', exact: true }).click();
  await file.getByLabel('Point', { exact: true }).selectOption({ label: 'bulk.count = 4' });
  const chart = file.getByRole('group', { name: /^Latency of/ });
  await expect(file.getByText(/Every message is a dot|are in this file/)).toBeVisible();
  const before = await chart.locator('canvas').first().screenshot();
  await file.getByRole('button', { name: 'Zoom in' }).first().click();
  await expect(file.getByRole('button', { name: 'Zoom out' }).first()).toBeEnabled();
  await expect.poll(async () => (await chart.locator('canvas').first().screenshot()).equals(before)).toBe(false);
  // The worst moment has its timeline, of what was recorded.
  await chart.focus();
  await chart.press('r');
  const moment = file.getByRole('region', { name: /^What happened: voice at/ });
  await expect(moment.locator('.answer')).toHaveText(/^[\d.]+.ms; when it was sent, [\d.]+.kB waited at trunk berlin → ottawa\.$/);
  for (const title of ['Latency', 'Queue of trunk berlin → ottawa', 'Congestion windows', 'Heard audio of voice, channel 1']) await expect(moment.getByRole('group', { name: `${title}. Chart` })).toBeVisible();
  await expect(moment.getByText(/no packets, and so no cause: trunkline serve/)).toBeVisible();
  await moment.scrollIntoViewIfNeeded();
  await picture(file, 'saved-rewind');
  expect(await read(file, 'saved moment')).toEqual([]);
  await moment.getByRole('button', { name: 'Close' }).click();
  await expect(moment).toHaveCount(0);
  // The sound of another point plays.
  await file.getByRole('tab', { name: 'Sound', exact: true }).click();
  await file.getByLabel('Of', { exact: true }).selectOption({ label: 'bulk.count = 4, repetition 1' });
  await expect(file.getByText(/[1-9]\d* late/)).toBeVisible();
  await file.getByRole('button', { name: 'Play' }).click();
  await expect.poll(() => file.getByRole('slider', { name: 'Position in seconds' }).inputValue().then(Number)).toBeGreaterThan(0.2);
  await expect(file.locator('audio')).toHaveCount(0);
  // So do other playout delays, those that the file has: at none everything after the first is late, at the longest nothing.
  const late = file.getByText(/pieces? lost .* late/);
  const delay = file.getByRole('slider', { name: /^Playout delay/ });
  await expect(delay).toHaveAccessibleName(/60\.0.ms, as in the run$/);
  const countOf = async () => Number(/(\d+) late/.exec((await late.textContent()) ?? '')?.[1]);
  await delay.fill('10');
  await expect(late).toContainText(/ 0 late/);
  await expect(delay).toHaveAttribute('aria-valuetext', /^480.ms$/);
  await delay.fill('0');
  await expect.poll(countOf).toBeGreaterThan(0);
  await picture(file, 'saved-playout');
  // What a figure means is in it too.
  await file.getByRole('tab', { name: 'Figures', exact: true }).click();
  await file.getByRole('link', { name: 'latency p99', exact: true }).first().click();
  await expect(file.getByRole('heading', { name: 'What figures mean' })).toBeVisible();
  await file.getByRole('link', { name: 'Trunkline' }).click();
  await expect(file.getByRole('tab', { name: 'Summary' })).toBeVisible();
  // On paper it is the report.
  await file.evaluate(() => dispatchEvent(new Event('beforeprint')));
  await expect(file.getByRole('heading', { name: 'Verdict' })).toBeVisible();
  await expect(file.getByRole('tab')).toHaveCount(0);
  await picture(file, 'saved-printed');
  await file.evaluate(() => dispatchEvent(new Event('afterprint')));
  await expect(file.getByRole('tab', { name: 'Summary' })).toBeVisible();
  expect(asked, 'requests').toEqual([]);
  expect(wrong, 'errors').toEqual([]);
  await file.context().close();
});

test('a click on a dot of a saved run plays that moment, and of a long call the file says which part it has', async ({ page, browser, request }, info) => {
  const text = experiment('a long call', { seconds: 150, repetitions: 1 }).replace(/\[sweep\][\s\S]*?(?=\[limits\])/, '').replace('[flow.voice]', '[flow.voice]\naudio = true');
  const id = await run(request, text);
  const { file, asked, wrong } = await saved(browser, page, id, info.outputPath('long.html'));
  await file.getByRole('tab', { name: 'Sound', exact: true }).click();
  await expect(file.getByText(/0.s to [\d.]+.s of the channel/)).toBeVisible();
  await file.getByRole('tab', { name: 'Latency', exact: true }).click();
  await file.getByLabel('Flow', { exact: true }).selectOption('voice');
  await expect(file.getByText(/click a dot to hear that moment; drag with Shift over a spike to see what happened there\.$/)).toBeVisible();
  const chart = file.getByRole('group', { name: /^Latency of/ });
  await chart.focus();
  for (const key of ['+', '+', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft', 'Shift+ArrowRight']) await chart.press(key);
  const dot = file.locator('.scatter .found');
  const [left, top] = await dot.evaluate((tip: HTMLElement) => [Number.parseFloat(tip.style.left), Number.parseFloat(tip.style.top)]);
  await chart.click({ position: { x: left ?? 0, y: top ?? 0 } });
  await expect(file.getByRole('heading', { name: /^Sound of voice, channel 1, / })).toBeVisible();
  await expect(file.getByRole('button', { name: 'Pause' })).toBeVisible();
  await picture(file, 'saved-spike');
  // The last moments are not in the file.
  for (let i = 0; i < 20; i += 1) await chart.press('ArrowRight');
  await chart.press('Shift+ArrowRight');
  await chart.press('Enter');
  await expect(file.getByRole('alert')).toHaveText(/^The sound of this message is not in the file/);
  await file.getByLabel('Flow', { exact: true }).selectOption('bulk');
  await expect(file.getByText(/Drag over the chart to zoom; drag with Shift/)).toBeVisible();
  expect([asked, wrong]).toEqual([[], []]);
  await file.context().close();
});

test('a saved run without JavaScript is the report, and its texts are no markup', async ({ page, browser, request }, info) => {
  const hostile = '</script><script>document.title=1</script><img src=x onerror=alert(1)>';
  const id = await run(request, `# ${hostile}\n${experiment(`a ${hostile.replaceAll('"', '')}`, { seconds: 1, repetitions: 1 })}`);
  const plain = await saved(browser, page, id, info.outputPath('plain.html'), false);
  await expect(plain.file.getByRole('heading', { name: 'Verdict' })).toBeVisible();
  await expect(plain.file.locator('svg').first()).toBeVisible();
  await plain.file.context().close();
  const { file, asked, wrong } = await saved(browser, page, id, info.outputPath('scripted.html'));
  await expect(file.getByRole('heading', { level: 1 })).toHaveText(`a ${hostile}`);
  await file.getByRole('tab', { name: 'File', exact: true }).click();
  await expect(file.getByRole('region', { name: 'Text of the file' })).toContainText(hostile);
  expect([asked, wrong]).toEqual([[], []]);
  expect(await file.title()).toContain('Trunkline');
  await file.context().close();
});

test('a run that was stopped is resumed where it is watched', async ({ page, request }) => {
  // In real time: no machine is done before the button is pressed, and what is stopped before it begins has nothing to resume.
  const text = experiment('stopped where it is watched', { seconds: 30, repetitions: 2 }).replace(/\[flow\.bulk\][\s\S]*/, '');
  const { job } = await begin(request, text, 'live');
  const received = () => page.locator('[data-received]').getAttribute('data-received').then(Number);
  await page.goto(at(`/jobs/${job}`));
  await expect.poll(received).toBeGreaterThan(0);
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect(page).not.toHaveURL(new RegExp(`${job}$`));
  await expect.poll(received).toBeGreaterThan(0);
  await page.getByRole('button', { name: 'Stop' }).click();
  await expect(page.getByRole('button', { name: 'Resume' })).toBeVisible();
});

test('a table that is wider than the page says so at its edge', async ({ page, request }) => {
  const id = await run(request, experiment('wide', { seconds: 1, repetitions: 1 }));
  await page.goto(at(`/runs/${id}?tab=figures`));
  const table = page.getByRole('region', { name: 'Figures of voice' });
  await page.getByRole('checkbox', { name: 'all figures' }).check();
  await expect.poll(() => table.evaluate((region) => region.scrollWidth > region.clientWidth)).toBe(true);
  // Shades that stay at the edges, and covers of them that scroll with the table.
  expect(await table.evaluate((region) => getComputedStyle(region).backgroundAttachment)).toBe('local, local, scroll, scroll, scroll');
});

test('two runs are compared, and a third tick leaves them ticked', async ({ page, request }) => {
  for (const seed of [1, 2, 3]) await run(request, experiment('one of three', { seconds: 1, repetitions: 1, seed }));
  await page.goto(at('/runs?name=one%20of%20three'));
  const ticks = page.getByRole('checkbox');
  await expect(ticks).toHaveCount(3);
  await ticks.nth(0).check();
  await ticks.nth(1).check();
  await expect(page.getByRole('link', { name: /^Compare \d+ with \d+$/ })).toBeVisible();
  await page.getByLabel('Tag', { exact: true }).pressSequentially('nobody has this');
  await expect(page.getByText('No run fits')).toBeVisible();
  // What is ticked and not shown can be let go of.
  await page.getByRole('button', { name: 'Clear selection' }).click();
  await expect(page.getByRole('heading', { name: 'Runs' })).toBeFocused();
  await expect(page.getByRole('link', { name: /^Compare/ })).toHaveCount(0);
  await page.getByLabel('Tag', { exact: true }).fill('');
  await expect(ticks).toHaveCount(3);
  for (const place of [0, 1, 2]) await ticks.nth(place).check();
  for (const place of [0, 1, 2]) await expect(ticks.nth(place)).toBeChecked();
  await expect(page.getByRole('link', { name: /^Compare/ })).toHaveCount(0);
  await ticks.nth(2).uncheck();
  await expect(page.getByRole('link', { name: /^Compare \d+ with \d+$/ })).toBeVisible();
});

test('what is no archive is named in words, and a mistyped address leads to the page', async ({ page }) => {
  await page.goto(at('/runs'));
  await page.getByLabel('Archive of a run').setInputFiles({ name: 'noise.tar', mimeType: 'application/x-tar', buffer: Buffer.from(Array.from({ length: 3000 }, (_, i) => (i * 7919) % 256)) });
  const message = page.getByRole('log', { name: 'Messages' });
  await expect(message).toContainText('not an archive of a run');
  expect(await message.textContent()).not.toMatch(/[\u0000-\u0008\ufffd]/);
  await page.goto(`${server()}/nonsense`);
  await expect(page.getByRole('heading', { name: 'Page not found' })).toBeVisible();
});

test('a results page is printed as a whole', async ({ page, request }) => {
  const id = await run(request, experiment('printed', { seconds: 1, repetitions: 1 }));
  await page.setViewportSize({ width: 1000, height: 400 });
  await page.goto(at(`/runs/${id}`));
  await expect(page.getByRole('heading', { name: 'Flows' })).toBeVisible();
  await page.emulateMedia({ media: 'print' });
  const [height, seen] = await page.locator('main').evaluate((main: HTMLElement) => [main.scrollHeight, main.clientHeight]);
  expect(seen).toBeGreaterThan(400);
  expect(height).toBe(seen);
});

test('compared distributions say that they are of round trips', async ({ page, request }) => {
  const text = (seed: number) => REFLECTED.replace(', file = "speech.wav"', '').replace('seed = 7', `seed = ${seed}`);
  const [first, second] = [await run(request, text(1)), await run(request, text(2))];
  await page.goto(at(`/compare/${first}/${second}`));
  await page.getByLabel('Flow', { exact: true }).first().selectOption('voice');
  await expect(page.getByText(/^voice \(round trip\)/).first()).toBeVisible();
});
