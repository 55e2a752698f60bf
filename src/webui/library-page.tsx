/** @jsxImportSource hono/jsx/dom */
/** The library: search as you type over any number of items, groups, channels, who is alive, import. */
import { useRef } from "hono/jsx/dom";
import { type Check, renewedChecks } from "./checks.ts";
import { call, type Item, type Task } from "./engine.ts";
import { ItemDialog } from "./item-dialog.tsx";
import { ItemRow, type Row } from "./item-row.tsx";
import { type ApiCategory, LibraryBar } from "./library-bar.tsx";
import { type Filter, filterOf, libraryHash } from "./library-filter.ts";
import { watchLibrary } from "./library-watch.ts";
import { Heading } from "./heading.tsx";
import { rewriteAddress, scrollOfEntry } from "./navigation.ts";
import { useEffect, useState } from "./state.ts";
import { TaskReport } from "./task-report.tsx";
import { follow, isOver, runningTask } from "./tasks.ts";
import { countText, errorText, text } from "./texts.ts";
import { VirtualList } from "./virtual-list.tsx";

/** Properties of `LibraryPage`. */
export interface LibraryPageProps {
  /** A list that was dropped: imported at once. */
  readonly dropped: File | null;
  readonly failed: (error: unknown) => void;
}

/** Lines fetched at once. */
const PAGE_ITEMS = 100;
/** What is on is loaded again after this, ms. */
const GUIDE_EVERY_MS = 60_000;
/** Items of which the checks are kept up to date while a sweep runs: more than are in sight. */
const MAX_WATCHED = 500;

/** Lines, and how many there are in all. */
interface Page {
  readonly total: number;
  readonly rows: readonly Row[];
}

/** The first matches of a filter; `key` distinguishes one filter from the next. */
interface Found {
  readonly key: number;
  readonly filter: Filter;
  readonly page: Page;
}

/** The room of what the user keeps. */
export function LibraryPage({ dropped, failed }: LibraryPageProps) {
  const [filter, setFilter] = useState<Filter>(filterOf(location.hash));
  const [version, setVersion] = useState(0);
  const [found, setFound] = useState<Found | null>(null);
  const [categories, setCategories] = useState<readonly ApiCategory[]>([]);
  const [checks, setChecks] = useState<ReadonlyMap<number, Check>>(new Map());
  const [task, setTask] = useState<Task | null>(null);
  const [opened, setOpened] = useState<Row | null>(null);
  const [trouble, setTrouble] = useState("");
  const ending = useRef(new AbortController());
  /** The address that says what is shown. */
  const address = useRef(location.hash);
  /** How far the list was scrolled when it was left. */
  const left = useRef(scrollOfEntry());
  /** Items that were loaded last. */
  const watched = useRef<readonly number[]>([]);
  const refused = (error: unknown) => {
    failed(error);
    setTrouble(errorText(error));
  };
  const load = async (offset: number): Promise<Page> => {
    const page = await loadPage(filter, offset);
    const ids = page.rows.flatMap(({ items }) => items.map(({ id }) => id));
    watched.current = [...watched.current!, ...ids].slice(-MAX_WATCHED);
    renewedChecks(new Map(), ids).then((news) => setChecks((known) => new Map([...known, ...news])), () => {});
    return page;
  };
  const showTask = async (taskId: number) => {
    try {
      await follow(taskId, (now) => {
        setTask(now);
        if (now.kind !== "playlist_check") return;
        renewedChecks(new Map(), watched.current!)
          .then((news) => setChecks((known) => new Map([...known, ...news])), () => {});
      }, ending.current!.signal);
      setVersion((before) => before + 1);
    } catch (error) {
      refused(error);
    }
  };
  useEffect(() => {
    // Tasks that began on another page, or before this one was loaded again, continue.
    const resume = async () => {
      const running = await runningTask("playlist_import") ?? await runningTask("playlist_check");
      if (running !== null) await showTask(running.task_id);
    };
    resume().catch(() => {});
    void watchLibrary(() => setVersion((before) => before + 1), ending.current!.signal);
    return () => ending.current!.abort();
  }, []);
  useEffect(() => {
    let isStale = false;
    load(0).then((page) => {
      if (isStale) return;
      setTrouble("");
      setFound((before) => ({ key: (before?.key ?? 0) + Number(before?.filter !== filter), filter, page }));
    }, refused);
    return () => {
      isStale = true;
    };
  }, [filter, version]);
  useEffect(() => {
    if (found === null) return;
    scrollTo(0, left.current!);
    left.current = 0;
  }, [found === null]);
  const hasGuide = found?.page.rows.some(({ items }) => items.some(({ epg }) => epg?.now || epg?.next)) === true;
  useEffect(() => {
    if (!hasGuide) return;
    const timer = setInterval(() => setVersion((before) => before + 1), GUIDE_EVERY_MS);
    return () => clearInterval(timer);
  }, [hasGuide]);
  useEffect(() => {
    call<{ categories: ApiCategory[] }>("playlist_get_categories").then(
      (got) => setCategories(got.categories),
      () => {},
    );
  }, [version]);
  const begin = (work: Promise<{ task_id: number }>) => work.then(({ task_id }) => showTask(task_id), refused);
  const importFile = (file: File) => void begin(call<{ task_id: number }>("playlist_import", {}, file));
  const check = (params: Record<string, string>) => void begin(call<{ task_id: number }>("playlist_check", params));
  useEffect(() => {
    if (dropped !== null) importFile(dropped);
  }, [dropped]);
  const change = (part: Partial<Filter>) => {
    scrollTo(0, 0);
    setFilter((before) => {
      const filter = { ...before, ...part };
      // What was typed last may be searched for when the user is elsewhere already.
      if (location.hash !== address.current) return before;
      address.current = libraryHash(filter);
      rewriteAddress(address.current);
      return filter;
    });
  };
  return (
    <section class="library">
      <Heading words={text("library")} />
      <LibraryBar
        filter={filter}
        categories={categories}
        count={found === null ? "" : countText(found.filter.byChannel ? "channels" : "items", found.page.total)}
        change={change}
        importFile={importFile}
        check={task !== null && !isOver(task) ? null : () => check(filterParams(filter))}
      />
      <p class="actions">
        {hasGuide ? <a class="button" href="#/guide">{text("programmes")}</a> : null}
        <a class="button" href="#/recordings">{text("recordings")}</a>
      </p>
      {task === null ? null : <TaskReport task={task} close={() => setTask(null)} />}
      <p role="alert">{trouble}</p>
      {found === null ? null : found.page.total === 0 ? <Nothing filter={found.filter} /> : (
        <VirtualList
          key={found.key}
          total={found.page.total}
          pageItems={PAGE_ITEMS}
          firstPage={found.page.rows}
          load={(offset: number) => load(offset).then((page) => page.rows)}
          row={(row: Row) => (
            <ItemRow
              key={row.id}
              row={row}
              checks={checks}
              open={() => setOpened(row)}
              refused={refused}
            />
          )}
        />
      )}
      {opened === null ? null : (
        <ItemDialog
          row={opened}
          checks={checks}
          groups={categories.map(({ name }) => name)}
          check={(ids) => check({ ids: ids.join() })}
          close={(changed) => {
            setOpened(null);
            if (changed) setVersion((before) => before + 1);
          }}
        />
      )}
    </section>
  );
}

function Nothing({ filter: { query, category, onlyFavourites } }: { readonly filter: Filter }) {
  const isEmpty = query === "" && category === "" && !onlyFavourites;
  return (
    <div class="empty">
      <h2>{text(isEmpty ? "emptyTitle" : "noMatch")}</h2>
      {isEmpty ? <p>{text("emptyHint")}</p> : null}
    </div>
  );
}

/** The parameters that playlist_get, search and playlist_check have in common. */
function filterParams({ query, category, onlyFavourites }: Filter): Record<string, string> {
  return {
    ...query === "" ? {} : { query },
    ...category === "" ? {} : { category },
    ...onlyFavourites ? { is_favorite: "1" } : {},
  };
}

async function loadPage(filter: Filter, offset: number): Promise<Page> {
  const params = filterParams(filter);
  if (!filter.byChannel) {
    const { total_items, playlist } = await call<{ total_items: number; playlist: Item[] }>("playlist_get", {
      ...params,
      offset: String(offset),
      limit: String(PAGE_ITEMS),
      show_epg: "1",
    });
    return { total: total_items, rows: playlist.map((item) => ({ id: item.id, items: [item] })) };
  }
  const { total, results } = await call<{ total: number; results: { items: Item[] }[] }>("search", {
    ...params,
    group_by_channels: "1",
    page: String(offset / PAGE_ITEMS),
    page_size: String(PAGE_ITEMS),
    show_epg: "1",
  });
  return { total, rows: results.map(({ items }) => ({ id: items[0]!.id, items })) };
}
