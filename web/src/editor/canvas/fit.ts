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
