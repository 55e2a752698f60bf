/** @jsxImportSource hono/jsx/dom */
/** A broadcast as channels: from us to each neighbour, one stripe for each substream that flows. */
import type { Member } from "./engine.ts";
import { bytesText, text } from "./texts.ts";

/** Neighbours that are drawn; the rest is in the table. */
const MAX_DRAWN = 12;
/** Width, height of one neighbour's line, and distance of stripes, px of the picture. */
const WIDTH = 640;
const LINE = 44;
const STRIPE = 4;

/** A member further behind than this has another colour, pieces. */
const LATE_PIECES = 4;

/** Properties of `SwarmPicture`. */
export interface SwarmPictureProps {
  readonly members: readonly Member[];
}

/** The picture; nothing without neighbours. */
export function SwarmPicture({ members }: SwarmPictureProps) {
  const drawn = members.slice(0, MAX_DRAWN);
  if (drawn.length === 0) return null;
  const height = drawn.length * LINE;
  return (
    <svg class="swarm" viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label={text("swarmPicture", members.length)}>
      {drawn.map((member, at) => (
        <Branch
          key={member.address}
          member={member}
          y={(at + 0.5) * LINE}
          from={height / 2}
        />
      ))}
      <circle class="us" cx="24" cy={height / 2} r="12" />
    </svg>
  );
}

function Branch({ member, y, from }: { readonly member: Member; readonly y: number; readonly from: number }) {
  const flows = [...member.to.map((n) => ({ n, kind: "to" })), ...member.from.map((n) => ({ n, kind: "from" }))];
  const lines = flows.length > 0 ? flows : [{ n: 0, kind: "idle" }];
  const shift = (at: number) => (at - (lines.length - 1) / 2) * STRIPE;
  return (
    <g>
      {lines.map(({ n, kind }, at) => (
        <path
          key={`${kind}${n}`}
          class={kind}
          d={`M36 ${from + shift(at) / 2}C200 ${from + shift(at) / 2} 160 ${y + shift(at)} 340 ${y + shift(at)}`}
        />
      ))}
      <circle class={member.is_source ? "us" : "them"} cx="350" cy={y} r="8" />
      <text x="370" y={y - 2}>{member.address}</text>
      <text class={member.lag > LATE_PIECES ? "facts late" : "facts"} x="370" y={y + 14}>{factsText(member)}</text>
    </g>
  );
}

/** How far behind it is, how far away, and how much it can pass on. */
export function factsText({ lag, rtt, uplink }: Member): string {
  return [
    lag > 0 ? text("lag", lag) : text("noLag"),
    ...rtt === null ? [] : [`${rtt} ms`],
    ...uplink === null ? [] : [text("uplink", bytesText(uplink))],
  ].join(" · ");
}
