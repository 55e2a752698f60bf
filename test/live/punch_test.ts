import { test } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { abortError, MillraceError } from "../../src/errors.ts";
import { decodeLiveMessage } from "../../src/live/messages.ts";
import { decodePunchMessage, encodePunchMessage, type PunchMessage } from "../../src/live/punch-messages.ts";
import { HolePunching } from "../../src/live/swarm/hole-punching.ts";
import { Introductions } from "../../src/live/swarm/introductions.ts";
import type { LivePeerSession } from "../../src/live/swarm/live-session.ts";
import type { SocketAddress, TcpConnection } from "../../src/ports.ts";
import type { Reach } from "../../src/swarm/neighbours/reachability.ts";
import { newToken } from "../../src/utp/utp-endpoint.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { noise, seeded } from "../support/random.ts";
import { type End, UtpLab } from "../utp/support.ts";
import type { Nat } from "../utp/nat-network.ts";

const TOKEN = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);
const PEER_ID = new Uint8Array(20).fill(0x61);
const INTRODUCER = "192.0.2.1";

const bytes = (hex: string) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));

test("decodePunchMessage() reads what encodePunchMessage() wrote, byte by byte", () => {
  const punch = { type: "punch", token: TOKEN, peerId: PEER_ID } as const;
  const table: [PunchMessage, string][] = [
    [{ type: "seek", isWanted: true }, "0801"],
    [{ type: "seek", isWanted: false }, "0800"],
    [{ type: "probe", token: TOKEN, port: 8621 }, "09" + "0102030405060708" + "21ad"],
    [
      { ...punch, isInitiator: true, address: { host: "203.0.113.9", port: 8621 } },
      "0a" + "0102030405060708" + "00" + "61".repeat(20) + "04cb00710921ad",
    ],
    [
      { ...punch, isInitiator: false, address: { host: "2001:db8::9", port: 1 } },
      "0a" + "0102030405060708" + "01" + "61".repeat(20) + "1020010db80000000000000000000000090001",
    ],
  ];
  for (const [message, hex] of table) {
    assertEquals(encodePunchMessage(message), bytes(hex));
    assertEquals(decodePunchMessage(bytes(hex)), message);
    assertEquals(decodeLiveMessage(bytes(hex)), null, "older members ignore it");
  }
});

test("decodePunchMessage() gives a message or a violation for any bytes, and leaves other types to others", () => {
  assertEquals(decodePunchMessage(bytes("060001")), null);
  for (const hex of ["08", "080000", "09", "0901020304050607080000", "0a", "0a010203040506070800"]) {
    assertThrows(() => decodePunchMessage(bytes(hex)), MillraceError, "malformed");
  }
  const random = seeded(3);
  for (let i = 0; i < 20_000; i++) {
    const message = noise(Math.floor(random() * 60), i);
    if (message.length > 0) message[0] = 8 + i % 3;
    if (message.length > 30 && random() < 0.7) message[30] = random() < 0.5 ? 4 : 16;
    try {
      assert(message.length === 0 || decodePunchMessage(message) !== null);
    } catch (error) {
      assert(error instanceof MillraceError && error.code === "protocol_violation");
    }
  }
});

/** A member behind NAT, its connection to the introducer, and the introducer's to it. */
interface Member {
  readonly end: End;
  readonly punching: HolePunching;
  /** Members that it is connected to by hole punching. */
  readonly met: TcpConnection[];
  /** The introducer's session with it. */
  readonly session: LivePeerSession;
  reach: Reach;
  readonly said: PunchMessage["type"][];
}

/** Sessions of an introducer with members, whose messages arrive at once. */
class Meeting {
  readonly lab = new UtpLab();
  readonly introducer = this.lab.end(INTRODUCER);
  reach: Reach = "open";
  readonly introductions = new Introductions({
    clock: this.lab.clock,
    utp: this.introducer.endpoint,
    utpPort: () => this.introducer.endpoint.bind(),
    reach: () => this.reach,
  });
  #count = 0;

  member(nat: Nat, options: { host?: string; udpHost?: string; wants?: boolean } = {}): Member {
    const host = options.host ?? `198.51.${++this.#count}.1`;
    const end = this.lab.end(options.udpHost ?? host, nat);
    const met: TcpConnection[] = [];
    const said: PunchMessage["type"][] = [];
    const member: Member = { end, met, said, reach: "closed", punching: null!, session: null! };
    const peerId = noise(20, this.#count);
    const sessionWith = (remote: string, deliver: (message: PunchMessage) => void) => {
      const link = {
        remote: { host: remote, port: 1 },
        sendLive: (message: Uint8Array) => deliver(decodePunchMessage(message)!),
      };
      return { link, host: remote, isReady: true, reach: "open", info: { peerId } } as unknown as LivePeerSession;
    };
    const session = sessionWith(host, (message) => {
      said.push(message.type);
      member.punching.message(upward, message);
    });
    const upward = sessionWith(INTRODUCER, (message) => {
      if (message.type === "seek") this.introductions.sought(session, message.isWanted);
    });
    const punching = new HolePunching({
      clock: this.lab.clock,
      utp: end.endpoint,
      reach: () => member.reach,
      get count() {
        return 1 + met.length;
      },
      rule: { allows: () => true },
      wants: () => options.wants ?? true,
      met: (connection) => met.push(connection),
    });
    Object.assign(member, { punching, session });
    punching.joined(upward);
    return member;
  }

  async go(ms = 6_000): Promise<void> {
    for (let i = 0; i < ms / 1000; i++) {
      this.introductions.arrange();
      await this.lab.clock.advanceAsync(1_000);
    }
  }

  close(...members: Member[]): void {
    for (const { punching, end } of members) {
      punching.close();
      end.endpoint.close();
    }
    this.introductions.close();
    this.introducer.endpoint.close();
  }
}

test("Introductions bring members behind cone NATs together, each pair once", async () => {
  const meeting = new Meeting();
  const members = Array.from({ length: 5 }, () => meeting.member("cone"));
  // A pair whose datagrams cross badly is introduced again, a few seconds later.
  await meeting.go(15_000);
  assertEquals(members.map(({ met }) => met.length), [4, 4, 4, 4, 4]);
  const said = members.map(({ said }) => said.length);
  await meeting.go();
  assertEquals(members.map((member) => member.said.length), said, "they say nothing more to each other");
  const [one, other] = members[0]!.met;
  assert(one !== undefined && other !== undefined && one.remote.host !== other.remote.host);
  meeting.close(...members);
});

test("HolePunching ends cleanly behind symmetric NATs, and asks no more after six failures", async () => {
  const meeting = new Meeting();
  const members = Array.from({ length: 9 }, () => meeting.member("symmetric"));
  for (let i = 0; i < 60; i++) {
    await meeting.go(1_000);
    for (const { punching } of members) punching.seek();
  }
  assertEquals(members.flatMap(({ met }) => met), []);
  for (const { said } of members) {
    const punches = said.filter((type) => type === "punch").length;
    assert(punches >= 6 && punches <= 8, `${punches} attempts`);
  }
  const sent = meeting.lab.network.sent;
  await meeting.go(5_000);
  assertEquals(meeting.lab.network.sent, sent, "no datagram leaves any more");
  meeting.close(...members);
});

test("HolePunching seeks nobody while others can connect to it", async () => {
  const meeting = new Meeting();
  const members = [meeting.member("cone"), meeting.member("cone")];
  for (const member of members) {
    member.reach = "open";
    member.punching.seek();
  }
  await meeting.go();
  assertEquals(members.map(({ said, met }) => [said, met]), [[[], []], [[], []]]);
  meeting.close(...members);
});

test("Introductions take an address from nobody but the host of the connection", async () => {
  const meeting = new Meeting();
  const victim = "203.0.113.77";
  const members = [meeting.member("none", { udpHost: victim }), meeting.member("cone")];
  await meeting.go();
  assert(members.every(({ said }) => !said.includes("punch")));
  meeting.close(...members);
});

test("Introductions do not begin between two of one host, nor at a member that nobody can connect to", async () => {
  const one = new Meeting();
  const members = [one.member("cone", { host: "198.51.100.1" }), one.member("cone", { host: "198.51.100.1" })];
  await one.go();
  assertEquals(members.map(({ said }) => said), [[], []]);
  one.close(...members);
  const other = new Meeting();
  other.reach = "closed";
  const pair = [other.member("cone"), other.member("cone")];
  await other.go();
  assertEquals(pair.map(({ said }) => said), [[], []]);
  other.close(...pair);
});

test("Introductions stop for ten minutes when no datagram ever comes, and drop a member without UDP", async () => {
  const deaf = new Meeting();
  Object.assign(deaf.lab.network, { carry: () => {} });
  const members = Array.from({ length: 8 }, () => deaf.member("cone"));
  await deaf.go(60_000);
  const probes = members.flatMap(({ said }) => said).length;
  assert(probes >= 8 && probes <= 16, `${probes}`);
  deaf.close(...members);

  const meeting = new Meeting();
  const mute = meeting.member("cone");
  Object.assign(mute.end.endpoint, { show: () => Promise.reject(new MillraceError("unavailable", "no UDP")) });
  const others = Array.from({ length: 3 }, () => meeting.member("cone"));
  await meeting.go(30_000);
  assertEquals(mute.said, ["probe", "probe"]);
  assertEquals(others.map(({ met }) => met.length), [2, 2, 2]);
  meeting.close(mute, ...others);
});

/** A member whose introducer says whatever the test wants. */
function introduced(mayReach = true) {
  const clock = new FakeClock();
  const shown: SocketAddress[] = [];
  const punched: SocketAddress[] = [];
  let asked = 0;
  const punching = new HolePunching({
    clock,
    utp: {
      show: (_token, to) => Promise.resolve(void shown.push(to)),
      punch: ({ address, signal }) => {
        punched.push(address);
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(abortError(signal))));
      },
    },
    reach: () => "closed",
    count: 1,
    rule: { allows: () => mayReach },
    wants: () => true,
    met: () => {},
  });
  const link = { remote: { host: INTRODUCER, port: 1 }, sendLive: () => asked++ };
  const session = { link, host: INTRODUCER, isReady: true, reach: "open" } as unknown as LivePeerSession;
  punching.joined(session);
  const punch = (address: SocketAddress) => {
    const rest = { token: newToken(), isInitiator: true, peerId: PEER_ID };
    punching.message(session, { type: "punch", ...rest, address });
  };
  const probe = () => punching.message(session, { type: "probe", token: newToken(), port: 9_999 });
  return { clock, punching, punch, probe, shown, punched, asked: () => asked };
}

test("HolePunching sends nothing to an address that no PROBE preceded, or that may not be dialled", async () => {
  const member = introduced();
  const victim = { host: "203.0.113.5", port: 53 };
  member.punch(victim);
  await member.clock.advanceAsync(1_000);
  assertEquals(member.punched, []);
  member.probe();
  await member.clock.advanceAsync(6_000);
  member.punch(victim);
  assertEquals(member.punched, [], "too late");
  const guarded = introduced(false);
  guarded.probe();
  guarded.punch(victim);
  await guarded.clock.advanceAsync(5_000);
  assertEquals([guarded.shown, guarded.punched], [[], []]);
});

test("HolePunching bounds what an introducer can have it send: four PROBEs at once, then one a second, a PUNCH for each", async () => {
  const member = introduced();
  for (let round = 0; round < 10; round++) {
    for (let i = 0; i < 50; i++) {
      member.probe();
      member.punch({ host: `203.0.113.${i}`, port: 9 });
    }
    await member.clock.advanceAsync(1_000);
  }
  assert(member.shown.length <= 3 * 14, `${member.shown.length}`);
  assert(member.shown.every(({ host }) => host === INTRODUCER), "tokens go to the introducer alone");
  assert(member.punched.length <= 14, `${member.punched.length}`);
  member.punching.close();
  await member.clock.advanceAsync(10);
  assertEquals(member.clock.pendingTimers, 0);
});
