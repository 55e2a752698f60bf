/** The tracker of a benchmark. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * A tracker at `host` that sends every peer the seeders, whose address is `peerHost`; `announced` resolves when the first peer, the seeder itself, has
 * announced.
 */
export async function track(
  peerPorts: () => readonly number[],
  { host = "127.0.0.1", peerHost = "127.0.0.1" } = {},
): Promise<{ url: string; announced: Promise<void>; close: () => void }> {
  let first = () => {};
  const announced = new Promise<void>((resolve) => first = resolve);
  const server = createServer((_request, response) => {
    first();
    const peers = Buffer.from(
      peerPorts().flatMap((port) => [...peerHost.split(".").map(Number), port >> 8, port & 255]),
    );
    response.end(Buffer.concat([Buffer.from(`d8:intervali1800e5:peers${peers.length}:`), peers, Buffer.from("e")]));
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://${host}:${port}/announce`, announced, close: () => server.close() };
}
