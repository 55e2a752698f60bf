/** How long methods wait for a swarm. */
import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { CONTENT_METHODS } from "../../src/http/api/methods/content.ts";
import type { ApiCall } from "../../src/http/api/method.ts";
import type { ApiParts } from "../../src/http/api/parts.ts";
import { MillraceError } from "../../src/errors.ts";
import { FakeClock } from "../support/fake-clock.ts";

for (const name of ["get_content_id", "get_media_files"]) {
  test(`${name} answers after 8 s with \`timeout\` while the search goes on`, async () => {
    const clock = new FakeClock();
    const signals: AbortSignal[] = [];
    const forever = (_selector: unknown, ...rest: unknown[]) =>
      new Promise((_, reject) => {
        const { signal } = rest[rest.length - 1] as { signal: AbortSignal };
        signals.push(signal);
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    const call = {
      parts: { clock, media: { find: forever, contentId: forever }, files: {}, playlist: {} },
      signal: new AbortController().signal,
    } as unknown as ApiCall<keyof ApiParts>;
    const method = CONTENT_METHODS.find((method) => method.name === name)!;
    const answer = Promise.resolve(method.handle({ infohash: "a".repeat(40) }, call));
    const failed = assertRejects(() => answer, MillraceError, "the search goes on");
    while (signals.length === 0) await Promise.resolve();
    clock.advance(7999);
    assertEquals(signals[0]!.aborted, false);
    clock.advance(1);
    await failed;
    // The reason by which the search knows that its caller lost patience alone.
    assertEquals((signals[0]!.reason as MillraceError).code, "timeout");
  });
}
