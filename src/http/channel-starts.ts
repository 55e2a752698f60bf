/** What is started for a channel of the library: each torrent and broadcast, and all its addresses as one. */
import { selectStream } from "../content/selector.ts";
import type { AnySession } from "../playback/sessions.ts";
import type { StartRequest } from "../playback/start-request.ts";
import type { ChannelMember } from "../playlist/channel.ts";

/** One of them. */
export interface ChannelStart extends Pick<ChannelMember, "fileIndex" | "mayNamePrivate"> {
  readonly selector: StartRequest["selector"];
  /** The member that `session`, which this started, plays now. */
  memberOf(session: AnySession): ChannelMember | undefined;
}

/** `members` in their order; addresses stand where the first of them does, because they change by themselves. */
export function channelStarts(members: readonly ChannelMember[]): ChannelStart[] {
  const direct = members.filter(({ selector: [name] }) => name === "direct_url");
  return members.flatMap((member): ChannelStart[] => {
    const { selector: [name, value], title, mayNamePrivate, fileIndex } = member;
    if (name !== "direct_url") {
      const selector = selectStream({ [name]: value });
      return [{ selector, fileIndex, mayNamePrivate, memberOf: () => member }];
    }
    if (member !== direct[0]) return [];
    const addresses = direct.map((one) => ({
      address: one.selector[1],
      named: one.url ?? one.selector[1],
      mayNamePrivate: one.mayNamePrivate,
      item: one.id,
      account: one.account,
    }));
    return [{
      selector: { kind: "channel", name: title, addresses },
      fileIndex: null,
      // Each address has its own permission.
      mayNamePrivate: false,
      memberOf: (session) => {
        const item = session.kind === "live" ? session.stream.source.channel?.item : undefined;
        return direct.find(({ id }) => id === item);
      },
    }];
  });
}
