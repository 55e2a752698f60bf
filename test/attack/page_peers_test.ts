/** A page of another origin, one even that may play, makes the engine connect to nothing inside the user's network. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { listen, type Listening } from "./support/peers.ts";
import { assertHarmless, type Target, withTarget } from "./support/target.ts";

const INFOHASH = "0d0a666c7573685f616c6c0d0a0d0a0d0a0d0a0d";

/** Headers of a browser's request for an image on a page of an allowed origin: other origins are refused at once. */
const FOREIGN = {
  "sec-fetch-site": "cross-site",
  "sec-fetch-mode": "no-cors",
  "sec-fetch-dest": "image",
  referer: "https://tv.example/",
};
const ALLOWED = ["--allow-origin", "https://tv.example"];

/** Starts the magnet and waits for the engine's own verdict. */
async function start(target: Target, magnet: string, headers: Record<string, string>, waitMs: number): Promise<void> {
  const query = new URLSearchParams({ magnet, format: "json", pid: crypto.randomUUID() });
  const signal = AbortSignal.timeout(waitMs);
  await fetch(`${target.url}/engine/getstream?${query}`, { headers, signal }).then((answer) => answer.text(), () => {});
}

function magnetWith(infohash: string, peers: readonly string[]): string {
  return `magnet:?xt=urn:btih:${infohash}${peers.map((peer) => `&x.pe=${peer}`).join("")}`;
}

test("a foreign page's magnet sends no byte to services of this machine, whatever notation it uses", async () => {
  const service = await listen("127.0.0.1");
  const { port } = service.address;
  const notations = [
    "127.0.0.1",
    "localhost",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::7f00:1]",
    "[64:ff9b::7f00:1]",
    "127.1",
  ];
  try {
    await withTarget(async (target) => {
      await assertHarmless(target, async () => {
        await start(target, magnetWith(INFOHASH, notations.map((host) => `${host}:${port}`)), FOREIGN, 1_500);
      });
      assertEquals([service.connections, service.bytes], [0, 0]);
    }, ALLOWED);
  } finally {
    await service.close();
  }
});

test("a foreign page that joins the user's swarm adds no peer of this machine to it", async () => {
  const service = await listen("127.0.0.1");
  let connected = () => {};
  const usersPeer = await listen("127.0.0.1", () => connected());
  const dialled = new Promise<void>((resolve) => connected = resolve);
  const address = ({ address: { host, port } }: Listening) => `${host}:${port}`;
  try {
    await withTarget(async (target) => {
      const user = start(target, magnetWith(INFOHASH, [address(usersPeer)]), {}, 3_000);
      await dialled;
      await start(target, magnetWith(INFOHASH, [address(service)]), FOREIGN, 1_000);
      await user;
      assert(usersPeer.bytes > 0);
      assertEquals([service.connections, service.bytes], [0, 0]);
    }, ALLOWED);
  } finally {
    await Promise.all([service.close(), usersPeer.close()]);
  }
});
