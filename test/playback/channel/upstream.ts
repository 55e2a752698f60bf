/** A web of upstreams whose bodies the test sends by hand, and sessions of channels that read them. */
import { assert } from "@std/assert";
import type { HttpClientAnswer, HttpClientRequest } from "../../../src/ports.ts";
import type { ChannelAddress } from "../../../src/playback/channel/channel-selector.ts";
import { ChannelSources, RECORDER } from "../../../src/playback/channel/channel-sources.ts";
import type { LiveSession } from "../../../src/playback/live/live-session.ts";
import type { StartRequest } from "../../../src/playback/start-request.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { EndlessClip } from "../live-support.ts";
import { FakeSwarm, FakeSwarms, makeSessions, startRequest } from "../support.ts";

/** Time passes in steps of this, ms. */
const STEP_MS = 100;

/** One request, and the body of its answer. */
export class Upstream {
  readonly request: HttpClientRequest;
  readonly #clip = new EndlessClip();
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  readonly body = new ReadableStream<Uint8Array>({ start: (controller) => void (this.#controller = controller) });
  isLeft = false;

  constructor(request: HttpClientRequest) {
    this.request = request;
    request.signal.addEventListener("abort", () => {
      if (this.isLeft) return;
      this.isLeft = true;
      this.#controller.error(request.signal.reason);
    });
  }

  /** Sends `ms` of a clip. */
  send(ms: number): void {
    this.#controller.enqueue(this.#clip.next(ms));
  }

  say(bytes: Uint8Array | string): void {
    this.#controller.enqueue(typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes);
  }

  end(): void {
    this.#controller.close();
    this.isLeft = true;
  }
}

/** What an address answers: a status, a text, a body that the test sends, or another address. */
export type Answer =
  | number
  | string
  | Uint8Array
  | { readonly to: string }
  | { readonly body: string | Uint8Array; readonly fields: Record<string, string> }
  | "sends"
  | "hangs";
/** The same, or what it answers for the nth time. */
export type Answers = Record<string, Answer | ((nth: number) => Answer)>;

/** Channels over addresses that answer with `answers`, those that send with `fields`; hosts of `.lan` are private. */
export function setUpChannels(answers: Answers, fields: Record<string, string> = {}) {
  const clock = new FakeClock();
  const asked: string[] = [];
  const open: Upstream[] = [];
  const ports = {
    clock,
    log: { log() {}, child: () => ports.log },
    network: {
      interfaces: () => [],
      resolve: (host: string) => Promise.resolve([host.endsWith(".lan") ? "192.168.7.9" : "8.8.8.8"]),
    },
    httpClient: {
      open: (request: HttpClientRequest) => {
        const url = request.url.href;
        const nth = asked.filter((one) => one === url).length;
        asked.push(url);
        const told = answers[url] ?? 404;
        const answer = typeof told === "function" ? told(nth) : told;
        if (answer === "hangs") {
          return new Promise<HttpClientAnswer>((_, reject) =>
            request.signal.addEventListener("abort", () => reject(request.signal.reason))
          );
        }
        if (answer === "sends") {
          const upstream = new Upstream(request);
          open.push(upstream);
          return Promise.resolve(
            { status: 200, headers: new Headers(fields), body: upstream.body } as HttpClientAnswer,
          );
        }
        const response = typeof answer === "number"
          ? new Response("no", { status: answer })
          : typeof answer === "object" && "to" in answer
          ? new Response("", { status: 302, headers: { location: answer.to } })
          : typeof answer === "object" && "body" in answer
          ? new Response(answer.body as BodyInit, { headers: answer.fields })
          : new Response(answer as BodyInit, { headers: { "content-length": String(answer.length) } });
        return Promise.resolve(
          { status: response.status, headers: response.headers, body: response.body! } as HttpClientAnswer,
        );
      },
    },
  } as ConstructorParameters<typeof ChannelSources>[0];
  const channels = new ChannelSources(ports, { allowPrivateFetch: false, isFromPublic: () => Promise.resolve(false) });
  const sessions = makeSessions(clock, new FakeSwarms(new FakeSwarm([])), { channels });
  channels.watchedBy(() => sessions.list());
  const request = (addresses: readonly (string | Partial<ChannelAddress>)[], more: Partial<StartRequest> = {}) => {
    const selector = {
      kind: "channel",
      name: "News",
      isRecorded: more.owner === RECORDER,
      addresses: addresses.map((one, i) => {
        const { address = "", ...rest } = typeof one === "string" ? { address: one } : one;
        return { address, named: address, mayNamePrivate: false, item: i + 1, ...rest };
      }),
    } as const;
    return startRequest("", { selector, output: "ts", ...more });
  };
  const start = async (...args: Parameters<typeof request>): Promise<LiveSession> => {
    const session = await sessions.start(request(...args));
    assert(session.kind === "live");
    return session;
  };
  /** Time passes in small steps, in which the open upstreams send. */
  const run = async (ms: number, sends: (upstream: Upstream) => boolean = () => true) => {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      for (const upstream of open) if (!upstream.isLeft && sends(upstream)) upstream.send(STEP_MS);
      await clock.advanceAsync(STEP_MS);
      // Digests and keys take real time.
      await new Promise((resolve) => setTimeout(resolve));
    }
  };
  /** As `start`, while the upstreams send, as `run` does with `sends`. */
  const begin = async (
    addresses: Parameters<typeof request>[0],
    more: Partial<StartRequest> = {},
    sends?: (upstream: Upstream) => boolean,
  ): Promise<LiveSession> => {
    let isOver = false;
    const starting = start(addresses, more).finally(() => isOver = true);
    starting.catch(() => {});
    while (!isOver) await run(STEP_MS, sends);
    return await starting;
  };
  return { clock, asked, open, channels, sessions, request, begin, run };
}
