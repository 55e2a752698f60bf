/** @jsxImportSource hono/jsx/dom */
/** The engine's settings, its users, and the last errors. */
import { Heading } from "./heading.tsx";
import { AccountCard } from "./account-card.tsx";
import { DevicesCard } from "./devices-card.tsx";
import { CastCard } from "./cast-card.tsx";
import { type ApiCastSenders, type ApiLogLine, type ApiSettings, call, type Task } from "./engine.ts";
import { AccessCard, EngineCard, LimitsCard, TokenCard } from "./settings-cards.tsx";
import { useEffect, useState } from "./state.ts";
import { type ApiStorage, readStorage, StorageCard } from "./storage-card.tsx";
import { errorText, listFailureText, text, timeText } from "./texts.ts";

/** Time between two checks, ms. */
const LOOK_EVERY_MS = 3000;

/** Names of tasks by their kind. */
const TASK_NAMES: Readonly<Record<string, "taskImport" | "taskLists" | "taskCheck">> = {
  playlist_import: "taskImport",
  update_all_external_playlists: "taskLists",
  playlist_check: "taskCheck",
};

/** Properties of `SettingsPage`. */
export interface SettingsPageProps {
  readonly failed: (error: unknown) => void;
}

/** Everything that the page shows. */
interface State {
  readonly settings: ApiSettings;
  readonly senders: ApiCastSenders;
  readonly tasks: readonly Task[];
  readonly lines: readonly ApiLogLine[];
  /** As it was first; its card looks again by itself. */
  readonly storage: ApiStorage;
}

/** The room of settings. */
export function SettingsPage({ failed }: SettingsPageProps) {
  const [state, setState] = useState<State | null>(null);
  const [trouble, setTrouble] = useState("");
  const [version, setVersion] = useState(0);
  useEffect(() => {
    const ending = new AbortController();
    let storage = state?.storage ?? null;
    const look = async () => {
      while (!ending.signal.aborted) {
        try {
          const [settings, senders, { tasks }, { lines }] = await Promise.all([
            call<ApiSettings>("get_settings"),
            call<ApiCastSenders>("get_cast_senders"),
            call<{ tasks: Task[] }>("get_tasks"),
            call<{ lines: ApiLogLine[] }>("get_log"),
          ]);
          storage ??= await readStorage();
          if (ending.signal.aborted) return;
          setTrouble("");
          setState({ settings, senders, tasks, lines, storage });
        } catch (error) {
          if (ending.signal.aborted) return;
          failed(error);
          setTrouble(errorText(error));
        }
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      }
    };
    void look();
    return () => ending.abort();
  }, [version]);
  const changed = () => setVersion(version + 1);
  return (
    <section class="settings">
      <Heading words={text("settings")} />
      <p role="alert">{trouble === "" ? "" : text("failed", trouble)}</p>
      {state === null ? <p class={trouble === "" ? "flow" : ""} /> : (
        <div class="cards">
          <EngineCard settings={state.settings} />
          <AccessCard settings={state.settings} changed={changed} />
          <LimitsCard settings={state.settings} changed={changed} />
          <CastCard senders={state.senders} changed={changed} />
          <TokenCard />
          <AccountCard />
          <DevicesCard />
          <TasksCard tasks={state.tasks} changed={changed} />
          {/* These two have a whole row, so they stand below the others and leave no gaps between them. */}
          <StorageCard first={state.storage} changed={changed} />
          <LogCard lines={state.lines} />
        </div>
      )}
    </section>
  );
}

function taskText({ error, error_code, state, done, total }: Task): string {
  return error === null ? text(`task_${state}`, done, total < 0 ? "…" : total) : listFailureText(error, error_code);
}

function TasksCard({ tasks, changed }: { readonly tasks: readonly Task[]; readonly changed: () => void }) {
  return (
    <article class="card">
      <h2>{text("tasks")}</h2>
      {tasks.length === 0 ? <p class="note">{text("noTasks")}</p> : null}
      <ul class="rows">
        {tasks.slice(0, 10).map((task) => (
          <li key={task.task_id}>
            <div>
              <strong>{text(TASK_NAMES[task.kind] ?? "tasks")}</strong>
              <small>{taskText(task)}</small>
              {task.state === "running" && task.total > 0 ? <progress max={task.total} value={task.done} /> : null}
            </div>
            {task.state === "running" || task.state === "queued"
              ? (
                <button
                  type="button"
                  onClick={() => void call("cancel_task", { task_id: `${task.task_id}` }).then(changed, changed)}
                >
                  {text("stop")}
                </button>
              )
              : null}
          </li>
        ))}
      </ul>
    </article>
  );
}

function LogCard({ lines }: { readonly lines: readonly ApiLogLine[] }) {
  return (
    <article class="card wide">
      <h2>{text("log")}</h2>
      {lines.length === 0 ? <p class="note">{text("noLog")}</p> : (
        <ol class="log" tabIndex={0} aria-label={text("log")}>
          {lines.map((line, at) => (
            <li key={`${line.time}-${lines.length - at}`} class={line.level}>
              <time>{timeText(line.time)}</time>
              <span>{line.message}</span>
              <small>{line.detail}</small>
            </li>
          ))}
        </ol>
      )}
    </article>
  );
}
