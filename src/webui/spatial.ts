/** Arrow keys move the focus on the page, as the remote of a TV expects. */

const FOCUSABLE = "a[href], button:not([disabled]), input:not([disabled]), select, summary, video, [tabindex='0']";

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

/** Begins to listen. A page that plays keeps its own keys while nothing but the picture or a heading has the focus. */
export function moveFocusByArrows(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
    const active = document.activeElement;
    if (event.key === "Enter" && active instanceof HTMLSelectElement) return openSelect(active, event);
    if (!event.key.startsWith("Arrow") || (active !== null && usesArrow(active, event.key))) return;
    // What lies behind an open dialog or the player takes no focus.
    const player = document.querySelector(".theatre");
    const scope = document.querySelector("dialog[open]") ?? player ?? document;
    const all = [...scope.querySelectorAll<HTMLElement>(FOCUSABLE)].filter(isSeen);
    const isSideways = event.key === "ArrowLeft" || event.key === "ArrowRight";
    const isNowhere = active === null || active === scope || active.matches("body, main, h1, video");
    if (isNowhere && isSideways && (active === null || document.querySelector("video") !== null)) return;
    // In the player everything lies over the picture; its row comes first.
    const next = player !== null && isNowhere
      ? all.find((element) => element.closest(".row") !== null)
      : active === null || active.matches("body, main") || active === scope
      ? all.find((element) => element.closest("main") !== null)
      : nearest(active, all, event.key) ?? player?.querySelector<HTMLElement>("video");
    if (!next || next === active) return;
    next.focus();
    event.preventDefault();
  });
}

function isSeen(element: HTMLElement): boolean {
  // What is folded away has a parent, too; older browsers cannot report it.
  return "checkVisibility" in element ? element.checkVisibility() : (element as HTMLElement).offsetParent !== null;
}

/** Whether the element itself does something with an arrow key. */
function usesArrow(element: Element, key: string): boolean {
  if (element instanceof HTMLSelectElement) return isOpen(element);
  if (!(element instanceof HTMLInputElement) || key === "ArrowUp" || key === "ArrowDown") return false;
  if (element.type === "range") return true;
  // The caret of a text goes to its end first; other fields have none.
  const { selectionStart: from, selectionEnd: to, value } = element;
  return from !== null && (from !== to || from !== (key === "ArrowLeft" ? 0 : value.length));
}

/** Keys belong to the list of a `select` that is open. Browsers that cannot say so keep them from the page. */
function isOpen(element: HTMLSelectElement): boolean {
  try {
    return element.matches(":open");
  } catch {
    return false;
  }
}

/** OK on a remote opens the list, as everywhere else. */
function openSelect(element: HTMLSelectElement, event: KeyboardEvent): void {
  if (isOpen(element) || !("showPicker" in element)) return;
  element.showPicker();
  event.preventDefault();
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
