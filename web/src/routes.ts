/** The pages of this application. Each is loaded when it is first wanted, and gets `params` and `query` of its address. */
import type { Component } from 'svelte';

export interface PageProps {
  params: Record<string, string>;
  query: URLSearchParams;
}

export interface Page {
  title: string;
  /** Which entry of the header is marked. */
  section: string;
  load: () => Promise<{ default: Component<PageProps> }>;
}

/** By pattern; the first that matches wins. */
export const pages: Record<string, Page> = {
  '/edit': { title: 'Draw', section: 'edit', load: () => import('./editor/Editor.svelte') },
};

/** The entries of the header. */
export const sections: { id: string; label: string; href: string }[] = [
  { id: 'edit', label: 'Draw', href: '#/edit' },
  { id: 'runs', label: 'Runs', href: '#/runs' },
  { id: 'papers', label: 'Papers', href: '#/papers' },
  { id: 'advise', label: 'Advise', href: '#/advise' },
  { id: 'plan', label: 'Plan', href: '#/plan' },
  { id: 'agents', label: 'Agents', href: '#/agents' },
];

/** Where one starts. */
export const START = '/edit';
