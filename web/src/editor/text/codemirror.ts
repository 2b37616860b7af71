/**
 * The text editor, loaded when it is first shown. It stands in a shadow root: there its style sheets are adopted ones, which
 * the server's content security policy allows, where style elements would be refused.
 */
import { autocompletion, completionKeymap, type CompletionContext } from '@codemirror/autocomplete';
import { defaultKeymap } from '@codemirror/commands';
import { bracketMatching, HighlightStyle, indentUnit, StreamLanguage, syntaxHighlighting } from '@codemirror/language';
import { toml } from '@codemirror/legacy-modes/mode/toml';
import { type Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint';
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search';
import { Annotation, EditorState } from '@codemirror/state';
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  hoverTooltip,
  keymap,
  lineNumbers,
} from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { difference } from './difference';
import type { Word } from './meaning';

/** What the text view tells the page. */
export interface TextEvents {
  typed: (text: string) => void;
  undo: () => void;
  redo: () => void;
  /** The cursor is elsewhere: an offset. */
  moved: (offset: number) => void;
  /** What may stand at an offset; within quotes or not. */
  words: (offset: number, isQuoted: boolean) => Word[];
  /** What the key at an offset means. */
  meaning: (offset: number) => { title: string; paragraphs: string[] } | undefined;
}

export interface TextEditor {
  /** Shows another text; where it is the same, the cursor and what is seen stay. */
  show(text: string): void;
  mark(problems: { from: number; to: number; message: string; fix?: { label: string; apply: () => unknown } }[]): void;
  /** Puts the cursor somewhere, shows that line and takes the focus. */
  go(line: number, column: number): void;
  /** Shows a line with the cursor on it, unless somebody is writing. */
  reveal(line: number): void;
  destroy(): void;
}

const ours = Annotation.define<boolean>();

export function createTextEditor(parent: ShadowRoot, text: string, events: TextEvents): TextEditor {
  const history = (act: () => void) => () => {
    act();
    return true;
  };
  const complete = (context: CompletionContext) => completed(context, events);
  const view = new EditorView({
    parent,
    root: parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        highlightActiveLine(),
        highlightActiveLineGutter(),
        drawSelection(),
        bracketMatching(),
        highlightSelectionMatches(),
        StreamLanguage.define(toml),
        syntaxHighlighting(colours),
        indentUnit.of('    '),
        lintGutter(),
        autocompletion({ override: [complete], icons: false }),
        hoverTooltip((_, at) => {
          const meaning = events.meaning(at);
          return meaning ? { pos: at, create: () => ({ dom: told(meaning) }) } : null;
        }),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': 'The experiment file, TOML', spellcheck: 'false', tabindex: '0' }),
        // One history for text and drawing. Tab leaves the field, as everywhere on the page.
        keymap.of([
          { key: 'Mod-z', run: history(events.undo), preventDefault: true },
          { key: 'Mod-y', mac: 'Mod-Shift-z', run: history(events.redo), preventDefault: true },
          { key: 'Mod-Shift-z', run: history(events.redo), preventDefault: true },
          ...completionKeymap,
          ...searchKeymap,
          ...defaultKeymap,
        ]),
        // Typing over a selection, a browser itself would style the line, which the content security policy forbids.
        EditorView.domEventHandlers({
          beforeinput: (event, view) => {
            if (event.inputType !== 'insertText' || event.data === null || view.composing || view.state.selection.main.empty) return false;
            event.preventDefault();
            view.dispatch(view.state.replaceSelection(event.data), { userEvent: 'input.type', scrollIntoView: true });
            return true;
          },
        }),
        EditorView.updateListener.of((update) => {
          const told = update.transactions.some((transaction) => transaction.annotation(ours));
          if (update.docChanged && !told) events.typed(update.state.doc.toString());
          if (update.selectionSet && !told) events.moved(update.state.selection.main.head);
        }),
        look,
      ],
    }),
  });
  return {
    show(next) {
      const change = difference(view.state.doc.toString(), next);
      if (change) view.dispatch({ changes: change, annotations: ours.of(true) });
    },
    mark(problems) {
      const length = view.state.doc.length;
      const diagnostics: Diagnostic[] = problems.map(({ from, to, message, fix }) => ({
        from: Math.min(from, length),
        to: Math.min(Math.max(to, from), length),
        severity: 'error',
        message,
        actions: fix ? [{ name: fix.label, apply: fix.apply }] : [],
      }));
      view.dispatch(setDiagnostics(view.state, diagnostics));
    },
    go(line, column) {
      const at = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
      const anchor = Math.min(at.from + column - 1, at.to);
      view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: 'center' }), annotations: ours.of(true) });
      view.focus();
    },
    reveal(line) {
      if (view.hasFocus) return;
      const at = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
      view.dispatch({ selection: { anchor: at.from }, effects: EditorView.scrollIntoView(at.from, { y: 'start', yMargin: 60 }), annotations: ours.of(true) });
    },
    destroy: () => view.destroy(),
  };
}

/** What may stand at the cursor: asked for, or while a word is typed. */
function completed(context: CompletionContext, events: TextEvents) {
  const { pos, explicit, state } = context;
  const line = state.sliceDoc(state.doc.lineAt(pos).from, pos);
  const isQuoted = (line.match(/"/g)?.length ?? 0) % 2 === 1;
  const from = isQuoted ? pos - (/[^"]*$/.exec(line)?.[0].length ?? 0) : (context.matchBefore(/[\w-]+/)?.from ?? pos);
  if (!explicit && !isQuoted && from === pos) return null;
  const options = events.words(pos, isQuoted).map(({ label, apply, detail, info }) => ({ label, apply: apply ?? label, detail, info: info === '' ? undefined : () => told({ title: '', paragraphs: [info] }) }));
  return options.length === 0 ? null : { from, options, validFor: isQuoted ? /^[^"]*$/ : /^[\w-]*$/ };
}

/** Help as an element: its code without the marks. */
function told({ title, paragraphs }: { title: string; paragraphs: readonly string[] }): HTMLElement {
  const dom = document.createElement('div');
  dom.className = 'cm-help';
  for (const [i, text] of [title, ...paragraphs].entries()) {
    if (text === '') continue;
    const part = dom.appendChild(document.createElement(i === 0 ? 'strong' : 'p'));
    part.textContent = text.replaceAll('`', '');
  }
  return dom;
}

const colours = HighlightStyle.define([
  { tag: tags.comment, color: 'var(--muted)', fontStyle: 'italic' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--series-4)' },
  { tag: [tags.number, tags.bool, tags.atom], color: 'var(--series-3)' },
  { tag: [tags.propertyName, tags.variableName, tags.definition(tags.variableName)], color: 'var(--accent)' },
  { tag: [tags.bracket, tags.heading], color: 'var(--text)', fontWeight: '600' },
]);

const look = EditorView.theme({
  '&': { height: '100%', color: 'var(--text)', backgroundColor: 'var(--surface)', fontSize: '13px' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55' },
  '.cm-content': { caretColor: 'var(--text)', padding: '10px 0' },
  '.cm-cursor': { borderLeftColor: 'var(--text)', borderLeftWidth: '2px' },
  '.cm-gutters': { backgroundColor: 'var(--surface)', color: 'var(--muted)', border: 'none', borderRight: '1px solid var(--line)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'color-mix(in srgb, var(--accent) 7%, transparent)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    background: 'color-mix(in srgb, var(--accent) 26%, transparent)',
  },
  '.cm-selectionMatch': { backgroundColor: 'color-mix(in srgb, var(--accent) 16%, transparent)' },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--accent-soft)', outline: '1px solid var(--accent)' },
  '.cm-lintRange-error': { backgroundImage: 'none', textDecoration: 'underline wavy var(--bad) 1px', textUnderlineOffset: '3px' },
  '.cm-lintPoint-error:after': { borderBottomColor: 'var(--bad)' },
  '.cm-lint-marker-error': { content: 'none', width: '8px', height: '8px', margin: '6px 2px', borderRadius: '50%', backgroundColor: 'var(--bad)' },
  '.cm-tooltip': { backgroundColor: 'var(--raised)', color: 'var(--text)', border: '1px solid var(--line)', borderRadius: '4px', maxWidth: '420px' },
  '.cm-help': { padding: '6px 10px', fontFamily: 'var(--font)', fontSize: '13px', lineHeight: '1.4' },
  '.cm-help p': { margin: '4px 0 0' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--accent-soft)', color: 'var(--text)' },
  '.cm-completionDetail': { color: 'var(--muted)', fontStyle: 'normal' },
  '.cm-diagnosticAction': { backgroundColor: 'var(--accent)', color: 'var(--surface)', fontFamily: 'var(--font)' },
  '.cm-diagnostic-error': { borderLeft: '3px solid var(--bad)', fontFamily: 'var(--font)' },
  '.cm-panels': { backgroundColor: 'var(--ground)', color: 'var(--text)', borderColor: 'var(--line)' },
  '.cm-panel.cm-search, .cm-textfield, .cm-button': { fontFamily: 'var(--font)', fontSize: 'var(--size-small)' },
  '.cm-panel.cm-search label': { fontSize: 'var(--size-small)' },
  '.cm-textfield': { backgroundColor: 'var(--surface)', border: '1px solid var(--line-strong)', borderRadius: '3px' },
  '.cm-button': { backgroundImage: 'none', backgroundColor: 'var(--surface)', border: '1px solid var(--line-strong)', borderRadius: '3px', color: 'var(--text)' },
});
