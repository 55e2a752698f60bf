/** Where the page is: its address, the entries of the browser's history, and the way back through them. */

/** What the page keeps with an entry of the history. */
interface EntryState {
  /** Entries of this page before it: with none, the browser's own "back" would leave the page. */
  readonly depth: number;
  /** How far it was scrolled, px. */
  readonly scroll?: number;
}

/** After the last movement until it is noted, ms: browsers limit how often an address may be rewritten. */
const SCROLL_DELAY_MS = 100;

let depth = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let moved: (isReplaced: boolean) => void = () => {};

/**
 * Begins to follow the address. `listener` is called when it has changed; `isReplaced`: the same thing has a new address
 * (the next episode), rather than the user went somewhere.
 */
export function followAddress(listener: (isReplaced: boolean) => void): () => void {
  moved = listener;
  // The page scrolls by itself: what was in sight is fetched again first.
  history.scrollRestoration = "manual";
  arrive(0);
  const changed = () => {
    clearTimeout(timer);
    arrive(depth + 1);
    moved(false);
  };
  const noteSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(noteScroll, SCROLL_DELAY_MS);
  };
  const backKey = (event: KeyboardEvent) => {
    if (!BACK_KEYS.includes(event.key)) return;
    event.preventDefault();
    goBack("#/play");
  };
  addEventListener("hashchange", changed);
  addEventListener("scroll", noteSoon, { passive: true });
  // A link that is followed leaves at once.
  addEventListener("click", noteScroll, { capture: true });
  addEventListener("keydown", backKey);
  return () => {
    removeEventListener("hashchange", changed);
    removeEventListener("scroll", noteSoon);
    removeEventListener("click", noteScroll, { capture: true });
    removeEventListener("keydown", backKey);
  };
}

/** Names of the "back" key of remotes whose browser leaves it to the page. */
const BACK_KEYS = ["GoBack", "BrowserBack", "XF86Back"];

function entry(): EntryState | null {
  return history.state as EntryState | null;
}

/** A new entry has no state yet. */
function arrive(depthOfNew: number): void {
  const state = entry();
  depth = state?.depth ?? depthOfNew;
  if (state === null) history.replaceState({ depth } satisfies EntryState, "");
}

function noteScroll(): void {
  clearTimeout(timer);
  const state = { depth, scroll: Math.round(scrollY) } satisfies EntryState;
  if (entry()?.scroll !== state.scroll) history.replaceState(state, "");
}

/** How far the present entry was scrolled when it was left, px; 0 at first. */
export function scrollOfEntry(): number {
  return entry()?.scroll ?? 0;
}

/** Gives what is shown another address without showing anything else: a reload and a copied link find it. */
export function rewriteAddress(hash: string): void {
  if (location.hash !== hash) history.replaceState(history.state, "", hash);
}

/** Shows what `hash` names in place of the present entry. */
export function replaceAddress(hash: string): void {
  rewriteAddress(hash);
  moved(true);
}

/** A new entry for what is shown already. */
export function pushAddress(hash: string): void {
  noteScroll();
  history.pushState({ depth: ++depth } satisfies EntryState, "", hash);
}

/** The browser's "back" within the page; `fallback` where the page was opened here. */
export function goBack(fallback: string): void {
  if (depth > 0) history.back();
  else {
    rewriteAddress(fallback);
    moved(false);
  }
}
