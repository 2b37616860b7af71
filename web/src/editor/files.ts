/** The file on this side: what was edited last, opening, saving, copying. */
const KEY = 'trunkline.draft';

export interface Draft {
  text: string;
  name: string;
}

/** What a new file begins with. */
export const NEW_TEXT = `name = "new experiment"
duration = "30 s"
repetitions = 3

[hosts]
a = {}
b = {}

[link.line]
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "10 ms"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice", samples = 80 }     # 80 B every 10 ms
`;

/** What was being edited when this browser was here last. */
export function keptDraft(): Draft | undefined {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? 'null') as Partial<Draft> | null;
    return kept && typeof kept.text === 'string' && typeof kept.name === 'string' ? { text: kept.text, name: kept.name } : undefined;
  } catch {
    return undefined;
  }
}

export function keepDraft(draft: Draft): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(draft));
  } catch {
    // Private browsing, or no room: the file can still be saved.
  }
}

/** Saves a text as a file, as browsers do it: a download. */
export function download(text: string, name: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: 'application/toml' }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Experiment files are small; what is larger is something else. */
const LARGEST = 2_000_000;

/** Reads a file that was chosen or dropped. */
export async function readFile(file: File): Promise<Draft> {
  if (file.size > LARGEST) throw new Error(`${file.name} is too large for an experiment file.`);
  const text = await file.text();
  if (text.includes('\0')) throw new Error(`${file.name} is not a text.`);
  return { text: text.replaceAll('\r\n', '\n'), name: file.name };
}
