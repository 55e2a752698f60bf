/** Following background tasks of the engine. */
import { call, type Task } from "./engine.ts";

/** Time between two checks, ms. */
const LOOK_EVERY_MS = 500;

/** True when nothing of it is left to run. */
export function isOver({ state }: Task): boolean {
  return state !== "queued" && state !== "running";
}

/** Shows a task until it ends or `signal` fires. Rejects with `EngineError`. */
export async function follow(taskId: number, shown: (task: Task) => void, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const task = await call<Task>("get_task", { task_id: String(taskId) });
    if (signal.aborted) return;
    shown(task);
    if (isOver(task)) return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

/** The task of a kind that runs or waits; null: none. Rejects with `EngineError`. */
export async function runningTask(kind: string): Promise<Task | null> {
  const { tasks } = await call<{ tasks: Task[] }>("get_tasks");
  return tasks.find((task) => task.kind === kind && !isOver(task)) ?? null;
}
