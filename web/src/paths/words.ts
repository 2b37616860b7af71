/** What the page says of learned paths. */
import { NEW_TEXT } from '../editor/files';

/** An experiment whose link is a learned path. */
export function over(name: string): string {
  return NEW_TEXT.replace('new experiment', `over ${name}`).replace(/rate = .*\ndelay = .*/, `profile = "${name}"`);
}

/** The lines in which `trunkline learn` says what it predicted and then measured, as cells; another line is one cell. */
export function verified(lines: readonly string[]): string[][] {
  return lines.map((line) => /^(.*), ([^,]*): predicted (.*), measured (.*), off by (.*)$/.exec(line)?.slice(1) ?? [line]);
}
