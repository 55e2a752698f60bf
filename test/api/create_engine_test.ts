import { stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createEngine } from "../../src/engine.ts";
import { MillraceError } from "../../src/errors.ts";
import type { Ports, SocketAddress } from "../../src/ports.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { TOKEN, withEngine } from "./support.ts";
import { openDatabase } from "../support/database.ts";

test("createEngine() releases the database, the sockets and the disk cache when it fails", async () => {
  const { path, remove } = await temporaryDirectory();
  try {
    const options = { stateDir: path, cache: "disk" as const, cacheDir: join(path, "cache") };
    // From here on the database holds settings, so that the next start opens it.
    await withEngine(async ({ call }) => {
      assertEquals((await call("set_allow_intranet_access", { token: TOKEN, value: "0" })).result, "ok");
    }, options);
    // A write that stays in the write-ahead log: the engine's close moves it into the database, its start does not.
    const other = await openDatabase(join(path, "millrace.db"));
    await other.execute("UPDATE settings SET value = 'true'");
    const logBytes = async () => (await stat(join(path, "millrace.db-wal"))).size;
    assert(await logBytes() > 0);
    const ports = await loadPorts({ log: { level: "error" } });
    const taken = await ports.tcp.listen({ host: "127.0.0.1", port: 0 }, (connection) => connection.abort());
    try {
      const counted = counting(ports);
      const error = await assertRejects(() =>
        createEngine(counted.ports, {
          ...options,
          peerHost: "127.0.0.1",
          peerPort: taken.address.port,
          dhtBootstrap: ["127.0.0.1:9"],
          lsd: false,
        }), MillraceError);
      assertEquals((error as MillraceError).code, "conflict");
      assertEquals(counted.open(), []);
    } finally {
      await taken.close();
    }
    assertEquals(await logBytes(), 0);
    other.close();
  } finally {
    await remove();
  }
});

test("Engine.close() ends everything else when a part fails to end", async () => {
  const { path, remove } = await temporaryDirectory();
  try {
    const ports = await loadPorts({ log: { level: "error" } });
    const { ports: watched, open } = counting({
      ...ports,
      tcp: {
        ...ports.tcp,
        async listen(at, accept) {
          const listener = await ports.tcp.listen(at, accept);
          return {
            address: listener.address,
            async close() {
              await listener.close();
              throw new Error("stuck");
            },
          };
        },
      },
    });
    const engine = await createEngine(watched, {
      stateDir: path,
      peerHost: "127.0.0.1",
      peerPort: 0,
      dhtBootstrap: ["127.0.0.1:9"],
      lsd: false,
    });
    assert(open().length > 0);
    await engine.close();
    assertEquals(open(), []);
  } finally {
    await remove();
  }
});

/** `ports` whose UDP sockets and files are counted. */
function counting(ports: Ports): { ports: Ports; open(): string[] } {
  const open = new Set<string>();
  let serial = 0;
  const watched = <T extends { close(): unknown }>(name: string, thing: T): T => {
    const key = `${name} (${++serial})`;
    open.add(key);
    const close = thing.close.bind(thing);
    thing.close = () => {
      open.delete(key);
      return close();
    };
    return thing;
  };
  const shown = ({ host, port }: SocketAddress) => `${host}:${port}`;
  return {
    ports: {
      ...ports,
      udp: {
        bind: async (options) => {
          const socket = await ports.udp.bind(options);
          return watched(`UDP ${shown(socket.address)}`, socket);
        },
      },
      files: {
        ...ports.files,
        open: async (path, mode, options) => watched(path, await ports.files.open(path, mode, options)),
      },
    },
    open: () => [...open],
  };
}
