import type { InternalNode } from '@xyflow/svelte';
import type { Box } from './geometry';

/** The box of a node in the drawing, wherever it is being dragged. */
export function boxOf(node: InternalNode | undefined): Box {
  if (!node) return { x: 0, y: 0, width: 0, height: 0 };
  const { x, y } = node.internals.positionAbsolute;
  const width = node.measured.width ?? 0;
  const height = node.measured.height ?? 0;
  // A little room, so that lines end beside the border and not on it.
  return { x: x + width / 2, y: y + height / 2, width: width + 6, height: height + 6 };
}
