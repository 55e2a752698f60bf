/** @jsxImportSource hono/jsx/dom */
/** Everything of the player that is not in its row: links, the library, statistics. */
import type { Child } from "hono/jsx";
import { Drawer } from "./menu.tsx";
import { SharePanel, type SharePanelProps } from "./share-panel.tsx";
import { text } from "./texts.ts";

/** Properties of `MoreMenu`. */
export interface MoreMenuProps extends SharePanelProps {
  readonly children: Child;
}

/** The menu. */
export function MoreMenu({ children, ...share }: MoreMenuProps) {
  return (
    <Drawer
      class="others"
      words={text("more")}
      icon="more"
      content={() => (
        <div class="sheet">
          <div class="actions">{children}</div>
          <SharePanel {...share} />
        </div>
      )}
    />
  );
}
