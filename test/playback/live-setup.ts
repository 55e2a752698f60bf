/** Sessions of a broadcast that a studio sends without a network. */
import { assert } from "@std/assert";
import { bareMagnet } from "../../src/content/resolve.ts";
import type { AnyMetainfo } from "../../src/metainfo/live.ts";
import type { LiveSession } from "../../src/playback/live/live-session.ts";
import type { WindowFiles } from "../../src/playback/live/window-files.ts";
import type { StartRequest } from "../../src/playback/start-request.ts";
import type { SwarmManager } from "../../src/swarm/types.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { FakeLiveSwarms, type Media, Studio } from "./live-support.ts";
import { FakeSwarm, FakeSwarms, makeSessions, startRequest } from "./support.ts";

/** Opens the studio and the sessions; `start` starts one of the broadcast. */
export async function setUp(
  options: { windowMs?: number; files?: WindowFiles; swarms?: SwarmManager; media?: Media } = {},
) {
  const clock = new FakeClock();
  const studio = await Studio.open({ clock, ...(options.media !== undefined && { media: options.media }) });
  const live = new FakeLiveSwarms(studio);
  const seen: AnyMetainfo[] = [];
  const sessions = makeSessions(clock, options.swarms ?? new FakeSwarms(new FakeSwarm([])), {
    live,
    liveWindow: () => ({
      limits: { windowMs: options.windowMs ?? 60_000, maxBytes: 2 ** 30 },
      files: options.files ?? null,
    }),
    resolver: {
      resolve: ({ kind }) => {
        const { metainfo } = studio;
        return Promise.resolve(kind === "magnet" ? { magnet: bareMagnet(metainfo.infohashHex) } : { metainfo });
      },
    },
    onMetadata: (metainfo) => seen.push(metainfo),
  });
  const start = async (request: Partial<StartRequest> = {}): Promise<LiveSession> => {
    const defaults = { output: "ts", clientSessionId: 7, useApiStop: true } as const;
    const session = await sessions.start(startRequest(studio.metainfo.infohashHex, { ...defaults, ...request }));
    assert(session.kind === "live");
    return session;
  };
  return { clock, studio, live, sessions, seen, start };
}
