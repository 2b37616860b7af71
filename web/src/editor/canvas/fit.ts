import type { useSvelteFlow } from '@xyflow/svelte';
import { tick } from 'svelte';

/** How a drawing is shown: with room for the palette and for arcs above, and for the names of links below. */
const FIT = { padding: { top: '130px', left: '36px', right: '36px', bottom: '64px' }, maxZoom: 1.25 } as const;
/** Below this height, in pixels, a drawing has room for itself only. The style sheet of Editor.svelte says so too. */
const LOW = 320;

export function isLow(area: HTMLElement | undefined): boolean {
  return area !== undefined && area.clientHeight < LOW;
}

/** How a drawing is fitted into its area: on a phone, the prediction below takes more room. */
export function fitOf(area: HTMLElement | null | undefined) {
  if (!area) return FIT;
  if (isLow(area)) return { ...FIT, padding: { top: '48px', left: '20px', right: '20px', bottom: '40px' } } as const;
  return area.clientWidth < 600 ? ({ ...FIT, padding: { ...FIT.padding, bottom: '116px' } } as const) : FIT;
}

/** Half the width of a label that has what is swept in it, once a prediction gives its values. */
const WIDE = 110;

/** Fits a drawing into its area, in so many milliseconds; labels of flows that stand out at a side get room there. */
export async function fitAll(flow: ReturnType<typeof useSvelteFlow>, area: HTMLElement | null | undefined, duration = 0): Promise<void> {
  const fit = fitOf(area);
  await flow.fitView({ ...fit, duration });
  await tick();
  if (!area?.isConnected) return;
  const bounds = area.getBoundingClientRect();
  const boxes = (part: string) => [...area.querySelectorAll(part)].map((one) => ({ one, box: one.getBoundingClientRect() }));
  const nodes = boxes('.svelte-flow__node');
  const labels = boxes('.svelte-flow__edge-label').map(({ one, box }) => {
    const half = Math.max(box.width / 2, one.querySelector('[title^="Swept"]') ? WIDE * flow.getZoom() : 0) + 8;
    const middle = box.left + box.width / 2;
    return { left: middle - half, right: middle + half };
  });
  const [left, right] = [Math.min(...labels.map((label) => label.left)), Math.max(...labels.map((label) => label.right))];
  if (left >= bounds.left && right <= bounds.right) return;
  const room = (pixels: number) => `${Math.max(Number.parseFloat(fit.padding.left), pixels)}px` as const;
  const padding = { ...fit.padding, left: room(Math.min(...nodes.map(({ box }) => box.left)) - left), right: room(right - Math.max(...nodes.map(({ box }) => box.right))) };
  await flow.fitView({ ...fit, padding, duration });
}
