/** @jsxImportSource hono/jsx/dom */
/** The heading of what is shown: names the document, and takes the focus that would be lost. */
import { useEffect } from "./state.ts";

/** Properties of `Heading`. */
export interface HeadingProps {
  readonly words: string;
  readonly class?: string;
}

/** The page's first heading; each view has one. */
export function Heading({ words, class: name = "" }: HeadingProps) {
  useEffect(() => {
    document.title = `${words} – millrace`;
  }, [words]);
  return <h1 tabIndex={-1} class={name}>{words}</h1>;
}
