/** @jsxImportSource hono/jsx/dom */
/** Chooses the part of the library that is shown (words, group, favourites, channels), and fills and checks it. */
import { useRef } from "hono/jsx/dom";
import type { Filter } from "./library-filter.ts";
import { useEffect } from "./state.ts";
import { text } from "./texts.ts";

/** After the last key until the search, ms. */
const SEARCH_DELAY_MS = 150;

/** A category, as `playlist_get_categories` returns it. */
export interface ApiCategory {
  readonly name: string;
  readonly items: number;
}

/** Properties of `LibraryBar`. */
export interface LibraryBarProps {
  readonly filter: Filter;
  readonly categories: readonly ApiCategory[];
  readonly count: string;
  readonly change: (part: Partial<Filter>) => void;
  readonly importFile: (file: File) => void;
  /** Checks whether peers share the shown items; null while that runs. */
  readonly check: (() => void) | null;
}

/** The bar. */
export function LibraryBar({ filter, categories, count, change, importFile, check }: LibraryBarProps) {
  const timer = useRef(0);
  const field = useRef<HTMLInputElement>(null);
  // Only at first: what is typed is ahead of the filter.
  useEffect(() => {
    field.current!.value = filter.query;
    return () => clearTimeout(timer.current!);
  }, []);
  const typed = (event: Event) => {
    clearTimeout(timer.current!);
    const { value } = event.target as HTMLInputElement;
    timer.current = setTimeout(() => change({ query: value.trim() }), SEARCH_DELAY_MS) as unknown as number;
  };
  return (
    <form class="bar" role="search" onSubmit={(event: Event) => event.preventDefault()}>
      <input ref={field} type="search" aria-label={text("search")} placeholder={text("search")} onInput={typed} />
      {categories.length === 0 ? null : (
        <select
          aria-label={text("group")}
          onChange={(event: Event) => change({ category: (event.target as HTMLSelectElement).value })}
        >
          <option value="">{text("allGroups")}</option>
          {categories.map(({ name, items }) => (
            <option key={name} value={name} selected={name === filter.category}>{name} ({items})</option>
          ))}
        </select>
      )}
      <button
        type="button"
        aria-pressed={String(filter.onlyFavourites)}
        onClick={() => change({ onlyFavourites: !filter.onlyFavourites })}
      >
        {filter.onlyFavourites ? "★" : "☆"} {text("favourites")}
      </button>
      <button
        type="button"
        aria-pressed={String(filter.byChannel)}
        onClick={() => change({ byChannel: !filter.byChannel })}
      >
        {text("byChannel")}
      </button>
      <button type="button" disabled={check === null} onClick={() => check?.()}>{text("whoIsAlive")}</button>
      <label class="button">
        {text("importFile")}
        <input
          type="file"
          accept=".m3u,.m3u8,.gz,audio/x-mpegurl"
          onChange={(event: Event) => {
            const file = (event.target as HTMLInputElement).files?.[0];
            if (file !== undefined) importFile(file);
          }}
        />
      </label>
      <span class="count" role="status">{count}</span>
    </form>
  );
}
