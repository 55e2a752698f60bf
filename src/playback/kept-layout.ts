/** The MPEG TS from a later time on, kept so that all ranges that a player reads belong to one layout. */
import type { TsLayout } from "../media/model/types.ts";
import { SharedTask } from "./shared-task.ts";

/** The layout that was asked for last. */
export class KeptLayout {
  #kept: { readonly fromMs: number; readonly task: SharedTask<TsLayout> } | null = null;

  /** The layout from `fromMs` on, which `make` makes unless it is kept. Rejects as `make`, or with the signal's reason. */
  get(fromMs: number, make: (own: AbortSignal) => Promise<TsLayout>, signal: AbortSignal): Promise<TsLayout> {
    let kept = this.#kept;
    if (kept?.fromMs !== fromMs || kept.task.abandoned) kept = this.#kept = { fromMs, task: new SharedTask(make) };
    const { task } = kept;
    return task.wait(signal).catch((error) => {
      if (this.#kept?.task === task) this.#kept = null;
      throw error;
    });
  }
}
