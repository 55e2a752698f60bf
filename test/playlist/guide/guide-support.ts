/** A server of lists and guides, and the programmes that an engine keeps of them. */
import type { IncomingMessage } from "node:http";
import { writeXmltvTime } from "../../../src/playlist/guide/xmltv-time.ts";
import { FAKE_EPOCH_MS, FakeClock } from "../../support/fake-clock.ts";
import { until } from "../../support/until.ts";
import { type ListTests, type TestLists, useListServer, withLists } from "../external-support.ts";

/** Unix seconds of the clock at its start: all times of the tests are hours from it. */
export const NOW_S = FAKE_EPOCH_MS / 1000;

/** A programme of `channel`, `from` and `to` hours from now; without `to` the guide does not say when it ends. */
export function programme(channel: string, title: string, from: number, to?: number): string {
  const time = (hours: number) => writeXmltvTime(NOW_S + hours * 3600);
  const stop = to === undefined ? "" : ` stop="${time(to)}"`;
  return `<programme start="${time(from)}"${stop} channel="${channel}"><title lang="en">${title}</title></programme>`;
}

/** A channel with these names. */
export function channel(id: string, ...names: string[]): string {
  return `<channel id="${id}">${names.map((name) => `<display-name>${name}</display-name>`).join("")}</channel>`;
}

/** A whole guide. */
export function tv(...elements: string[]): string {
  return `<?xml version="1.0" encoding="UTF-8"?><tv>${elements.join("")}</tv>`;
}

/** What the server answers by path, and the requests that it got. */
export interface GuideTests {
  readonly url: string;
  /** Texts or bytes by path; others are 404. */
  readonly answers: Map<string, string | Uint8Array>;
  /** `ETag`s by path. */
  readonly etags: Map<string, string>;
  readonly requests: ListTests["server"]["requests"];
}

/** Starts the server before each test of the calling file. */
export function useGuideServer(): GuideTests {
  const { server } = useListServer();
  const answers = new Map<string, string | Uint8Array>();
  const etags = new Map<string, string>();
  return {
    get url() {
      server.behaviour.raw ??= (request: IncomingMessage, response) => {
        const path = request.url ?? "";
        const body = answers.get(path);
        const etag = etags.get(path);
        if (body === undefined) return void response.writeHead(404).end();
        if (etag !== undefined && request.headers["if-none-match"] === etag) return void response.writeHead(304).end();
        response.writeHead(200, etag === undefined ? {} : { etag }).end(body);
      };
      return server.url;
    },
    answers,
    etags,
    get requests() {
      return server.requests;
    },
  };
}

/** Lists and guides, with some shorthands. */
export interface GuideLists extends TestLists {
  readonly clock: FakeClock;
  /** Adds a list of such text, which may name guides, and waits until the guides are read. */
  addList(tests: GuideTests, path: string, text: string): Promise<number>;
  /** Titles with hours from now, of an item by its title. */
  on(title: string, from?: number, to?: number): Promise<string[]>;
  /** Titles of what is on and what is next, of an item by its title. */
  nowAndNext(title: string): Promise<(string | null)[]>;
  /** Waits until no guide is due or under way. */
  settled(): Promise<void>;
}

/** Runs `body` with an engine's lists and guides on a clock that the test moves. */
export async function withGuides(body: (lists: GuideLists) => Promise<void>): Promise<void> {
  const clock = new FakeClock();
  await withLists(clock, async (test) => {
    const { lists, guide, items, playlist } = test;
    const settled = async () => {
      await guide.wake();
      await until("the guides are read", async () => {
        const nowS = Math.floor(clock.now() / 1000);
        const sources = await guide.sources();
        // One that is claimed is due a quarter of an hour later.
        return sources.every(({ next_update: at }) => at === 0 || at > nowS && at !== nowS + 900);
      });
    };
    await body({
      ...test,
      clock,
      settled,
      async addList(tests, path, text) {
        tests.answers.set(path, text);
        const id = await lists.addExternal({
          type: "content",
          category: "",
          name: path,
          url: `${tests.url}${path}`,
          updateInterval: 0,
          allowPrivate: true,
        }, false);
        await lists.updateExternal(id);
        await settled();
        return id;
      },
      async on(title, from = 0, to = 24) {
        const { id } = (await items()).get(title)!;
        const [found] = await guide.programmes([id], NOW_S + from * 3600, NOW_S + to * 3600, 100);
        return found!.programmes.map((one) =>
          `${(one.start - NOW_S) / 3600}-${(one.stop - NOW_S) / 3600} ${one.title}`
        );
      },
      async nowAndNext(title) {
        let text = "";
        const decoder = new TextDecoder();
        for await (const part of playlist.json({ guideAtS: Math.floor(clock.now() / 1000) })) {
          text += decoder.decode(part);
        }
        const all = JSON.parse(`[${text}]`) as {
          title: string;
          epg: Record<"now" | "next", { title: string } | null>;
        }[];
        const { now, next } = all.find((one) => one.title === title)!.epg;
        return [now?.title ?? null, next?.title ?? null];
      },
    });
  }, { followsGuides: true });
}
