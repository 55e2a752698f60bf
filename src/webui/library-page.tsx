/** @jsxImportSource hono/jsx/dom */
/** The library: search as you type over any number of items, import, favourites, trash. */
import { useEffect, useRef, useState } from "hono/jsx/dom";
import { call, type Item, type Task } from "./engine.ts";
import { ItemRow } from "./item-row.tsx";
import { text } from "./texts.ts";
import { VirtualList } from "./virtual-list.tsx";

/** Properties of `LibraryPage`. */
export interface LibraryPageProps {
  /** A list that was dropped: imported at once. */
  readonly dropped: File | null;
  readonly failed: (error: unknown) => void;
}

/** Items fetched at once. */
const PAGE_ITEMS = 100;
/** After the last key until the search, ms. */
const SEARCH_DELAY_MS = 150;
/** Between two looks at an import, ms. */
const TASK_EVERY_MS = 500;

interface Page {
  readonly total_items: number;
  readonly playlist: readonly Item[];
}

/** The beginning of what matches a query; `key` tells one search from the next. */
interface Found {
  readonly key: number;
  readonly query: string;
  readonly page: Page;
}

/** The room of what the user keeps. */
export function LibraryPage({ dropped, failed }: LibraryPageProps) {
  const [query, setQuery] = useState("");
  const [version, setVersion] = useState(0);
  const [found, setFound] = useState<Found | null>(null);
  const [task, setTask] = useState<Task | null>(null);
  const [trouble, setTrouble] = useState("");
  const refused = (error: unknown) => {
    failed(error);
    setTrouble(text("failed", error instanceof Error && error.message !== "" ? error.message : text("engineGone")));
  };
  const load = (offset: number): Promise<Page> =>
    call<Page>("playlist_get", {
      offset: String(offset),
      limit: String(PAGE_ITEMS),
      ...query === "" ? {} : { query },
    });
  useEffect(() => {
    let isOver = false;
    load(0).then((page) => {
      if (isOver) return;
      setTrouble("");
      setFound((before) => ({ key: (before?.key ?? 0) + 1, query, page }));
    }, refused);
    return () => {
      isOver = true;
    };
  }, [query, version]);
  const importFile = async (file: File) => {
    try {
      const { task_id } = await call<{ task_id: number }>("playlist_import", {}, file);
      for (;;) {
        const now = await call<Task>("get_task", { task_id: String(task_id) });
        setTask(now);
        if (now.state !== "queued" && now.state !== "running") break;
        await new Promise((resolve) => setTimeout(resolve, TASK_EVERY_MS));
      }
      setVersion((before) => before + 1);
    } catch (error) {
      refused(error);
    }
  };
  useEffect(() => {
    if (dropped !== null) void importFile(dropped);
  }, [dropped]);
  const timer = useRef(0);
  const typed = (event: Event) => {
    clearTimeout(timer.current!);
    const { value } = event.target as HTMLInputElement;
    timer.current = setTimeout(() => {
      scrollTo(0, 0);
      setQuery(value.trim());
    }, SEARCH_DELAY_MS) as unknown as number;
  };
  return (
    <section class="library">
      <form class="bar" role="search" onSubmit={(event: Event) => event.preventDefault()}>
        <input type="search" aria-label={text("search")} placeholder={text("search")} onInput={typed} />
        <label class="button">
          {text("importFile")}
          <input
            type="file"
            accept=".m3u,.m3u8,.gz,audio/x-mpegurl"
            onChange={(event: Event) => {
              const file = (event.target as HTMLInputElement).files?.[0];
              if (file !== undefined) void importFile(file);
            }}
          />
        </label>
        <span class="count" role="status">{found === null ? "" : text("items", found.page.total_items)}</span>
      </form>
      {task === null ? null : <ImportReport task={task} />}
      <p role="alert">{trouble}</p>
      {found === null ? null : found.page.total_items === 0
        ? (
          <div class="empty">
            <h1>{text(found.query === "" ? "emptyTitle" : "noMatch")}</h1>
            {found.query === "" ? <p>{text("emptyHint")}</p> : null}
          </div>
        )
        : (
          <VirtualList
            key={found.key}
            total={found.page.total_items}
            pageItems={PAGE_ITEMS}
            firstPage={found.page.playlist}
            load={(offset: number) => load(offset).then((page) => page.playlist)}
            row={(item: Item) => (
              <ItemRow
                key={item.id}
                item={item}
                changed={() => setVersion(version + 1)}
                refused={refused}
              />
            )}
          />
        )}
    </section>
  );
}

function ImportReport({ task }: { readonly task: Task }) {
  const isOver = task.state !== "queued" && task.state !== "running";
  return (
    <div class="report" role="status">
      {isOver
        ? <p>{task.error ?? text("imported", task.done - task.skipped, task.skipped, task.errors_total)}</p>
        : (
          <div>
            <p>{text("importing", task.done, task.total < 0 ? "…" : task.total)}</p>
            {task.total < 0 ? <progress /> : <progress max={task.total} value={task.done} />}
          </div>
        )}
      {task.errors.length === 0 ? null : (
        <ul>
          {task.errors.slice(0, 10).map(({ line, message }) => <li key={line}>{text("line", line, message)}</li>)}
        </ul>
      )}
    </div>
  );
}
