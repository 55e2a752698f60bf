/** Faults of the engine itself in uploads, windows on disk, programs, and checks of the platform: what others watch plays on. */
import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { createHttpPort } from "../../platform/shared/http-server.ts";
import { HttpConnections } from "../../platform/shared/http-connections.ts";
import { watchListener } from "../../platform/shared/listener-watch.ts";
import { StatusLine } from "../../platform/status-line.ts";
import { PACKET_BYTES } from "../../src/bytes/ts/packet.ts";
import { MillraceError } from "../../src/errors.ts";
import { ForeignPrograms, IDLE_MS } from "../../src/media/foreign/programs.ts";
import { LiveStream } from "../../src/playback/live/live-stream.ts";
import { WindowFiles } from "../../src/playback/live/window-files.ts";
import { TokenBucket } from "../../src/swarm/token-bucket.ts";
import type { UploadCache } from "../../src/swarm/upload/upload-cache.ts";
import { UploadQueue } from "../../src/swarm/upload/upload-queue.ts";
import type { PeerLink } from "../../src/wire/types.ts";
import { fakeProcesses } from "../media/support/fake-processes.ts";
import { NEVER } from "../media/support/files.ts";
import { Studio } from "../playback/live-support.ts";
import { MemoryFiles } from "../storage/memory-files.ts";
import { serveEngine } from "../support/engine.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { faultLog } from "../support/fault-log.ts";
import { MemorySource } from "../support/memory-source.ts";
import { until } from "../support/until.ts";
import { MIB, seedNoise, startSession } from "./support.ts";

const LOOPBACK = { host: "127.0.0.1", port: 0 };
const broken = (): never => {
  throw new TypeError("object null is not iterable");
};

/** One peer's upload queue on a link that remembers why it was closed, and another one that shares its rate limit. */
function uploads(cache: Partial<UploadCache>, bytesPerSecond = 0) {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, bytesPerSecond);
  const join = (parts: Partial<UploadCache>) => {
    const closed: (Error | undefined)[] = [];
    const link = { onDrain: null, reject() {}, piece: () => true, close: (error?: Error) => closed.push(error) };
    const peer = { fast: true, uploaded() {} };
    const given = { holds: () => false, prefetch() {}, read: () => Promise.resolve(new Uint8Array(8)), ...parts };
    const queue = new UploadQueue(peer, link as unknown as PeerLink, given as unknown as UploadCache, bucket);
    return { queue, closed, link };
  };
  const endsWithAFault = async ({ queue, closed }: ReturnType<typeof join>) => {
    await until("the link is closed", async () => (await settle(), closed.length > 0));
    assertEquals([closed.length, (closed[0] as MillraceError).code], [1, "internal"]);
    queue.close();
  };
  return { clock, bucket, faulty: join(cache), sound: () => join({}), endsWithAFault };
}

/** A program that reads a file. */
async function program() {
  const clock = new FakeClock();
  const { log, faults } = faultLog();
  const { http } = createLoopback();
  const { port } = fakeProcesses();
  const programs = new ForeignPrograms(port, http, clock, log);
  const job = { program: "ffmpeg", arguments: (url: string) => [url], limitBytes: 100 } as const;
  const run = await programs.open(job, new MemorySource(new Uint8Array(9)), NEVER);
  return { clock, faults, run };
}

function createLoopback(parts: Parameters<typeof createHttpPort>[0] = {}) {
  const faults: unknown[] = [];
  return { http: createHttpPort({ ...parts, failed: (error) => faults.push(error) }), faults };
}

const KINDS: Readonly<Record<string, () => Promise<void>>> = {
  async "the turn in which requests of a peer are served"() {
    const { faulty, endsWithAFault } = uploads({ holds: broken });
    faulty.queue.push(0, 0, 8);
    await endsWithAFault(faulty);
  },

  async "what was read for a peer"() {
    const { faulty, endsWithAFault } = uploads({});
    Object.assign(faulty.link, { piece: broken });
    faulty.queue.push(0, 0, 8);
    await endsWithAFault(faulty);
  },

  async "the timer of the upload limit"() {
    const { clock, bucket, faulty, sound, endsWithAFault } = uploads({ holds: broken }, 1000);
    const other = sound();
    bucket.spend(100_000);
    faulty.queue.push(0, 0, 8);
    other.queue.push(0, 0, 8);
    await clock.advanceAsync(100_000);
    await endsWithAFault(faulty);
    assertEquals([other.queue.length, other.closed.length], [0, 0]);
  },

  async "moving the window of a broadcast to the disk"() {
    const clock = new FakeClock();
    const studio = await Studio.open({ clock });
    const { log } = faultLog();
    const broke: unknown[] = [];
    const files = new WindowFiles(new MemoryFiles(clock), "/cache/live-window/x", log);
    Object.assign(files, { write: broken });
    const limits = { windowMs: 300_000, maxBytes: 2 ** 30 };
    const stream = new LiveStream(studio, clock, { limits, files, broke: (error) => broke.push(error) });
    for (const captureMs of [0, 100_000]) stream.window.append([new Uint8Array(PACKET_BYTES)], captureMs);
    await settle();
    assertEquals([broke.length, (stream.ending.reason as MillraceError).code], [1, "internal"]);
    await stream.close();
  },

  async "the timer of a program from which nobody reads"() {
    const { clock, faults, run } = await program();
    Object.assign(run, { setAside: broken });
    await clock.advanceAsync(IDLE_MS);
    assertEquals(faults.length, 1);
    const error = await assertRejects(() => run.next(NEVER), MillraceError);
    assertEquals(error.code, "internal");
  },

  async "looking for clients that left"() {
    class Faulty extends HttpConnections {
      override destroyLeft() {
        return broken();
      }
    }
    const { http, faults } = createLoopback({ connections: () => new Faulty() });
    const server = await http.serve(LOOPBACK, () => new Response("here"));
    await until("it looked twice", () => faults.length > 1);
    assertEquals(await (await fetch(`http://127.0.0.1:${server.address.port}`)).text(), "here");
    await server.close(0);
  },

  async "looking whether connections are accepted"() {
    const faults: unknown[] = [];
    let counted = 0;
    const accepted = () => counted++ === 0 ? 0 : broken();
    const end = watchListener({ host: "127.0.0.1", port: 9 }, accepted, () => {}, (error) => faults.push(error));
    await until("it looked", () => faults.length > 0);
    end();
  },

  async "printing the figures of a broadcast"() {
    const { log, faults } = faultLog();
    const line = new StatusLine(true, { write() {}, on() {} }, broken, log);
    line.begin("broadcast", {});
    await until("it was to print", () => faults.length > 0);
    line.end({});
  },
};

test("An exception in an upload, a window on disk, a program or a check of the platform costs that one; a stream plays on", async () => {
  const noise = await seedNoise(4 * MIB, { seed: 8 });
  const served = await serveEngine();
  try {
    const { playback_url } = await startSession(served, "getfile", { magnet: noise.magnet });
    const reader = (await fetch(playback_url)).body!.getReader();
    const read = [(await reader.read()).value!];
    await Promise.all(
      Object.entries(KINDS).map(async ([name, kind]) => {
        try {
          await kind();
        } catch (cause) {
          throw new Error(name, { cause });
        }
      }),
    );
    for (let part = await reader.read(); !part.done; part = await reader.read()) read.push(part.value);
    assertEquals(new Uint8Array(await new Blob(read as Uint8Array<ArrayBuffer>[]).arrayBuffer()), noise.data);
  } finally {
    await served.close();
    await noise.close();
  }
});
