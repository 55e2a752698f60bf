/** A served engine and a server of lists for the tests of one file. */
import { after, before } from "node:test";
import { assertEquals } from "@std/assert";
import { METHODS } from "../../src/http/api/registry.ts";
import { type ListServer, startListServer } from "../playlist/external-support.ts";
import { type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { until } from "../support/until.ts";
import { TOKEN } from "./support.ts";

/** A task reads lists of tens of MiB, ms. */
const TASK_MS = 45_000;

/** A method's response; the tests look into it. */
// deno-lint-ignore no-explicit-any -- the tests look into it
export type Any = any;

/** The outcome of a call. */
export interface PostAnswer {
  readonly status: number;
  readonly result: Any;
  readonly error: { readonly code: number; readonly message: string } | null;
}

/** The engine, the server, and calls of private methods. */
export interface ListsApi {
  readonly served: { readonly url: string };
  readonly source: Pick<ListServer, "url" | "behaviour" | "requests">;
  /** The engine's state directory. */
  readonly directory: { readonly path: string };
  /** A POST with the token in the query, unless `token` is "". */
  post(method: string, params: Record<string, string>, init?: RequestInit): Promise<PostAnswer>;
  /** The result of a call that must not fail. */
  call(method: string, params?: Record<string, string>): Promise<Any>;
  /** The status of a task once it has ended. */
  ended(taskId: number): Promise<Any>;
  /** Titles that `playlist_get` lists. */
  titles(params?: Record<string, string>): Promise<string[]>;
}

/** Starts both before the tests of the calling file. */
export function useListsApi(): ListsApi {
  let served: ServedEngine;
  let source: ListServer;
  let directory: { path: string; remove(): Promise<void> };
  before(async () => {
    directory = await temporaryDirectory();
    served = await serveEngine({ accessToken: TOKEN, stateDir: directory.path });
    source = await startListServer();
  });
  after(async () => {
    await served?.close();
    await source?.close();
    await directory?.remove();
  });

  const post: ListsApi["post"] = async (method, params, init = {}) => {
    const query = new URLSearchParams({ method, token: TOKEN, ...params });
    if (query.get("token") === "") query.delete("token");
    const response = await fetch(`${served.url}/server/api?${query}`, { method: "POST", ...init });
    const { result, error } = await response.json() as Omit<PostAnswer, "status">;
    if (error === null) METHODS.find(({ name }) => name === method)!.result.parse(result);
    return { status: response.status, result, error };
  };
  const call: ListsApi["call"] = async (method, params = {}) => {
    const { result, error } = await post(method, params);
    assertEquals(error, null, method);
    return result;
  };
  return {
    served: {
      get url() {
        return served.url;
      },
    },
    source: {
      get url() {
        return source.url;
      },
      get behaviour() {
        return source.behaviour;
      },
      get requests() {
        return source.requests;
      },
    },
    directory: {
      get path() {
        return directory.path;
      },
    },
    post,
    call,
    async ended(taskId) {
      let status: Any = null;
      await until("the end of the task", async () => {
        status = await call("get_task", { task_id: String(taskId) });
        return status.state !== "queued" && status.state !== "running";
      }, TASK_MS);
      return status;
    },
    titles: async (params = {}) =>
      (await call("playlist_get", params)).playlist.map(({ title }: { title: string }) => title),
  };
}

/** Two entries that are fine and a bad one. */
export const LIST = `#EXTM3U url-tvg="http://g/1"
#EXTINF:-1 tvg-id="a" group-title="G",Alpha
http://h/a
#EXTINF:-1,Nothing
javascript:alert(1)
#EXTINF:-1,Beta HD
http://h/b.m3u8
`;
