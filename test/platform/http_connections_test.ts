import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { descriptorLimit } from "../../platform/shared/descriptors.ts";
import { connectionLimit, HttpConnections } from "../../platform/shared/http-connections.ts";

class FakeSocket extends EventEmitter {
  isOpen = true;
  readonly remoteAddress: string;

  constructor(remoteAddress: string) {
    super();
    this.remoteAddress = remoteAddress;
  }

  destroy(): void {
    this.isOpen = false;
    this.emit("close");
  }
}

/** Connections of a server with 16 places. */
class Lab {
  readonly connections = new HttpConnections(16);

  /** `count` more connections from `host`; `busy` ones have a request under way. */
  open(host: string, count: number, busy = false): FakeSocket[] {
    return Array.from({ length: count }, () => {
      const socket = new FakeSocket(host);
      this.connections.admit(socket as unknown as Socket);
      if (busy && socket.isOpen) assert(this.connections.begin(socket as unknown as Socket));
      return socket;
    });
  }
}

const open = (sockets: readonly FakeSocket[]) => sockets.filter((socket) => socket.isOpen).length;

test("HttpConnections leaves places to this machine however many others come", () => {
  const lab = new Lab();
  const strangers = [1, 2, 3, 4, 5].flatMap((n) => lab.open(`192.168.1.${n}`, 8, true));
  assertEquals(open(strangers), 12);
  assertEquals(open(lab.open("127.0.0.1", 2, true)), 2);
  assertEquals(open(lab.open("::ffff:127.0.0.1", 2, true)), 2);
  assertEquals(open(lab.open("::1", 1, true)), 0, "all places are in use");
});

test("HttpConnections limits the places of another machine, whichever of its addresses it uses", () => {
  const lab = new Lab();
  assertEquals(open(lab.open("10.0.0.1", 8, true)), 4);
  assertEquals(open([1, 2, 3, 4, 5, 6].flatMap((n) => lab.open(`2001:db8:1:2::${n}`, 1, true))), 4);
});

test("HttpConnections drops idle connections of others, never busy ones, for a new one", () => {
  const lab = new Lab();
  const busy = lab.open("127.0.0.1", 8, true);
  const idle = [1, 2].flatMap((n) => lab.open(`10.0.0.${n}`, 4));
  const own = lab.open("127.0.0.1", 3);
  assertEquals([open(busy), open(idle), open(own)], [8, 5, 3]);
});

test("HttpConnections lets no other machine drop a connection of this one", () => {
  const lab = new Lab();
  const own = lab.open("127.0.0.1", 16);
  assertEquals(open(lab.open("10.0.0.1", 3)), 0);
  assertEquals(open(own), 16);
});

test("HttpConnections counts a connection as idle after its last request", () => {
  const lab = new Lab();
  const [socket] = lab.open("127.0.0.1", 1, true);
  lab.open("127.0.0.1", 15, true);
  assertEquals(open(lab.open("127.0.0.1", 1)), 0);
  lab.connections.finish(socket as unknown as Socket);
  assertEquals(open(lab.open("127.0.0.1", 1)), 1);
  assertEquals(socket!.isOpen, false);
});

test("connectionLimit() stays below the number of descriptors that the process may open", () => {
  assertEquals([null, 10, 256, 1024, 1_000_000].map(connectionLimit), [1024, 16, 64, 512, 1024]);
});

test("descriptorLimit() returns this process's limit if the system reports it", () => {
  const limit = descriptorLimit();
  assert(limit === null || limit >= 64, String(limit));
});
