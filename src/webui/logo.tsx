/** @jsxImportSource hono/jsx/dom */
/** The picture of an item; its first letter where it has none, or one that does not load. */
import { BASE, type Item } from "./engine.ts";
import { useState } from "./state.ts";

/** Properties of `Logo`. */
export interface LogoProps {
  readonly title: string;
  /** null: no item of the library. */
  readonly item: Pick<Item, "id" | "icons"> | null;
}

/** The tile. */
export function Logo({ title, item }: LogoProps) {
  const [isBroken, setBroken] = useState(false);
  if (item === null || item.icons.length === 0 || isBroken) {
    return <span class="logo" aria-hidden="true">{[...title.trim()][0]}</span>;
  }
  return (
    <img
      class="logo"
      loading="lazy"
      alt=""
      src={`${BASE}/server/api?method=get_channel_icon&id=${item.id}`}
      onError={() => setBroken(true)}
    />
  );
}
