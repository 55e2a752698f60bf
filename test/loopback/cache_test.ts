/** Playing through caches that are too small, were used before, or are in trouble. */
import { open, readdir, readFile, rm, stat, truncate, utimes } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertLess, assertLessOrEqual, assertStringIncludes } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import type { EngineOptions } from "../../src/engine.ts";
import { MillraceError } from "../../src/errors.ts";
import type { FilePort, Ports } from "../../src/ports.ts";
import { serveEngine, serveOn, temporaryDirectory } from "../support/engine.ts";
import { start } from "../support/process.ts";
import { until } from "../support/until.ts";
import {
  assertSameBytes,
  bytesOf,
  command,
  MIB,
  type SeededNoise,
  seedNoise,
  sentBy,
  startSession,
  statOf,
} from "./support.ts";

const SIZE = 24 * MIB;
const LIMIT = 6 * MIB;

let seeder: SeededNoise;
before(async () => {
  seeder = await seedNoise(SIZE + 12_345);
});
after(() => seeder?.close());

const query = (pid = "1") => ({ magnet: seeder.magnet, pid });

async function usedOf(stat_url: string): Promise<number> {
  const { response } = await (await fetch(`${stat_url}?skip_player_activity=1`)).json();
  return response.disk_cache_stats.active_inuse + response.disk_cache_stats.inactive_inuse;
}

/** Bytes that the files below a directory take on the disk. */
async function diskBytes(directory: string): Promise<number> {
  let sum = 0;
  for (const name of await readdir(directory, { recursive: true })) {
    const facts = await stat(join(directory, name)).catch(() => null);
    if (facts?.isFile()) sum += facts.blocks * 512;
  }
  return sum;
}

for (const kind of ["disk", "ram"] as const) {
  test(`a file four times the ${kind} cache plays from end to end, backwards too`, async () => {
    const directory = await temporaryDirectory();
    const served = await serveEngine({ cache: kind, cacheDir: directory.path, cacheLimitBytes: LIMIT });
    try {
      const started = await startSession(served, "getfile", query());
      let most = 0;
      let watching = true;
      const watch = (async () => {
        while (watching) most = Math.max(most, await usedOf(started.stat_url));
      })();
      try {
        const before = sentBy(seeder);
        assertSameBytes(await bytesOf(started.playback_url), seeder.data, "sequential");
        const sequential = sentBy(seeder) - before;
        assertLess(sequential, SIZE * 1.35, "hardly anything is fetched twice");
        for (const at of [20, 12, 4, 16, 0]) {
          const part = await bytesOf(started.playback_url, at * MIB, at * MIB + 2 * MIB);
          assertSameBytes(part, seeder.data.subarray(at * MIB, at * MIB + 2 * MIB), `${at} MiB`);
        }
      } finally {
        watching = false;
        await watch;
      }
      assert(most > 0);
      assertLessOrEqual(most, LIMIT + 8 * MIB, "the read-ahead fits the cache");
      if (kind === "disk") assertLessOrEqual(await diskBytes(directory.path), LIMIT + 8 * MIB);
    } finally {
      await served.close();
      await directory.remove();
    }
  });
}

test("several readers share a cache that is smaller than their read-ahead", async () => {
  const served = await serveEngine({ cacheLimitBytes: LIMIT });
  try {
    const sessions = await Promise.all(
      [0, 1, 2, 3, 4].map((n) => startSession(served, "getfile", query(`reader ${n}`))),
    );
    const before = sentBy(seeder);
    await Promise.all(sessions.map(async (session, n) => {
      const from = n * 4 * MIB;
      const part = await bytesOf(session.playback_url, from, from + 4 * MIB);
      assertSameBytes(part, seeder.data.subarray(from, from + 4 * MIB), `reader ${n}`);
    }));
    assertLess(sentBy(seeder) - before, 40 * MIB);
    assertLessOrEqual(await usedOf(sessions[0]!.stat_url), LIMIT + 10 * MIB);
  } finally {
    await served.close();
  }
});

/** Starts an engine, plays everything once and closes it. */
async function playOnce(options: EngineOptions): Promise<void> {
  const served = await serveEngine(options);
  try {
    assertSameBytes(await bytesOf((await startSession(served, "getfile", query())).playback_url), seeder.data);
  } finally {
    await served.close();
  }
}

test("a restart on the same directory downloads nothing again", async () => {
  const directory = await temporaryDirectory();
  const options = { cache: "disk", cacheDir: directory.path, cacheLimitBytes: 0 } as const;
  try {
    await playOnce(options);
    const before = sentBy(seeder);
    const second = await serveEngine(options);
    try {
      assertSameBytes(await bytesOf((await startSession(second, "getfile", query())).playback_url), seeder.data);
      assertEquals(second.engine.swarms.list()[0]!.status().downloadedBytes, 0);
    } finally {
      await second.close();
    }
    assertEquals(sentBy(seeder), before);
  } finally {
    await directory.remove();
  }
});

test("a killed engine resumes with the pieces it had", { timeout: 40_000 }, async () => {
  const script = new URL("./support/reader-process.ts", import.meta.url).pathname;
  const deno = "Deno" in globalThis ? ["run", "-A", "--no-check"] : [];
  await Promise.all([0, 64 * MIB].map(async (limit) => {
    const directory = await temporaryDirectory();
    const child = start(process.execPath, [...deno, script, directory.path, String(limit), seeder.magnet]);
    try {
      await child.line(/^have 4/);
      const resume = join(directory.path, `${seeder.metainfo.infohashHex}.resume`);
      await until("the resume file", () => stat(resume).then(() => true, () => false));
      child.child.kill("SIGKILL");
      await child.exited;
      const served = await serveEngine({ cache: "disk", cacheDir: directory.path, cacheLimitBytes: limit });
      try {
        assertSameBytes(await bytesOf((await startSession(served, "getfile", query())).playback_url), seeder.data);
        const { downloadedBytes } = served.engine.swarms.list()[0]!.status();
        assertLess(downloadedBytes, SIZE - 4 * MIB, "most of what was there is used");
      } finally {
        await served.close();
      }
    } finally {
      await child.stop();
      await directory.remove();
    }
  }));
});

for (const damage of ["deleted", "truncated", "corrupted"] as const) {
  for (const limit of [0, 64 * MIB]) {
    test(`data ${damage} underfoot is fetched again, never served wrong (limit ${limit})`, async () => {
      const directory = await temporaryDirectory();
      const served = await serveEngine({ cache: "disk", cacheDir: directory.path, cacheLimitBytes: limit });
      try {
        const started = await startSession(served, "getfile", query());
        assertSameBytes(await bytesOf(started.playback_url), seeder.data, "first");
        await until("everything is written", async () => await diskBytes(directory.path) >= SIZE);
        for (const name of await readdir(directory.path, { recursive: true })) {
          const path = join(directory.path, name);
          if (name.includes(".resume") || !(await stat(path)).isFile()) continue;
          const { size } = await stat(path);
          if (damage === "deleted") await rm(path);
          else if (damage === "truncated") await truncate(path, Math.floor(size / 3));
          else {
            const file = await open(path, "r+");
            await file.write(new Uint8Array(100_000), 0, 100_000, Math.floor(size / 2));
            await file.close();
          }
        }
        assertSameBytes(await bytesOf(started.playback_url), seeder.data, "after the damage");
      } finally {
        await served.close();
        await directory.remove();
      }
    });
  }
}

test("data corrupted between two runs is found out", async () => {
  const directory = await temporaryDirectory();
  const options = { cache: "disk", cacheDir: directory.path, cacheLimitBytes: 0 } as const;
  try {
    await playOnce(options);
    const path = join(directory.path, seeder.metainfo.infohashHex, "noise.mkv");
    const file = await open(path, "r+");
    await file.write(new Uint8Array(300_000), 0, 300_000, 5 * MIB);
    await file.close();
    await playOnce(options);
    assertSameBytes(new Uint8Array(await readFile(path)), seeder.data, "the file on the disk");
  } finally {
    await directory.remove();
  }
});

test("a file plays while it is hashed after a restart", async () => {
  const directory = await temporaryDirectory();
  const options = { cache: "disk", cacheDir: directory.path, cacheLimitBytes: 0 } as const;
  try {
    await playOnce(options);
    const later = new Date(Date.now() + 60_000);
    await utimes(join(directory.path, seeder.metainfo.infohashHex, "noise.mkv"), later, later);
    const ports: Ports = await loadPorts({ log: { level: "error" } });
    const slow = replacing(ports.files, {
      open: async (path, mode, options) => {
        const handle = await ports.files.open(path, mode, options);
        return replacing(handle, {
          read: async (into: Uint8Array, position: number) => {
            await new Promise((resolve) => setTimeout(resolve, 100));
            return await handle.read(into, position);
          },
        });
      },
    });
    const served = await serveOn({ ...ports, files: slow }, options);
    try {
      const started = await startSession(served, "getfile", query());
      const swarm = served.engine.swarms.list()[0]!;
      assert(swarm.status().havePieces < seeder.metainfo.pieceCount, "hashing continues after the start");
      const end = seeder.data.length - 3 * MIB;
      assertSameBytes(
        await bytesOf(started.playback_url, end, end + 2 * MIB),
        seeder.data.subarray(end, end + 2 * MIB),
      );
      await until("the rest is found", () => swarm.status().havePieces === seeder.metainfo.pieceCount);
      assertLess(swarm.status().downloadedBytes, SIZE, "found pieces are not fetched");
      assertSameBytes(await bytesOf(started.playback_url, 0, MIB), seeder.data.subarray(0, MIB));
    } finally {
      await served.close();
    }
  } finally {
    await directory.remove();
  }
});

/** A copy of `target`, of any class, with some methods replaced. */
function replacing<T extends object>(target: T, methods: Partial<T>): T {
  return new Proxy(target, {
    get: (_target, key) => {
      const value = Reflect.get(key in methods ? methods : target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** A disk with room for `room` bytes. */
function fullDisk(files: FilePort, room: number): FilePort {
  let written = 0;
  return replacing(files, {
    open: async (path, mode, options) => {
      const handle = await files.open(path, mode, options);
      return replacing(handle, {
        write: (data: Uint8Array, position: number) => {
          written += data.length;
          if (written > room) return Promise.reject(new MillraceError("disk_full", "no space left on device"));
          return handle.write(data, position);
        },
      });
    },
  });
}

test("a full disk is reported in stat and playback continues", async () => {
  const directory = await temporaryDirectory();
  const ports: Ports = await loadPorts({ log: { level: "error" } });
  const served = await serveOn({ ...ports, files: fullDisk(ports.files, 5 * MIB) }, {
    cache: "disk",
    cacheDir: directory.path,
    cacheLimitBytes: 0,
  });
  try {
    const started = await startSession(served, "getfile", query());
    assertSameBytes(await bytesOf(started.playback_url), seeder.data);
    assertStringIncludes(String((await statOf(started)).error_message), "no room to store pieces");
    assertSameBytes(await bytesOf(started.playback_url, 0, MIB), seeder.data.subarray(0, MIB));
    assertEquals((await command(started, "method=stop")).response, "ok");
  } finally {
    await served.close();
    await directory.remove();
  }
});
