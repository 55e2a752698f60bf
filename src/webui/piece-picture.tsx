/** @jsxImportSource hono/jsx/dom */
/** Which pieces are downloaded, which are on their way, and where somebody reads. */
import type { Stat } from "./engine.ts";
import { CHANNEL_HEIGHT, columnsPath, waterPath } from "./pieces.ts";
import { text } from "./texts.ts";

/** Properties of `PiecePicture`. */
export interface PiecePictureProps {
  readonly stat: Stat;
  /** Where the picture stands, 0 to 1; null while that is not known. */
  readonly played: number | null;
}

/** The picture; nothing for broadcasts and before the pieces are known. */
export function PiecePicture({ stat, played }: PiecePictureProps) {
  const { pieces } = stat;
  if (!pieces) return null;
  const width = pieces.cells.length;
  const here = [...pieces.cells].reduce((sum, level) => sum + Number(level), 0) / (9 * width);
  const readers = played === null ? pieces.readers.map((cell) => cell + 0.5) : [played * width];
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
      {readers.map((at) => <span key={at} class="buoy" style={{ left: `${100 * at / width}%` }} />)}
    </figure>
  );
}
