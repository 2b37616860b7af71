/** What repeating a study asks of this machine. */

import { counted, span } from '../ui/format';
import type { PaperRealTime } from './types';

/** What is measured of some tables, and how long that takes: at most, or about where it was made shorter. */
export interface Measured {
  tables: string[];
  seconds: number;
  isAbout: boolean;
}

/** What is measured of these tables: live always, on the wire if that is wanted. Fewer blocks take as much less. */
export function measured(realTime: readonly PaperRealTime[], tables: readonly string[], onWire: boolean, blocks?: number): Measured {
  const wanted = realTime.filter((one) => (onWire || one.on !== 'wire') && one.tables.some((table) => tables.includes(table)));
  const names = new Set(wanted.flatMap((one) => one.tables));
  const seconds = wanted.reduce((sum, one) => sum + one.length_s * (blocks && one.blocks ? blocks / one.blocks : 1), 0);
  return { tables: tables.filter((table) => names.has(table)), seconds, isAbout: blocks !== undefined };
}

/** What the button says: `Simulate all tables`, `Measure this table`, `Simulate and measure 3 tables`. */
export function verb(chosen: number, all: number, measuredTables: number): string {
  const count = chosen === 0 ? all : chosen;
  const does = measuredTables === 0 ? 'Simulate' : measuredTables < count ? 'Simulate and measure' : 'Measure';
  return `${does} ${chosen === 0 ? 'all tables' : chosen === 1 ? 'this table' : `${chosen} tables`}`;
}

/** What somebody should know before. */
export function warning({ tables, seconds, isAbout }: Measured): string {
  const what = tables.length === 1 ? `\`${tables[0]}\` is` : `${counted(tables.length, 'table')} are`;
  return `${what} measured in real time, for ${isAbout ? 'about' : 'at most'} ${span(seconds)}. No run that measures on this machine begins meanwhile; what computes beside it would be measured too.`;
}
