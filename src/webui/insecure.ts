/**
 * What browsers offer only to secure contexts (https, and http on their own machine), done without: most people open the
 * page over plain http from another device.
 */

/** 32 hexadecimal digits that nobody guesses, as `crypto.randomUUID` gives them only to secure contexts. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Puts `value` on the clipboard; false when the browser does not let the page. Call it in the click's own turn. */
export async function copyText(value: string): Promise<boolean> {
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (clipboard === undefined) return copyFromField(value);
  return await clipboard.writeText(value).then(() => true, () => copyFromField(value));
}

/** Copies a selection, as browsers still let any page do. */
function copyFromField(value: string): boolean {
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.value = value;
  field.readOnly = true;
  field.style.position = "fixed";
  field.style.opacity = "0";
  // A modal dialog makes everything outside it inert.
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  try {
    return document.execCommand("copy");
  } finally {
    field.remove();
    if (before instanceof HTMLElement) before.focus();
  }
}
