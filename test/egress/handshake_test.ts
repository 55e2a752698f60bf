import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { concatBytes } from "../../src/bytes/hex.ts";
import { parseProxy } from "../../src/bytes/proxy-url.ts";
import { hasCode, MillraceError } from "../../src/errors.ts";
import { associateThrough, connectThrough, type HandshakeLine, isProxyFault } from "../../src/egress/handshake.ts";
import { decodeDatagram, encodeAddress } from "../../src/egress/socks-address.ts";
import { noise } from "../support/random.ts";

const bytes = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));

/** A proxy that answers each step with the next of `replies`. */
class Script implements HandshakeLine {
  readonly sent: Uint8Array[] = [];
  readonly #replies: Uint8Array[];
  #unread = new Uint8Array(0);

  constructor(...replies: readonly (readonly number[] | string)[]) {
    this.#replies = replies.map((reply) => typeof reply === "string" ? bytes(reply) : Uint8Array.from(reply));
  }

  write(step: Uint8Array): void {
    assertEquals(this.#unread.length, 0, "a step before the reply to the last was read");
    this.sent.push(step);
    this.#unread = new Uint8Array(this.#replies.shift() ?? new Uint8Array(0));
  }

  read(count: number): Promise<Uint8Array> {
    if (this.#unread.length < count) return Promise.reject(new MillraceError("connection_failed", "closed"));
    const read = this.#unread.slice(0, count);
    this.#unread = this.#unread.slice(count);
    return Promise.resolve(read);
  }

  get left(): string {
    return String.fromCharCode(...this.#unread);
  }
}

const OPEN = parseProxy("socks5h://127.0.0.1:1080");
const LOCKED = parseProxy("socks5://us%40er:p%3Aw@[::1]");
const WEB = parseProxy("http://user:pw@proxy.test:3128");
const TARGET = { host: "film.test", port: 443 };

test("parseProxy() reads protocol, address, port and password, and hides them in its error", () => {
  assertEquals(OPEN, { kind: "socks5", host: "127.0.0.1", port: 1080, credentials: null });
  assertEquals(LOCKED, { kind: "socks5", host: "::1", port: 1080, credentials: { user: "us@er", password: "p:w" } });
  assertEquals(WEB, { kind: "http", host: "proxy.test", port: 3128, credentials: { user: "user", password: "pw" } });
  for (
    const bad of [
      "",
      "proxy",
      "socks4://a:1",
      "socks5://",
      "ftp://x:secret@a",
      "socks5://:secret@a:1",
      "socks5://secret@a/b",
    ]
  ) {
    try {
      parseProxy(bad);
    } catch (error) {
      assert(hasCode(error, "config") && !error.message.includes("secret"), bad);
      continue;
    }
    throw new Error(`accepted ${bad}`);
  }
});

test("connectThrough() signs in and names the target, each step alone", async () => {
  const line = new Script([5, 2], [1, 0], [5, 0, 0, 3, 4, ...bytes("exit"), 4, 56]);
  await connectThrough(line, LOCKED, TARGET);
  assertEquals(line.sent.map((step) => [...step]), [
    [5, 2, 0, 2],
    [1, 5, ...bytes("us@er"), 3, ...bytes("p:w")],
    [5, 1, 0, 3, 9, ...bytes("film.test"), 1, 187],
  ]);
  assertEquals(line.left, "");
});

test("connectThrough() writes literal addresses as such", async () => {
  for (
    const [host, address] of [["10.1.2.3", [1, 10, 1, 2, 3]], ["2001:db8::1", [
      4,
      32,
      1,
      13,
      184,
      ...Array(11).fill(0),
      1,
    ]]] as const
  ) {
    const line = new Script([5, 0], [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    await connectThrough(line, OPEN, { host, port: 258 });
    assertEquals([...line.sent[1]!], [5, 1, 0, ...address, 1, 2]);
  }
});

test("connectThrough() reads a refusal by its code, whatever its address is, and blames the target", async () => {
  const rests = [[1, 0, 0, 0, 0, 0, 0], [3, 0, 0, 0], [9], []];
  for (const rest of rests) {
    const error = await assertRejects(
      () => connectThrough(new Script([5, 0], [5, 5, 0, 1, ...rest]), OPEN, TARGET),
      MillraceError,
    );
    assert(hasCode(error, "connection_failed") && !isProxyFault(error));
    assertMatch(error.message, /film\.test:443: the connection was refused/);
  }
});

test("connectThrough() blames the proxy for a wrong password or another protocol", async () => {
  const scripts = [
    new Script([5, 255]),
    new Script([5, 1]),
    new Script("HT"),
    new Script([5, 2], [1, 1]),
    new Script([5, 0], [4, 0, 0, 1]),
    new Script([5, 0], [5, 0, 0, 7]),
  ];
  for (const line of scripts) {
    assert(isProxyFault(await assertRejects(() => connectThrough(line, LOCKED, TARGET), MillraceError)));
  }
});

test("connectThrough() asks an HTTP proxy by CONNECT, and leaves what follows the head", async () => {
  const line = new Script("HTTP/1.1 200 OK\r\nVia: x\r\n\r\nhello");
  await connectThrough(line, WEB, { host: "2001:db8::1", port: 80 });
  assertEquals(
    String.fromCharCode(...line.sent[0]!),
    "CONNECT [2001:db8::1]:80 HTTP/1.1\r\nHost: [2001:db8::1]:80\r\nProxy-Authorization: Basic dXNlcjpwdw==\r\n\r\n",
  );
  assertEquals(line.left, "hello");
  for (
    const [head, isFault] of [["HTTP/1.1 403 no\r\n\r\n", false], ["HTTP/1.0 407 no\r\n\r\n", true], [
      "SSH-2.0\n\n",
      true,
    ], ["x".repeat(9000), true]] as const
  ) {
    const error = await assertRejects(() => connectThrough(new Script(head), WEB, TARGET), MillraceError);
    assertEquals([error.code, isProxyFault(error)], ["connection_failed", isFault], head.slice(0, 20));
  }
  const broken = await assertRejects(
    () => connectThrough(new Script(), WEB, { host: "a\r\nb", port: 1 }),
    MillraceError,
  );
  assertEquals(broken.code, "invalid_argument");
});

test("associateThrough() claims no address of its own, and says that UDP is refused", async () => {
  const line = new Script([5, 0], [5, 0, 0, 1, 10, 0, 0, 9, 4, 0]);
  assertEquals(await associateThrough(line, OPEN), { host: "10.0.0.9", port: 1024 });
  assertEquals([...line.sent[1]!], [5, 3, 0, 1, 0, 0, 0, 0, 0, 0]);
  const refused = await assertRejects(
    () => associateThrough(new Script([5, 0], [5, 7, 0, 1, 0, 0, 0, 0, 0, 0]), OPEN),
    MillraceError,
  );
  assertEquals([refused.code, isProxyFault(refused)], ["unavailable", false]);
});

test("decodeDatagram() finds sender and content of what encodeAddress() writes, and nothing in noise that ends early", () => {
  for (const host of ["10.1.2.3", "2001:db8::1", "node.test"]) {
    const head = concatBytes([Uint8Array.of(0, 0, 0), encodeAddress({ host, port: 6881 })]);
    assertEquals(decodeDatagram(concatBytes([head, bytes("d1:y")])), {
      from: { host, port: 6881 },
      contentAt: head.length,
    });
    for (let end = 0; end < head.length; end++) assertEquals(decodeDatagram(head.subarray(0, end)), null);
    const fragment = head.slice();
    fragment[2] = 1;
    assertEquals(decodeDatagram(fragment), null);
  }
  for (let seed = 1; seed <= 500; seed++) {
    const data = noise(seed % 40, seed);
    const found = decodeDatagram(data);
    assert(found === null || found.contentAt <= data.length);
  }
});
