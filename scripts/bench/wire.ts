/**
 * CPU cost of the wire on loopback: one of our links on the platform's own TCP against a far end that does almost
 * nothing.
 *
 *   node scripts/bench/wire.ts [GiB=1] [rounds=3]        (or: deno run -A, bun)
 *
 * Prints, for receiving and sending, in plaintext and RC4, the median over the rounds of MB/s and of CPU-seconds per
 * GiB: the total, and the user part (the rest is what the kernel spends on the sockets).
 */
import net from "node:net";
import process from "node:process";
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import Library from "bittorrent-protocol";
import { loadPorts, runtimeName } from "../../platform/detect.ts";
import type { TcpConnection } from "../../src/ports.ts";
import { connectPeer, createPeerId } from "../../src/wire/mod.ts";
import { BLOCK_BYTES, type PeerLink, type PeerLinkHandlers } from "../../src/wire/types.ts";

const INFOHASH = new Uint8Array(20).fill(7);
const INFOHASH_HEX = "07".repeat(20);
const PIECE_BYTES = 1 << 20;
/** Requests under way: the most that the scheduler allows. */
const DEPTH = 128;
const REQUEST_BYTES = 17;

/**
 * The far end, in a separate process: counts requests and serves each with one prepared block, or sends requests and
 * counts.
 */
function farEnd(mode: string): void {
  const handshake = Buffer.concat([
    Buffer.from("\x13BitTorrent protocol"),
    Buffer.alloc(8),
    INFOHASH,
    Buffer.alloc(20, 98),
  ]);
  handshake[25] = 0x10;
  const block = Buffer.alloc(13 + BLOCK_BYTES, 0x5a);
  block.writeUInt32BE(9 + BLOCK_BYTES, 0);
  block.fill(0, 4, 13);
  block[4] = 7;
  const blocks = Buffer.concat(new Array(32).fill(block));
  const server = net.createServer({ noDelay: true }, (socket) => {
    socket.on("error", () => {});
    if (mode === "seed") {
      let seen = -1;
      socket.on("data", (chunk) => {
        if (seen < 0) {
          // After its handshakes the link sends only requests, which are served all at once.
          seen = 0;
          socket.write(Buffer.concat([handshake, Buffer.from([0, 0, 0, 1, 1])]));
          return;
        }
        seen += chunk.length;
        const answers = Math.floor(seen / REQUEST_BYTES);
        seen -= answers * REQUEST_BYTES;
        for (let left = answers; left > 0; left -= 32) {
          socket.write(left >= 32 ? blocks : blocks.subarray(0, left * block.length));
        }
      });
    } else if (mode === "leech") {
      let seen = 0;
      let next = 0;
      const ask = (count: number) => {
        const bytes = Buffer.alloc(count * REQUEST_BYTES);
        for (let i = 0; i < count; i++, next += BLOCK_BYTES) {
          bytes.writeUInt32BE(13, i * REQUEST_BYTES);
          bytes[i * REQUEST_BYTES + 4] = 6;
          bytes.writeUInt32BE(Math.floor(next / PIECE_BYTES) % 1000, i * REQUEST_BYTES + 5);
          bytes.writeUInt32BE(next % PIECE_BYTES, i * REQUEST_BYTES + 9);
          bytes.writeUInt32BE(BLOCK_BYTES, i * REQUEST_BYTES + 13);
        }
        socket.write(bytes);
      };
      let started = false;
      socket.on("data", (chunk) => {
        if (!started) {
          started = true;
          socket.write(handshake);
          setTimeout(() => ask(DEPTH), 20);
          return;
        }
        seen += chunk.length;
        const answers = Math.floor(seen / block.length);
        seen -= answers * block.length;
        if (answers > 0) ask(answers);
      });
    } else {
      const wire = new Library("tcpIncoming", 2);
      const piece = new Uint8Array(PIECE_BYTES).fill(0x5a);
      socket.pipe(wire).pipe(socket);
      wire.on("crypto-infohash", () => wire.setInfoHash(INFOHASH_HEX));
      wire.on("handshake", () => {
        wire.handshake(INFOHASH_HEX, "62".repeat(20), {});
        wire.unchoke();
      });
      wire.on("request", (_p: number, offset: number, length: number, done: (e: null, b: Uint8Array) => void) => {
        done(null, piece.subarray(offset, offset + length));
      });
      socket.on("close", () => wire.destroy());
    }
  });
  server.listen(0, "127.0.0.1", () => console.log((server.address() as net.AddressInfo).port));
}

interface Figures {
  readonly mbPerSecond: number;
  readonly cpuPerGib: number;
  readonly userPerGib: number;
}

/** Runs one link until `totalBytes` of payload have passed. */
function run(
  connection: TcpConnection,
  clock: Awaited<ReturnType<typeof loadPorts>>["clock"],
  mode: string,
  totalBytes: number,
): Promise<Figures> {
  return new Promise((resolve, reject) => {
    const pieces = [0, 1, 2, 3].map(() => new Uint8Array(PIECE_BYTES));
    const source = new Uint8Array(PIECE_BYTES).fill(3);
    let passed = 0;
    let asked = 0;
    let began = 0;
    let cpu = process.cpuUsage();
    let queue: [number, number, number][] = [];
    const start = () => {
      began = performance.now();
      cpu = process.cpuUsage();
    };
    const done = () => {
      const seconds = (performance.now() - began) / 1000;
      const used = process.cpuUsage(cpu);
      const gib = totalBytes / 2 ** 30;
      link.close();
      resolve({
        mbPerSecond: totalBytes / seconds / 1e6,
        cpuPerGib: (used.user + used.system) / 1e6 / gib,
        userPerGib: used.user / 1e6 / gib,
      });
    };
    const ask = () => {
      if (asked >= totalBytes) return;
      link.request(Math.floor(asked / PIECE_BYTES) & 3, asked % PIECE_BYTES, BLOCK_BYTES);
      asked += BLOCK_BYTES;
    };
    const pump = () => {
      while (queue.length > 0) {
        const [piece, offset, length] = queue.shift()!;
        passed += length;
        if (!link.piece(piece, offset, source.subarray(offset, offset + length))) break;
      }
      if (passed >= totalBytes && link.bufferedBytes === 0) done();
    };
    const ignore = () => {};
    const handlers: PeerLinkHandlers = {
      ready: () => {
        if (mode !== "leech") return;
        link.onDrain = pump;
        link.unchoke();
        start();
      },
      blockTarget: (piece, offset, length) => pieces[piece & 3]!.subarray(offset, offset + length),
      block: (_piece, _offset, length) => {
        passed += length;
        if (passed >= totalBytes) done();
        else ask();
      },
      request: (piece, offset, length) => {
        if (passed >= totalBytes) return done();
        queue.push([piece, offset, length]);
        if (queue.length === 1) queueMicrotask(pump);
      },
      close: (error) => {
        queue = [];
        if (error !== null) reject(error);
      },
      extended: ignore,
      cancel: ignore,
      reject: ignore,
      dhtPort: ignore,
      peers: ignore,
      torrent: {
        unchoke: () => {
          start();
          for (let i = 0; i < DEPTH; i++) ask();
        },
        choke: ignore,
        interested: ignore,
        uninterested: ignore,
        bitfield: ignore,
        haveAll: ignore,
        haveNone: ignore,
        have: ignore,
        allowedFast: ignore,
        metadata: ignore,
        metadataFailed: ignore,
      },
    };
    const link: PeerLink = connectPeer(connection, {
      clock,
      infohash: INFOHASH,
      peerId: createPeerId(),
      handlers,
      encryption: mode === "rc4" ? "prefer" : "accept",
    });
  });
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1]!;
}

async function main(gib: number, rounds: number): Promise<void> {
  const ports = await loadPorts();
  const names: Record<string, string> = { seed: "receive", leech: "send", rc4: "receive RC4" };
  for (const mode of ["seed", "leech", "rc4"]) {
    // The far end always runs on the same runtime, so that the figures of different runtimes are comparable.
    const child = spawn(process.env.BENCH_NODE ?? "node", [fileURLToPath(import.meta.url), "far", mode], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const port = await new Promise<number>((resolve) =>
      child.stdout.once("data", (text) => resolve(Number(String(text))))
    );
    const figures: Figures[] = [];
    for (let i = 0; i <= rounds; i++) {
      const target = { host: "127.0.0.1", port };
      const connection = await ports.tcp.connect(target, { signal: AbortSignal.timeout(5000) });
      const total = (mode === "rc4" ? gib / 4 : gib) * 2 ** 30 / (i === 0 ? 8 : 1);
      const result = await run(connection, ports.clock, mode, total);
      if (i > 0) figures.push(result);
    }
    child.kill();
    const column = (key: keyof Figures) => median(figures.map((figure) => figure[key]));
    console.log(
      `${runtimeName().padEnd(5)} ${names[mode]!.padEnd(12)} ${column("mbPerSecond").toFixed(0).padStart(5)} MB/s  ` +
        `${column("cpuPerGib").toFixed(2)} CPU-s/GiB, user ${column("userPerGib").toFixed(2)}`,
    );
  }
}

const [first = "1", second = "3"] = process.argv.slice(2);
if (first === "far") farEnd(second);
else await main(Number(first), Number(second)).then(() => process.exit(0));
