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
  /** Where in the documentation it stands. */
  docs?: string;
  load: () => Promise<{ default: Component<PageProps> }>;
}

/** By pattern; the first that matches wins. */
export const pages: Record<string, Page> = {
  '/login': { title: 'Log in', section: '', docs: 'page.html#access-from-other-machines', load: () => import('./Login.svelte') },
  '/login/:code': { title: 'Log in', section: '', docs: 'page.html#access-from-other-machines', load: () => import('./Login.svelte') },
  '/start': { title: 'Start', section: 'start', docs: 'tutorial.html', load: () => import('./Start.svelte') },
  '/edit': { title: 'Draw', section: 'edit', docs: 'page.html#draw', load: () => import('./editor/Editor.svelte') },
  '/runs': { title: 'Runs', section: 'runs', docs: 'page.html#compare', load: () => import('./results/Runs.svelte') },
  '/runs/:id': { title: 'Run', section: 'runs', docs: 'page.html#results', load: () => import('./results/RunPage.svelte') },
  '/jobs/:id': { title: 'At work', section: 'runs', docs: 'page.html#run-and-watch', load: () => import('./run/JobPage.svelte') },
  '/compare/:a/:b': { title: 'Comparison', section: 'runs', docs: 'page.html#compare', load: () => import('./results/ComparePage.svelte') },
  '/definitions': { title: 'What figures mean', section: 'runs', docs: 'metrics.html', load: () => import('./results/Definitions.svelte') },
  '/definitions/:metric': { title: 'What figures mean', section: 'runs', docs: 'metrics.html', load: () => import('./results/Definitions.svelte') },
  '/papers': { title: 'Published studies', section: 'papers', docs: 'papers.html', load: () => import('./papers/Gallery.svelte') },
  '/papers/:name': { title: 'Published study', section: 'papers', docs: 'papers.html', load: () => import('./papers/StudyPage.svelte') },
  '/advise': { title: 'Advice', section: 'advise', docs: 'advisor.html', load: () => import('./advise/AdvisePage.svelte') },
  '/paths': { title: 'Learned paths', section: 'paths', docs: 'paths.html#the-library', load: () => import('./paths/PathsPage.svelte') },
  '/paths/:name': { title: 'Learned path', section: 'paths', docs: 'paths.html#the-library', load: () => import('./paths/PathsPage.svelte') },
  '/plan': { title: 'Plan', section: 'plan', docs: 'planning.html', load: () => import('./advise/PlanPage.svelte') },
  '/agents': { title: 'Agents', section: 'agents', docs: 'agents.html', load: () => import('./agents/AgentsPage.svelte') },
};

/** An entry of the header. */
export interface Section {
  id: string;
  label: string;
  href: string;
}

export const sections: Section[] = [
  { id: 'edit', label: 'Draw', href: '#/edit' },
  { id: 'runs', label: 'Runs', href: '#/runs' },
  { id: 'papers', label: 'Papers', href: '#/papers' },
  { id: 'advise', label: 'Advise', href: '#/advise' },
  { id: 'paths', label: 'Paths', href: '#/paths' },
  { id: 'plan', label: 'Plan', href: '#/plan' },
  { id: 'agents', label: 'Agents', href: '#/agents' },
];

/** Where one starts: where something was drawn, there; otherwise with a question. */
export function start(): string {
  return drafts().length > 0 ? '/edit' : '/start';
}
