import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { createHttpPort } from "../../platform/shared/http-server.ts";
import { ChunkBuffers } from "../../src/bytes/chunk-buffers.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
import { lendChunks } from "../../src/bytes/lent-chunks.ts";
import { until } from "../support/until.ts";

const http = createHttpPort();
const CHUNKS = 60;
const CHUNK_BYTES = 64 * 1024;

/** A body whose chunk n is full of n, in memory of `buffers`. */
function bodyOf(buffers: ChunkBuffers): ReadableStream<Uint8Array> {
  let n = 0;
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      if (n === CHUNKS) return controller.close();
      controller.enqueue(buffers.acquire(CHUNK_BYTES).fill(n++));
    },
  }, { highWaterMark: 1 });
}

async function read(url: string): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of (await fetch(url)).body!) parts.push(part.slice());
  return concatBytes(parts);
}

const EXPECTED = concatBytes(Array.from({ length: CHUNKS }, (_, n) => new Uint8Array(CHUNK_BYTES).fill(n)));

test("createHttpPort() uses the memory of lent chunks again, and only when it was sent", async () => {
  const buffers = new ChunkBuffers();
  const memory = new Set<ArrayBufferLike>();
  const acquire = buffers.acquire.bind(buffers);
  buffers.acquire = (sizeBytes) => {
    const bytes = acquire(sizeBytes);
    memory.add(bytes.buffer);
    return bytes;
  };
  const server = await http.serve({ host: "127.0.0.1", port: 0 }, () => {
    const body = bodyOf(buffers);
    lendChunks(body, buffers);
    return Promise.resolve(new Response(body));
  });
  try {
    const url = `http://127.0.0.1:${server.address.port}/`;
    for (const bytes of await Promise.all([read(url), read(url), read(url)])) assertEquals(bytes, EXPECTED);
    await until("the last chunks are back", () => buffers.idleBytes > 0);
    assert(memory.size < 3 * CHUNKS / 2, `${memory.size} buffers for ${3 * CHUNKS} chunks`);
  } finally {
    await server.close(0);
  }
});

test("createHttpPort() does not release chunks of a body that somebody else reads, too", async () => {
  const buffers = new ChunkBuffers();
  let other: Promise<Uint8Array> = Promise.resolve(new Uint8Array());
  const server = await http.serve({ host: "127.0.0.1", port: 0 }, () => {
    const body = bodyOf(buffers);
    lendChunks(body, buffers);
    const [sent, kept] = body.tee();
    other = new Response(kept).bytes();
    return Promise.resolve(new Response(sent));
  });
  try {
    assertEquals(await read(`http://127.0.0.1:${server.address.port}/`), EXPECTED);
    assertEquals(await other, EXPECTED);
    assertEquals(buffers.idleBytes, 0);
  } finally {
    await server.close(0);
  }
});
