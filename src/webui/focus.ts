/** Where the focus goes when what had it disappears, and when the user goes somewhere: to the heading, never to nowhere. */

/** Keeps the focus within `document` from now on. */
export function keepFocus(): void {
  let last: Element | null = null;
  addEventListener("focusin", (event) => last = event.target as Element);
  new MutationObserver(() => {
    // Browsers give it to the body.
    const { activeElement: active, body } = document;
    const isLost = last !== null && !last.isConnected && (active === null || active === body);
    if (isLost || isWanted) focusHeading();
  }).observe(document.body, { childList: true, subtree: true });
}

/** The heading of the new view was not there yet. */
let isWanted = false;

/** Puts the focus on the heading of what is shown; where there is none yet, as soon as there is one. */
export function focusHeading(): void {
  const heading = document.querySelector<HTMLElement>("main h1");
  isWanted = heading === null;
  heading?.focus({ preventScroll: true });
}
