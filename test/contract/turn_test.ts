import { test } from "node:test";
import { assertLess } from "@std/assert";
import { nextTurn } from "../../src/bytes/turn.ts";
import { LOOPBACK, ports } from "./support.ts";

/** Requests that are answered while others work. */
const REQUESTS = 3;

test("nextTurn() lets requests through between pieces of long work", async () => {
  const server = await ports.http.serve(LOOPBACK, () => new Response("here"));
  const url = `http://127.0.0.1:${server.address.port}/`;
  let answered = 0;
  const asking = (async () => {
    for (; answered < REQUESTS; answered++) await (await fetch(url)).text();
  })();
  let pieces = 0;
  while (answered < REQUESTS && pieces < 1000) {
    const endMs = performance.now() + 12;
    while (performance.now() < endMs);
    pieces++;
    await nextTurn();
  }
  await asking;
  await server.close(0);
  // Connecting, sending, answering and reading are turns of their own, on both sides.
  assertLess(pieces, 20 * REQUESTS);
});
