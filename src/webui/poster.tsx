/** @jsxImportSource hono/jsx/dom */
/** The picture of a tile; where there is none, one that is drawn from the title. */
import { useState } from "./state.ts";

/** Colours that drawn tiles have, in the style sheet. */
const HUES = 6;

/** Properties of `Poster`. */
export interface PosterProps {
  readonly title: string;
  /** Its address; null: there is none. */
  readonly picture: string | null;
  /** A logo is shown whole, on a ground; a still fills the tile. */
  readonly isLogo?: boolean;
}

/** The tile's picture. The title stands beside it, so that nobody has to hear it twice. */
export function Poster({ title, picture, isLogo = false }: PosterProps) {
  const [isBroken, setBroken] = useState(false);
  if (picture === null || isBroken) {
    return (
      <span class={`poster drawn hue-${hueOf(title)}`} aria-hidden="true">
        <svg viewBox="0 0 32 18" preserveAspectRatio="none">
          <path d="M0 11c5-4 9 4 16 0s11 4 16 0V18H0z" />
          <path d="M0 14c6-3 10 3 16 0s10 3 16 0V18H0z" />
        </svg>
        <b>{[...title.trim()].slice(0, 1)}</b>
      </span>
    );
  }
  return (
    <img
      class={isLogo ? "poster logo-whole" : "poster"}
      loading="lazy"
      decoding="async"
      alt=""
      src={picture}
      onError={() => setBroken(true)}
    />
  );
}

/** The same title has the same colour each time. */
function hueOf(title: string): number {
  let sum = 0;
  for (const letter of title) sum = (sum * 31 + letter.codePointAt(0)!) % 9973;
  return sum % HUES;
}
