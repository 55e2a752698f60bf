import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { z } from "zod";
import { methodsWith } from "../../src/http/api/method.ts";
import { methodMarkdown } from "../../src/http/api/method-table.ts";

test("methodMarkdown() says who may call a method and which parameters it needs", () => {
  const params = z.object({ id: z.int(), mode: z.enum(["a", "b"]).default("a"), tags: z.array(z.string()).optional() });
  const base = { result: z.literal("ok"), handle: () => "ok" as const };
  const defineMethod = methodsWith<never>();
  const table = methodMarkdown([
    defineMethod({ ...base, name: "a", summary: "Does a | b.", public: false, remote: true, params }),
    defineMethod({ ...base, name: "b", summary: "B.", public: true, remote: false, params: z.object({}) }),
  ]);
  assertEquals(table.split("\n").slice(2), [
    "| `a` | token | `id` [`mode`] [`tags`] | Does a \\| b. |",
    "| `b` | public, this machine only |  | B. |",
  ]);
});
