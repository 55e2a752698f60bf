/** Clients that open connections and ask for nothing, or not to the end. */
import { test } from "node:test";
import { assert } from "@std/assert";
import net from "node:net";
import { until } from "../support/until.ts";
import { assertHarmless, type Target, withTarget } from "./support/target.ts";

/**
 * Connections that come between two answers: fewer than the system holds for a program that has not accepted them yet. Bun
 * always asks for 512; one that finds no place there tries again after a second, whatever the engine does.
 */
const BURST = 400;

/**
 * Opens `count` connections to `host:port` and sends `text` on each; those that the other side closes stay in the list.
 * Before each further burst it waits for `accepted`.
 */
async function openMany(
  address: string,
  count: number,
  text: string,
  accepted = () => Promise.resolve(),
): Promise<net.Socket[]> {
  const { hostname, port } = new URL(`http://${address}`);
  const sockets: net.Socket[] = [];
  for (let i = 0; i < count; i += 50) {
    if (i > 0 && i % BURST === 0) await accepted();
    await Promise.all(Array.from({ length: Math.min(50, count - i) }, () =>
      new Promise<void>((resolve) => {
        const socket = net.connect(Number(port), hostname);
        sockets.push(socket);
        socket.on("connect", () => {
          socket.write(text);
          resolve();
        });
        socket.on("error", () => resolve());
      })));
  }
  return sockets;
}

const close = (sockets: readonly net.Socket[]) => sockets.forEach((socket) => socket.destroy());
const httpOf = (target: Target) => new URL(target.url).host;

/** Connections are accepted in order: an answer on a later one proves that the earlier ones are accepted. */
async function anAnswer(target: Target): Promise<void> {
  await until("an answer", async () => await version(target).catch(() => 0) === 200);
}

async function version(target: Target): Promise<number> {
  const answer = await fetch(`${target.url}/webui/api/service?method=get_version`, {
    headers: { connection: "close" },
    signal: AbortSignal.timeout(1000),
  });
  await answer.body?.cancel();
  return answer.status;
}

test("the engine keeps answering while 1200 clients send half a head each", () =>
  withTarget(async (target) => {
    let sockets: net.Socket[] = [];
    try {
      await assertHarmless(target, async () => {
        const half = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ";
        sockets = await openMany(httpOf(target), 1200, half, () => anAnswer(target));
        for (let i = 0; i < 10; i++) {
          for (const socket of sockets) if (socket.writable) socket.write("a");
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      });
    } finally {
      close(sockets);
    }
  }));

test("the engine keeps answering with few descriptors, however many connections come", () =>
  withTarget(
    async (target) => {
      let sockets: net.Socket[] = [];
      try {
        await assertHarmless(target, async () => {
          sockets = await openMany(httpOf(target), 800, "GET / HTTP/1.1\r\n", () => anAnswer(target));
        });
      } finally {
        close(sockets);
      }
    },
    [],
    256,
  ));

test("the engine answers again after a time without any free descriptor", () =>
  withTarget(
    async (target) => {
      const peers = await openMany(target.peer, 400, "\x13BitTorrent protocol");
      const clients = await openMany(httpOf(target), 400, "GET / HTTP/1.1\r\n");
      close(peers);
      close(clients);
      await anAnswer(target);
      assert(!target.log().includes("was not handled"), target.log());
    },
    [],
    96,
  ));
