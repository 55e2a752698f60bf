/** The promises that the page on platforms makes to embedders. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { commandOf } from "../../scripts/support/runtimes.ts";
import { MillraceError } from "../../src/errors.ts";
import { createEngine } from "../../src/mod.ts";
import { encodeMetainfo } from "../../src/metainfo/transport-file.ts";
import { assertSameBytes } from "../loopback/support.ts";
import { start } from "../support/process.ts";
import { until } from "../support/until.ts";
import { makeTorrent } from "../swarm/support/torrent.ts";

const ROOT = new URL("../../", import.meta.url);

/** The sample of a page. */
function sampleOf(page: string): string {
  const text = readFileSync(new URL(page, ROOT), "utf8");
  const sample = /```ts\n(import { createEngine }[\s\S]*?)```/.exec(text)?.[1];
  assert(sample !== undefined, `${page} has its sample`);
  return sample;
}

test("createEngine() embedded as the pages show answers over Deno.serve()", async () => {
  const [sample, again] = ["platform/README.md", "README.md"].map(sampleOf);
  assertEquals(again, sample, "both pages show the same");
  const script = sample!.replace("Deno.serve(", "Deno.serve({ port: 0, hostname: '127.0.0.1' }, ");
  const [command, ...args] = commandOf("deno");
  // The sample is typed into a shell in the root of a clone: so its imports are relative to that.
  const program = start(command!, [...args, "run", "-A", "--no-check", "-"], { cwd: fileURLToPath(ROOT) });
  try {
    program.child.stdin!.end(script);
    const address = () => /Listening on (http:\S+\/)/.exec(program.output())?.[1];
    await until("the sample listens", () => address() !== undefined);
    const url = address();
    const answer = await (await fetch(`${url}webui/api/service?method=get_version`)).json();
    assertEquals(answer.error, null);
    assertEquals(typeof answer.result.version, "string");
  } finally {
    await program.stop();
  }
});

test("createEngine() plays from a web seed when the platform has no sockets", async () => {
  const { data } = await makeTorrent({ bytes: 300_000 });
  const server = createServer((request, response) => {
    const [, from, to] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? "") ?? [];
    response.writeHead(206, { "content-range": `bytes ${from}-${to}/${data.length}` });
    response.end(data.subarray(Number(from), Number(to) + 1));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const webSeeds = [`http://127.0.0.1:${(server.address() as AddressInfo).port}/noise`];
  const { metainfo } = await makeTorrent({ bytes: data.length, webSeeds });
  const none = () => Promise.reject(new MillraceError("unavailable", "this platform has no sockets"));
  const real = await loadPorts({ log: { level: "error" } });
  const ports = { ...real, tcp: { connect: none, listen: none }, udp: { bind: none } };
  const engine = await createEngine(ports, { dht: false, lsd: false });
  try {
    const transportFile = new Request("http://127.0.0.1/engine/getfile?format=json&_idx=0", {
      method: "POST",
      body: encodeMetainfo(metainfo),
    });
    const { response, error } = await (await engine.fetch(transportFile)).json();
    assertEquals(error, null);
    const played = await engine.fetch(new Request(response.playback_url));
    assertSameBytes(new Uint8Array(await played.arrayBuffer()), data);
  } finally {
    await engine.close();
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
});
