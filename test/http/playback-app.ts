/** The playback routes over a swarm in memory and a clock in the test's hands. */
import { Hono } from "hono";
import { assertEquals } from "@std/assert";
import { randomToken } from "../../src/account/access-token.ts";
import { AccessPolicy } from "../../src/http/address.ts";
import { RequestAdmission } from "../../src/http/admission.ts";
import type { HttpEnv, HttpParts } from "../../src/http/context.ts";
import { addControlRoutes } from "../../src/http/control-routes.ts";
import { addGuard, addPageGuard } from "../../src/http/guard.ts";
import { SentSessions } from "../../src/http/sent-sessions.ts";
import { addStartRoutes } from "../../src/http/start-routes.ts";
import { addStreamRoutes } from "../../src/http/stream-routes.ts";
import { Metrics } from "../../src/metrics/metrics.ts";
import { assertDescribed } from "../support/described.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { FakeSwarm, FakeSwarms, makeSessions } from "../playback/support.ts";

const BASE = "http://127.0.0.1:6878";
/** Pages of this origin may play. */
export const ALLOWED_PAGE = "https://tv.example";
export const INFOHASH = "1".repeat(40);

/** The path of the document that `url` belongs to, which has none for aliases of `engine`. */
function documentedPath(url: string): string {
  const [, , name, hash] = new URL(url, BASE).pathname.split("/");
  return hash === undefined ? `/engine/${name}` : `/engine/${name}/{infohash}/{session}`;
}

/** Files of the swarm, the routes under `engine` and the alias `tv`, and who calls. */
export function playbackApp(files: readonly { name: string; bytes: Uint8Array }[]) {
  const logged: string[] = [];
  const log = { log: (level: string, message: string) => void logged.push(`${level} ${message}`), child: () => log };
  const clock = new FakeClock();
  const swarm = new FakeSwarm(files);
  const swarms = new FakeSwarms(swarm);
  const sessions = makeSessions(clock, swarms);
  const policy = new AccessPolicy({ interfaces: () => [], resolve: () => Promise.resolve([]) }, {
    allowedHosts: [],
    allowedOrigins: [ALLOWED_PAGE],
    publicUrl: null,
    trustedProxies: [],
    allowIntranet: true,
    allowInternet: true,
  });
  const cacheFigures = () => ({ limitBytes: 1000, usedBytes: 400 });
  const sentSessions = new SentSessions();
  const prefixes = ["engine", "tv"];
  const parts = {
    sessions,
    cacheFigures,
    policy,
    isOwnRequest: () => Promise.resolve(false),
    admission: new RequestAdmission(),
    publicUrl: null,
    transcodeAudio: "auto",
    prefixes,
    sentSessions,
    fronts: [],
    clock,
    log,
    metrics: new Metrics(),
    api: { token: randomToken() },
  };
  const app = new Hono<HttpEnv>();
  addGuard(app, parts as unknown as HttpParts);
  addPageGuard(app, parts as unknown as HttpParts);
  // The routes of playback use nothing of the rest.
  for (const add of [addStartRoutes, addStreamRoutes, addControlRoutes]) add(app, parts as unknown as HttpParts);
  /** A request from `host`. */
  const get = async (url: string, init: RequestInit = {}, host = "127.0.0.1"): Promise<Response> => {
    const request = new Request(new URL(url, BASE), { ...init, headers: { host: "127.0.0.1:6878", ...init.headers } });
    return await app.fetch(request, { info: { remote: { host, port: 5 } } });
  };
  const json = async (url: string) => {
    const answer = await (await get(url)).json();
    assertDescribed(documentedPath(url), answer);
    return answer;
  };
  /** Starts a session; returns the object of section 2.2. */
  const start = async (path: string, more = ""): Promise<Record<string, string>> => {
    const { response, error } = await json(`${path}?infohash=${INFOHASH}&format=json&${more}`);
    assertEquals(error, null);
    return response;
  };
  return { clock, swarm, swarms, sessions, sentSessions, logged, get, json, start };
}
