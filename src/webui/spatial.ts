/** Arrow keys move the focus on the page, as the remote of a TV expects. */

const FOCUSABLE = "a[href], button:not([disabled]), input, select, summary, video";
/** Fields in which the arrow keys to the sides have a meaning of their own. */
const OWN_SIDES = "input, select, video";

type Box = Pick<DOMRect, "left" | "right" | "top" | "bottom">;

/** How far `to` is from `from` in a direction; null when it does not lie there. Sideways counts double. */
export function distance(from: Box, to: Box, key: string): number | null {
  const gap = (a1: number, a2: number, b1: number, b2: number) => Math.max(0, b1 - a2, a1 - b2);
  const aside = gap(from.left, from.right, to.left, to.right);
  const along = gap(from.top, from.bottom, to.top, to.bottom);
  const middle = (box: Box, horizontal: boolean) =>
    horizontal ? (box.left + box.right) / 2 : (box.top + box.bottom) / 2;
  const isHorizontal = key === "ArrowLeft" || key === "ArrowRight";
  const step = middle(to, isHorizontal) - middle(from, isHorizontal);
  const isAhead = key === "ArrowLeft" || key === "ArrowUp" ? step < 0 : step > 0;
  if (!isAhead || (isHorizontal ? aside : along) === 0 && !touches(from, to, isHorizontal)) return null;
  return isHorizontal ? aside + 2 * along : along + 2 * aside;
}

/** Neighbours in one line or column may touch; what lies over each other in the other direction does not count. */
function touches(from: Box, to: Box, isHorizontal: boolean): boolean {
  return isHorizontal
    ? from.right <= to.left + 1 || to.right <= from.left + 1
    : from.bottom <= to.top + 1 || to.bottom <= from.top + 1;
}

/** Begins to listen. A page that plays keeps its own keys while nothing has the focus. */
export function moveFocusByArrows(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || !event.key.startsWith("Arrow") || event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    const active = document.activeElement;
    const isSideways = event.key === "ArrowLeft" || event.key === "ArrowRight";
    if (active !== null && active.matches(OWN_SIDES) && (isSideways || active.matches("select, video"))) return;
    // What lies behind an open dialog takes no focus.
    const scope = document.querySelector("dialog[open]") ?? document;
    const all = [...scope.querySelectorAll<HTMLElement>(FOCUSABLE)].filter((element) => element.offsetParent !== null);
    const isNowhere = active === null || active === document.body || active.id === "content" || active === scope;
    const next = isNowhere
      ? isSideways ? undefined : all.find((element) => element.closest("main") !== null)
      : nearest(active, all, event.key);
    if (next === undefined) return;
    next.focus();
    event.preventDefault();
  });
}

function nearest(active: Element, all: readonly HTMLElement[], key: string): HTMLElement | undefined {
  const from = active.getBoundingClientRect();
  let best: { readonly element: HTMLElement; readonly far: number } | undefined;
  for (const element of all) {
    const far = element === active ? null : distance(from, element.getBoundingClientRect(), key);
    if (far !== null && (best === undefined || far < best.far)) best = { element, far };
  }
  return best?.element;
}
