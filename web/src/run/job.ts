/** Jobs: what the server executes now. */

import { follow, type Handlers } from '../api/events';
import type { Job } from '../api/types';
import { counted } from '../ui/format';

/** Whether nothing will change any more. */
export function isOver(job: Job): boolean {
  return job.state === 'done' || job.state === 'failed' || job.state === 'stopped';
}

/** `12 of 40 repetitions`, and how it stands if it is not at work. */
export function detail(job: Job): string {
  const { repetitions, repetitions_done: done, points } = job.progress;
  const state = { waiting: '', running: '', stopping: 'stopping', done: 'done', failed: 'failed', stopped: 'stopped' }[job.state];
  const parts = [];
  if (repetitions > 0) parts.push(`${done.toLocaleString('en')} of ${counted(repetitions, 'repetition')}${points > 1 ? `, ${counted(points, 'point')}` : ''}`);
  else if (!isOver(job)) parts.push(`${Math.round(job.progress.fraction * 100)} %`);
  if (state) parts.push(state);
  return parts.join(', ');
}

/** Where the page of a job is: a run's own page, the form that began it, or the study. */
export function pageOf(job: Job): string {
  if (job.kind === 'plan') return `/plan?job=${encodeURIComponent(job.id)}`;
  if (job.kind === 'probe') return `/advise?job=${encodeURIComponent(job.id)}`;
  return `/jobs/${encodeURIComponent(job.id)}`;
}

/** Follows a job from what is known of it to its end. Returns how to stop following. */
export function watch(id: string, change: (job: Job) => void, more: Omit<Handlers, 'job'> = {}): () => void {
  return follow(id, { ...more, job: change });
}
