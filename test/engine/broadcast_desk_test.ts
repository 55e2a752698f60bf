import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { assertEquals, assertRejects } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { SourceDesk } from "../../src/engine/broadcast-desk.ts";
import { abortError, MillraceError } from "../../src/errors.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";

const source = fileURLToPath(new URL("../fixtures/ts-188.ts", import.meta.url));

test("SourceDesk.start() gives up on a source that delivers nothing for 15 s, and frees its place and name", async () => {
  const clock = new FakeClock();
  let asked = 0;
  const desk = new SourceDesk({
    ports: { ...await loadPorts({ log: { level: "error" } }), clock },
    stateDir: null,
    trackers: [],
    broadcast: ({ signal }) => {
      asked++;
      return new Promise((_resolve, reject) => signal!.addEventListener("abort", () => reject(abortError(signal!))));
    },
    membersOf: () => [],
  });
  const { signal } = new AbortController();
  for (const turn of [1, 2]) {
    const refused = assertRejects(
      () => desk.start({ source, name: "talk", title: "talk" }, signal),
      MillraceError,
      "no stream within 15 s",
    );
    await until("the broadcast is asked for", () => asked === turn);
    await clock.advance(15_000);
    await refused;
    assertEquals(desk.list(), []);
  }
});
