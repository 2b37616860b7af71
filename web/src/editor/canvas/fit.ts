/** How a whole drawing is shown: with room for the palette and for arcs above, and for the names of links below. */
export const FIT = { padding: { top: '130px', left: '36px', right: '36px', bottom: '64px' }, maxZoom: 1.25 } as const;
