/** A job that a form began: followed to its end, then its result. */

import { explain, get, part } from '../api/client';
import type { Job } from '../api/types';
import { isOver, watch } from '../run/job';
import { announce } from '../ui/live.svelte';

export class FormJob<Result> {
  job = $state.raw<Job | undefined>();
  result = $state.raw<Result | undefined>();
  failure = $state('');
  /** What it has told, each once. */
  notes = $state<string[]>([]);
  private stopWatching: (() => void) | undefined;
  /** Which job is followed. */
  private id: string | undefined;

  /** Whether it is at work. */
  get isBusy(): boolean {
    return this.job !== undefined && !isOver(this.job);
  }

  /** Follows a job from where it is. */
  follow(id: string): void {
    if (id === this.id) return;
    this.leave();
    this.id = id;
    this.job = undefined;
    this.result = undefined;
    this.failure = '';
    this.notes = [];
    get<Job>(`/jobs/${part(id)}`).then(
      (job) => {
        if (id !== this.id) return;
        this.job = job;
        if (isOver(job)) this.finish(id);
        else {
          this.stopWatching = watch(id, (job) => (this.job = job), {
            warning: ({ message }) => {
              if (!this.notes.includes(message)) this.notes.push(message);
            },
            end: () => this.finish(id),
          });
        }
      },
      (error) => this.failed(id, error),
    );
  }

  private failed(id: string, error: unknown): void {
    if (id === this.id) this.failure = explain(error);
  }

  /** Stops following; the job goes on. */
  leave(): void {
    this.stopWatching?.();
    this.stopWatching = this.id = undefined;
  }

  private async finish(id: string): Promise<void> {
    try {
      const job = await get<Job>(`/jobs/${part(id)}`);
      if (id !== this.id) return;
      this.job = job;
      // What failed says why on its own; what was stopped may have a result all the same.
      if (job.state === 'failed') return;
      const result = await get<Result>(`/jobs/${part(id)}/result`);
      if (id !== this.id) return;
      this.result = result;
      announce('The answer is here.');
    } catch (error) {
      this.failed(id, error);
    }
  }
}
