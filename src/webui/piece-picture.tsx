/** @jsxImportSource hono/jsx/dom */
/** Which pieces are downloaded and which are on their way, as the track of the timeline. */
import type { Stat } from "./engine.ts";
import { CHANNEL_HEIGHT, columnsPath, waterPath } from "./pieces.ts";
import { text } from "./texts.ts";

/** Properties of `PiecePicture`. */
export interface PiecePictureProps {
  readonly stat: Stat;
}

/** The picture; an empty track for broadcasts and before the pieces are known. */
export function PiecePicture({ stat }: PiecePictureProps) {
  const { pieces } = stat;
  if (!pieces) return <div class="channel" />;
  const width = pieces.cells.length;
  const here = [...pieces.cells].reduce((sum, level) => sum + Number(level), 0) / (9 * width);
  return (
    <figure class={stat.speed_down > 0 ? "channel moving" : "channel"}>
      <svg
        viewBox={`0 0 ${width} ${CHANNEL_HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={text("piecesHere", Math.floor(100 * here), pieces.under_way.length)}
      >
        <path class="coming" d={columnsPath(pieces.under_way)} />
        <path class="water" d={waterPath(pieces.cells)} />
      </svg>
    </figure>
  );
}
