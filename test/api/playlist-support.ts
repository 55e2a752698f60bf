/** Calls of the playlist methods, for the tests of several files. */
import { METHODS } from "../../src/http/api/registry.ts";
import type { EngineOptions } from "../../src/engine.ts";
import { type Answer, TOKEN, withEngine } from "./support.ts";

/** Calls a method with the token. */
export type Call = (
  method: string,
  params?: Record<string, string>,
  files?: Record<string, Uint8Array>,
) => Promise<Answer>;

/** Calls with the token; a result is held to the registry's schema, too. */
export async function withPlaylist(body: (call: Call) => Promise<void>, options: EngineOptions = {}): Promise<void> {
  await withEngine(async (engine) => {
    await body(async (method, params = {}, files) => {
      let init: RequestInit = {};
      if (files !== undefined) {
        const form = new FormData();
        for (const [name, bytes] of Object.entries(files)) form.append(name, new File([new Uint8Array(bytes)], name));
        init = { method: "POST", body: form };
      }
      const answer = await engine.call(method, { ...params, token: TOKEN }, { init });
      if (answer.error === null) METHODS.find(({ name }) => name === method)!.result.parse(answer.result);
      return answer;
    });
  }, options);
}

/** An id of 40 characters for each number. */
export const ID = (n: number) => n.toString(16).padStart(40, "0");
/** Adds an item; returns its id. */
export const add = async (call: Call, title: string, more: Record<string, string> = {}) =>
  (await call("playlist_add_item", { title, content_id: ID(title.length), ...more })).result as number;
/** Titles as listed. */
export const titles = async (call: Call, params: Record<string, string> = {}) =>
  (await call("playlist_get", params)).result.playlist.map((item: { title: string }) => item.title);
/** One item as listed. */
export const item = async (call: Call, id: number) =>
  (await call("playlist_get")).result.playlist.find((one: { id: number }) => one.id === id);
/** Titles in the trash. */
export const trash = async (call: Call, params: Record<string, string> = {}) =>
  (await call("playlist_trash_get", params)).result.data.map((one: { title: string }) => one.title);
