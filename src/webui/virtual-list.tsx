/** @jsxImportSource hono/jsx/dom */
/** A list of any length of which only the lines in sight exist; pages of it are fetched as they come into sight. */
import type { JSX } from "hono/jsx/dom/jsx-runtime";
import { useRef } from "hono/jsx/dom";
import { useEffect, useState } from "./state.ts";

/** Height of a line: what the style sheet gives it, in the page's letters, which are larger on a television. */
const ROW_REM = 4;

function rowPx(): number {
  return ROW_REM * parseFloat(getComputedStyle(document.documentElement).fontSize);
}
/** Lines above and below what is in sight, so that scrolling shows no blank. */
const SPARE_ROWS = 10;
/** Pages kept; the ones furthest away go first. */
const MAX_PAGES = 50;

/** Properties of `VirtualList`. */
export interface VirtualListProps<Item> {
  readonly total: number;
  readonly pageItems: number;
  /** What is known already. Another value: the items have changed, and all pages are loaded again as they are in sight. */
  readonly firstPage: readonly Item[];
  /** The page that begins at item `offset`. */
  readonly load: (offset: number) => Promise<readonly Item[]>;
  readonly row: (item: Item) => JSX.Element;
}

/** The list; it scrolls with the page. */
export function VirtualList<Item extends { readonly id: number }>(props: VirtualListProps<Item>) {
  const { total, pageItems, load, row } = props;
  const box = useRef<HTMLDivElement>(null);
  const pages = useRef(new Map<number, readonly Item[] | null>([[0, props.firstPage]]));
  /** Pages that are shown until they are loaded again. */
  const stale = useRef(new Set<number>());
  const [range, setRange] = useState({ first: 0, end: Math.min(total, 30), loaded: 0 });
  useEffect(() => {
    let isOver = false;
    const kept = pages.current!;
    if (kept.get(0) !== props.firstPage) {
      stale.current = new Set(kept.keys());
      stale.current.delete(0);
      kept.set(0, props.firstPage);
    }
    const fetchPage = (page: number) => {
      if (kept.has(page) && !stale.current!.has(page)) return;
      stale.current!.delete(page);
      if (!kept.has(page)) kept.set(page, null);
      for (const old of kept.keys()) if (kept.size > MAX_PAGES && Math.abs(old - page) > 2) kept.delete(old);
      load(page * pageItems).then((items) => {
        kept.set(page, items);
        if (!isOver) setRange((now) => ({ ...now, loaded: now.loaded + 1 }));
      }, () => kept.delete(page));
    };
    const look = () => {
      const row = rowPx();
      const top = -(box.current?.getBoundingClientRect().top ?? 0);
      const first = Math.max(0, Math.min(total - 1, Math.floor(top / row)) - SPARE_ROWS);
      const end = Math.min(total, Math.ceil((top + innerHeight) / row) + SPARE_ROWS);
      for (let page = Math.floor(first / pageItems); page * pageItems < end; page++) fetchPage(page);
      setRange((now) => now.first === first && now.end === end ? now : { ...now, first, end });
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      isOver = true;
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [props.firstPage]);
  const lines: JSX.Element[] = [];
  for (let at = range.first; at < Math.min(range.end, total); at++) {
    const item = pages.current!.get(Math.floor(at / pageItems))?.[at % pageItems];
    lines.push(
      <li key={item?.id ?? -at} style={{ top: `${at * ROW_REM}rem` }} aria-setsize={total} aria-posinset={at + 1}>
        {item === undefined ? null : row(item)}
      </li>,
    );
  }
  return (
    <div ref={box} class="virtual" style={{ height: `${total * ROW_REM}rem` }}>
      <ul>{lines}</ul>
    </div>
  );
}
