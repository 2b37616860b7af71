/** The pages of this application. Each is loaded when it is first wanted, and gets `params` and `query` of its address. */
import type { Component } from 'svelte';
import { drafts } from './editor/files';

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
  '/login': { title: 'Log in', section: '', load: () => import('./Login.svelte') },
  '/login/:code': { title: 'Log in', section: '', load: () => import('./Login.svelte') },
  '/start': { title: 'Start', section: 'start', load: () => import('./Start.svelte') },
  '/edit': { title: 'Draw', section: 'edit', load: () => import('./editor/Editor.svelte') },
  '/runs': { title: 'Runs', section: 'runs', load: () => import('./results/Runs.svelte') },
  '/runs/:id': { title: 'Run', section: 'runs', load: () => import('./results/RunPage.svelte') },
  '/jobs/:id': { title: 'At work', section: 'runs', load: () => import('./run/JobPage.svelte') },
  '/compare/:a/:b': { title: 'Comparison', section: 'runs', load: () => import('./results/ComparePage.svelte') },
  '/definitions': { title: 'What figures mean', section: 'runs', load: () => import('./results/Definitions.svelte') },
  '/definitions/:metric': { title: 'What figures mean', section: 'runs', load: () => import('./results/Definitions.svelte') },
  '/papers': { title: 'Published studies', section: 'papers', load: () => import('./papers/Gallery.svelte') },
  '/papers/:name': { title: 'Published study', section: 'papers', load: () => import('./papers/StudyPage.svelte') },
  '/advise': { title: 'Advice', section: 'advise', load: () => import('./advise/AdvisePage.svelte') },
  '/plan': { title: 'Plan', section: 'plan', load: () => import('./advise/PlanPage.svelte') },
  '/agents': { title: 'Agents', section: 'agents', load: () => import('./agents/AgentsPage.svelte') },
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

/** Where one starts: where something was drawn, there; otherwise with a question. */
export function start(): string {
  return drafts().length > 0 ? '/edit' : '/start';
}
