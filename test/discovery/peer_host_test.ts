import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { peerHostFor } from "../../src/discovery/peer-host.ts";
import { MillraceError } from "../../src/errors.ts";
import type { UdpPort } from "../../src/ports.ts";

/** Binds the given families only, and counts the sockets that stay open. */
function machineWith(families: readonly string[]) {
  const counts = { open: 0 };
  const udp: UdpPort = {
    bind({ host = "0.0.0.0" }) {
      if (!families.includes(host)) return Promise.reject(new MillraceError("io", `cannot listen at ${host}`));
      counts.open++;
      return Promise.resolve({
        address: { host, port: 9 },
        receiveBufferBytes: undefined,
        onMessage() {},
        send: () => Promise.resolve(),
        close: () => void counts.open--,
      });
    },
  };
  return { udp, counts };
}

test("peerHostFor() takes both families where both may be opened, unless the user says otherwise", async () => {
  const BOTH = ["::", "0.0.0.0"];
  const rows = [
    { families: BOTH, named: null, isFree: true, host: "::" },
    { families: ["0.0.0.0"], named: null, isFree: true, host: "0.0.0.0" },
    { families: BOTH, named: null, isFree: false, host: "0.0.0.0" },
    { families: BOTH, named: "127.0.0.1", isFree: true, host: "127.0.0.1" },
    { families: BOTH, named: "::", isFree: false, host: "::" },
  ];
  for (const { families, host, ...choice } of rows) {
    const { udp, counts } = machineWith(families);
    assertEquals([await peerHostFor(choice, udp), counts.open], [host, 0]);
  }
});
