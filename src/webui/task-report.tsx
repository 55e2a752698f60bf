/** @jsxImportSource hono/jsx/dom */
/** Progress and result of an import or a check. */
import { call, type Task } from "./engine.ts";
import { isOver } from "./tasks.ts";
import { lineText, listFailureText, text } from "./texts.ts";

/** Properties of `TaskReport`. */
export interface TaskReportProps {
  readonly task: Task;
  /** Called when the user closes the report. */
  readonly close: () => void;
}

/** Bad lines that are shown; the rest is counted. */
const MAX_LINES = 10;

/** Progress with a button that stops it, then the result with a button that puts it away. */
export function TaskReport({ task, close }: TaskReportProps) {
  const isDone = isOver(task);
  const stop = () => void call("cancel_task", { task_id: String(task.task_id) }).catch(() => {});
  return (
    <div class="report">
      <div class="line">
        <p role="status">{isDone ? resultText(task) : progressText(task)}</p>
        <button type="button" onClick={isDone ? close : stop}>{text(isDone ? "close" : "stop")}</button>
      </div>
      {isDone
        ? null
        : task.total < 0
        ? <progress aria-label={progressText(task)} />
        : <progress max={Math.max(1, task.total)} value={task.done} aria-label={progressText(task)} />}
      {task.errors.length === 0 ? null : (
        <ul>
          {task.errors.slice(0, MAX_LINES).map(({ line, message }) => (
            <li key={line}>{text("line", line, lineText(message))}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

function progressText({ kind, done, total, skipped }: Task): string {
  const all = total < 0 ? "…" : total;
  return kind === "playlist_check" ? text("checking", done, all, done - skipped) : text("importing", done, all);
}

function resultText({ kind, error, error_code, done, skipped, errors_total }: Task): string {
  if (error !== null) return listFailureText(error, error_code);
  return kind === "playlist_check"
    ? text("checked", done, done - skipped)
    : text("imported", done - skipped, skipped, errors_total);
}
