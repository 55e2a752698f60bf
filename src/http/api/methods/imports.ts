/** `playlist_import` of section 4.4, and our additions to follow it. */
import * as z from "zod";
import { playlistKey } from "../../playlist-key.ts";
import { MAX_IMPORT_BYTES } from "../../../playlist/lists.ts";
import { API_CODES, ApiError } from "../codes.ts";
import { type Method, methodsWith } from "../method.ts";
import { OK, OWNER, SHORT_TEXT, TASK_ID } from "../schemas.ts";
import { TASK, taskJson } from "./task-json.ts";

const defineMethod = methodsWith<"lists" | "token">();

/** The methods that import a list and follow the task that does it. */
export const IMPORT_METHODS: readonly Method[] = [
  defineMethod({
    name: "playlist_import",
    summary:
      "Imports an M3U playlist in the background; get_task follows it. With method and token in the query the file may " +
      `have ${MAX_IMPORT_BYTES / 1024 / 1024} MiB; gzip, xz and any usual encoding are read.`,
    public: false,
    remote: true,
    upload: "file",
    params: z.object({
      file: z.file().max(MAX_IMPORT_BYTES).optional().describe("The playlist, as a part or as the body"),
      url: z.string().max(8192).regex(/^https?:\/\/./i, "an http or https address is expected").optional().describe(
        "Our addition: where the playlist is, instead of a file",
      ),
      owner: SHORT_TEXT.optional().describe("Owner of the items; without one they belong to everybody"),
    }),
    result: z.object({ task_id: TASK_ID }),
    async handle({ file, url, owner = "" }, { parts, upload, mayFetchPrivate: allowPrivate }) {
      const list = upload ?? (file === undefined ? null : await parts.lists.keep(file.stream()));
      if (list !== null && list.sizeBytes > 0) return { task_id: await parts.lists.import(list, owner, allowPrivate) };
      await list?.remove();
      if (!url) throw new ApiError(API_CODES.missingParameter, "missing parameter: file or url");
      return { task_id: parts.lists.importUrl(url, owner, allowPrivate) };
    },
  }),
  defineMethod({
    name: "get_task",
    summary:
      "How far a background task is. Tasks are remembered until the engine ends, the last 200 of those that ended.",
    public: false,
    remote: true,
    params: z.object({ task_id: TASK_ID }),
    result: TASK,
    handle: ({ task_id }, { parts }) => taskJson(parts.lists.tasks.status(task_id)),
  }),
  defineMethod({
    name: "cancel_task",
    summary: "Stops a background task. What it has done so far stays.",
    public: false,
    remote: true,
    params: z.object({ task_id: TASK_ID }),
    result: OK,
    handle({ task_id }, { parts }) {
      parts.lists.tasks.cancel(task_id);
      return "ok" as const;
    },
  }),
  defineMethod({
    name: "get_playlist_url",
    summary: "Address of the playlist as an M3U list for players on other machines. Its key opens nothing else.",
    public: false,
    remote: true,
    params: z.object({
      owner: OWNER,
      category: SHORT_TEXT.optional().describe("Items of this category alone"),
      output: z.enum(["ts", "hls", "file"]).optional().describe(
        "What its playback addresses lead to: MPEG TS, HLS, or films as they are; without it what suits the player",
      ),
    }),
    result: z.object({ url: z.string() }),
    async handle({ owner, category, output }, { parts, ownUrl }) {
      const query = new URLSearchParams();
      if (owner) query.set("owner", owner);
      if (category) query.set("category", category);
      if (output) query.set("output", output);
      query.set("key", await playlistKey(parts.token.value, owner ?? ""));
      return { url: `${ownUrl}/engine/playlist.m3u?${query}` };
    },
  }),
];
