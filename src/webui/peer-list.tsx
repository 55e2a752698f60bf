/** @jsxImportSource hono/jsx/dom */
/** Shows the senders of the stream: the peers with their speed, or the members of a broadcast with the substreams between us. */
import type { Member, Peer, Stat } from "./engine.ts";
import { bytesText, text } from "./texts.ts";

/** Properties of `PeerList`. */
export interface PeerListProps {
  readonly stat: Stat;
}

/** A table behind a line that opens it. */
export function PeerList({ stat: { peer_list: peers = [], members = [] } }: PeerListProps) {
  if (peers.length + members.length === 0) return null;
  return (
    <details class="peers">
      <summary>{text("whoSends", peers.length + members.length)}</summary>
      <table>{members.length > 0 ? <MemberRows list={members} /> : <PeerRows list={peers} />}</table>
    </details>
  );
}

function PeerRows({ list }: { readonly list: readonly Peer[] }) {
  return (
    <tbody>
      {list.map((peer) => (
        <tr key={peer.address}>
          <th scope="row">{peer.address}</th>
          <td>{peer.client ?? ""}</td>
          <td>{peer.speed_down > 0 ? `↓ ${bytesText(peer.speed_down * 1024)}/s` : ""}</td>
          <td>{peer.speed_up > 0 ? `↑ ${bytesText(peer.speed_up * 1024)}/s` : ""}</td>
          <td>{text(peer.is_seed ? "seed" : peer.is_open ? "sharing" : "busyPeer")}</td>
        </tr>
      ))}
    </tbody>
  );
}

/** The members of a broadcast; the marks are its substreams, those that flow filled. */
export function MemberRows({ list }: { readonly list: readonly Member[] }) {
  return (
    <tbody>
      {list.map((member) => (
        <tr key={member.address}>
          <th scope="row">{member.address}</th>
          <td>{member.is_source ? text("broadcaster") : ""}</td>
          <td>{member.from.length > 0 ? `↓ ${member.from.join(" ")}` : ""}</td>
          <td>{member.to.length > 0 ? `↑ ${member.to.join(" ")}` : ""}</td>
          <td>{member.rtt === null ? "" : `${member.rtt} ms`}</td>
          <td>{member.lag > 0 ? text("lag", member.lag) : text("noLag")}</td>
          <td>{member.uplink === null ? "" : text("uplink", bytesText(member.uplink))}</td>
        </tr>
      ))}
    </tbody>
  );
}
