/** Clients that open connections and ask for nothing, or not to the end. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import net from "node:net";
import { until } from "../support/until.ts";
import { assertHarmless, type Target, withTarget } from "./support/target.ts";

/** Opens `count` connections to `host:port` and sends `text` on each; those that the other side closes stay in the list. */
async function openMany(address: string, count: number, text: string): Promise<net.Socket[]> {
  const { hostname, port } = new URL(`http://${address}`);
  const sockets: net.Socket[] = [];
  for (let i = 0; i < count; i += 50) {
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

async function version(target: Target): Promise<number> {
  const answer = await fetch(`${target.url}/webui/api/service?method=get_version`, {
    headers: { connection: "close" },
    signal: AbortSignal.timeout(1000),
  });
  await answer.body?.cancel();
  return answer.status;
}

test("the engine goes on answering while 1200 clients send half a head each", () =>
  withTarget(async (target) => {
    let sockets: net.Socket[] = [];
    try {
      await assertHarmless(target, async () => {
        sockets = await openMany(httpOf(target), 1200, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ");
        for (let i = 0; i < 10; i++) {
          for (const socket of sockets) if (socket.writable) socket.write("a");
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      });
    } finally {
      close(sockets);
    }
  }));

test("the engine goes on answering with few descriptors, however many connections come", () =>
  withTarget(
    async (target) => {
      let sockets: net.Socket[] = [];
      try {
        await assertHarmless(target, async () => {
          sockets = await openMany(httpOf(target), 600, "GET / HTTP/1.1\r\n");
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
      let status = 0;
      await until("an answer", async () => {
        status = await version(target).catch(() => 0);
        return status !== 0;
      });
      assertEquals(status, 200);
      assert(!target.log().includes("was not handled"), target.log());
    },
    [],
    96,
  ));
