/** The emulated network of `scripts/live-wan` as programs see it. Needs root, python3 and ip. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import type { WanNode } from "../../scripts/live-wan/spec.ts";
import { PYTHON, WideArea } from "../../scripts/live-wan/wide-area.ts";
import { run } from "../support/process.ts";

/** Repeats what it hears on port 700: datagrams, and the bytes of TCP connections. */
const ECHO = `
import socket, threading
def serve():
    while True:
        link = server.accept()[0]
        link.sendall(link.recv(100))
server = socket.create_server(("0.0.0.0", 700))
threading.Thread(target=serve, daemon=True).start()
heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
heard.bind(("0.0.0.0", 700))
print("ready", flush=True)
while True:
    data, sender = heard.recvfrom(2000)
    heard.sendto(data, sender)
`;
/** Sends datagrams of 1,000 bytes at once; prints how many come back, and after how long the first and the last one, ms. */
const ASK = `
import socket, sys, time
asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asking.settimeout(1)
began, times = time.monotonic(), []
for _ in range(int(sys.argv[2])): asking.sendto(bytes(972), (sys.argv[1], 700))
try:
    while len(times) < int(sys.argv[2]):
        asking.recv(2000)
        times.append((time.monotonic() - began) * 1000)
except TimeoutError: pass
print(len(times), min(times, default=0), max(times, default=0))
`;
const CONNECT = `
import socket, sys
try:
    with socket.create_connection((sys.argv[1], 700), timeout=1) as link:
        link.sendall(b"hello")
        print(link.recv(100).decode())
except TimeoutError: print("nothing")
`;
const OPEN: WanNode = { address: "", uplinkMbit: 0, queueMs: 100, delayMs: 20, loss: 0, lossBurst: 1, isClosed: false };
/** Nodes by what is particular about them. */
const [PLAIN, SLOW, CLOSED, LOSSY, DEAF] = [0, 1, 2, 3, 4];
const NODES: readonly WanNode[] = [
  { ...OPEN, address: "52.0.1.1" },
  { ...OPEN, address: "52.0.2.1", uplinkMbit: 1 },
  { ...OPEN, address: "52.0.3.1", isClosed: true },
  { ...OPEN, address: "52.0.4.1", loss: 0.5 },
  { ...OPEN, address: "52.0.5.1", isClosed: true, isDeaf: true },
];

/** Two programs at nodes of a network. */
class Nodes {
  readonly #network: WideArea;

  constructor(network: WideArea) {
    this.#network = network;
  }

  async echo(node: number): Promise<void> {
    await this.#network.start(node, [PYTHON, "-c", ECHO]).line(/^ready$/);
  }

  /** Sends datagrams of 1,000 bytes: how many come back, and after how long, ms. */
  async ask(from: number, to: number, count: number): Promise<{ count: number; firstMs: number; lastMs: number }> {
    const said = await this.#run(from, ASK, NODES[to]!.address, String(count));
    const [came, firstMs, lastMs] = said.split(" ").map(Number);
    return { count: came!, firstMs: firstMs!, lastMs: lastMs! };
  }

  connect(from: number, to: number): Promise<string> {
    return this.#run(from, CONNECT, NODES[to]!.address);
  }

  async #run(node: number, script: string, ...args: string[]): Promise<string> {
    const [program, ...rest] = this.#network.at(node, [PYTHON, "-c", script, ...args]);
    const { code, text, stderr } = await run(program!, rest);
    assertEquals(code, 0, stderr);
    return text.trim();
  }
}

test("WideArea delays packets, drops what a queue does not hold, loses packets, and closes nodes as NATs do", async () => {
  const network = await WideArea.open(NODES, 1);
  try {
    const nodes = new Nodes(network);
    for (const node of NODES.keys()) await nodes.echo(node);

    const near = await nodes.ask(PLAIN, SLOW, 1);
    assert(near.count === 1 && near.firstMs >= 80, `${near.firstMs} ms there and back`);
    assertEquals(await nodes.connect(PLAIN, SLOW), "hello");

    // Each takes 8 ms: those that find 100 ms before them are dropped.
    const queued = await nodes.ask(SLOW, PLAIN, 60);
    assert(queued.count >= 13 && queued.count < 60, `${queued.count} passed the queue`);
    assert(queued.lastMs >= 80 + 13 * 8, `the last one came after ${queued.lastMs} ms`);

    const lossy = await nodes.ask(LOSSY, PLAIN, 100);
    assert(lossy.count > 25 && lossy.count < 75, `${lossy.count} of 100 came, each with an even chance`);

    assertEquals((await nodes.ask(PLAIN, CLOSED, 1)).count, 0);
    assertEquals(await nodes.connect(PLAIN, CLOSED), "nothing");
    assertEquals(await nodes.connect(CLOSED, PLAIN), "hello");
    assertEquals((await nodes.ask(CLOSED, PLAIN, 1)).count, 1);
    assertEquals(await nodes.connect(DEAF, PLAIN), "hello");
    assertEquals((await nodes.ask(DEAF, PLAIN, 1)).count, 0);

    network.hole(PLAIN);
    assertEquals((await nodes.ask(CLOSED, PLAIN, 1)).count, 0);
  } finally {
    await network.close();
  }
});
