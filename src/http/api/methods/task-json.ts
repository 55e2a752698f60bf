/** A background task as the API reports it. */
import * as z from "zod";
import type { TaskStatus } from "../../../playlist/tasks.ts";
import { ERROR_CODE, TASK_ID } from "../schemas.ts";

/** The shape. */
export const TASK = z.object({
  task_id: TASK_ID,
  kind: z.enum(["playlist_import", "update_all_external_playlists", "playlist_check"]),
  state: z.enum(["queued", "running", "done", "failed", "cancelled"]),
  done: z.int().describe("Entries, playlists or items dealt with"),
  total: z.int().describe("-1 while it is not known"),
  skipped: z.int().describe("Of those done: there already, or of a check not alive"),
  errors: z.array(z.object({ line: z.int(), message: z.string() })).describe("The first 100; line 0: about no line"),
  errors_total: z.int(),
  error: z.string().nullable().describe("Why it failed"),
  error_code: ERROR_CODE.nullable(),
});

/** `status` in that shape. */
export function taskJson({ id, errorCount, failure, ...status }: TaskStatus): z.output<typeof TASK> {
  return {
    ...status,
    kind: z.parse(TASK.shape.kind, status.kind),
    task_id: id,
    errors_total: errorCount,
    error: failure?.message ?? null,
    error_code: failure?.code ?? null,
    errors: [...status.errors],
  };
}
