/** The folder of `.strm` files that an engine keeps. */
import type { AccessToken } from "../account/access-token.ts";
import { trimEndOf } from "../bytes/trim.ts";
import { StrmFolder } from "../http/fronts/strm/folder.ts";
import type { StrmLibrary } from "../http/fronts/strm/wanted.ts";
import type { FrontStates } from "../http/fronts/states.ts";
import { playbackKeys } from "../http/playlist-key.ts";
import type { SocketAddress } from "../ports.ts";
import type { Ground } from "./ground.ts";

/** Begins when the engine is served, because addresses are in the files; null without a folder. */
export function openStrm(
  { ports: { files, clock, log }, options: { strmDir, strmUrl, publicUrl }, closing }: Ground,
  library: StrmLibrary,
  states: FrontStates,
  token: AccessToken,
): { servedAt(address: SocketAddress): void } | null {
  if (strmDir == null) return null;
  const keys = async () => {
    await token.refresh();
    return await playbackKeys(token.value);
  };
  const folder = new StrmFolder({ directory: strmDir, files, library, states, keys, clock, log });
  closing.push(() => folder.close());
  return { servedAt: (address) => folder.start(trimEndOf(strmUrl ?? publicUrl ?? addressOf(address), "/")) };
}

function addressOf({ host, port }: SocketAddress): string {
  const own = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  return `http://${own.includes(":") ? `[${own}]` : own}:${port}`;
}
