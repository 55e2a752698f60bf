/**
 * Transport streams as encoders send them: a real clip that goes on for a while, with one habit or fault put in. Each
 * packet has the time at which it is sent.
 */
import { FIELD_PCR, FIELD_RANDOM_ACCESS, fieldBytes, hasPayload, isRandomAccess } from "../../src/bytes/ts/packet.ts";
import { PACKET_BYTES, payloadOf, pcrAt, pidOf, readPesHeader, startsUnit } from "../../src/bytes/ts/packet.ts";
import { psiSection, sectionPackets, signSection } from "../../src/bytes/ts/psi.ts";
import { readPcr, readStamp, stepBetween, writePcr, writeStamp } from "../../src/bytes/ts/stamps.ts";
import { TsLooper } from "../../src/inputs/ts-looper.ts";
import { clip } from "./fixtures.ts";

/** PIDs of the clips. */
export const MAP_PID = 0x1000;
export const VIDEO_PID = 0x100;
export const SOUND_PID = 0x101;

/** One packet. */
export interface SentPacket {
  readonly atMs: number;
  readonly bytes: Uint8Array;
}

/** Changes a stream. */
export type Habit = (packets: readonly SentPacket[]) => SentPacket[];

/** `durationMs` of a clip (its name, or its bytes) over and over, sent in real time. */
export function encoded(name: string | Uint8Array, durationMs: number): SentPacket[] {
  const packets = typeof name === "string" ? clip(name) : name;
  const looper = new TsLooper();
  const out: SentPacket[] = [];
  let first: number | null = null;
  let atMs = 0;
  while (atMs < durationMs) {
    const pass = [looper.push(packets).slice(), looper.endPass()];
    for (const bytes of pass) {
      for (let at = 0; at < bytes.length; at += PACKET_BYTES) {
        const place = pcrAt(bytes, at);
        if (place >= 0) atMs = Math.max(atMs, stepBetween(first ??= readPcr(bytes, place), readPcr(bytes, place)) / 90);
        out.push({ atMs, bytes: bytes.slice(at, at + PACKET_BYTES) });
      }
    }
  }
  return out.filter((packet) => packet.atMs < durationMs);
}

/** The bytes of a stream. */
export function bytesOf(packets: readonly SentPacket[]): Uint8Array {
  const out = new Uint8Array(packets.length * PACKET_BYTES);
  for (const [i, { bytes }] of packets.entries()) out.set(bytes, i * PACKET_BYTES);
  return out;
}

/** One habit after the other. */
export function all(...habits: Habit[]): Habit {
  return (packets) => habits.reduce((now, habit) => habit(now), [...packets]);
}

/** Nothing of `pid` comes in `[fromMs, toMs)`, except for its clock. */
export function without(pid: number, fromMs = 0, toMs = Infinity): Habit {
  return (packets) =>
    packets.flatMap((packet) => {
      const { bytes, atMs } = packet;
      if (pidOf(bytes, 0) !== pid || atMs < fromMs || atMs >= toMs) return [packet];
      return pcrAt(bytes, 0) < 0 ? [] : [{ atMs, bytes: clockAlone(bytes) }];
    });
}

function clockAlone(bytes: Uint8Array): Uint8Array {
  const out = new Uint8Array(PACKET_BYTES).fill(0xff);
  out.set(bytes.subarray(0, 12));
  out[1] = out[1]! & ~0x40;
  out[3] = (out[3]! & 0x0f) | 0x20;
  out[4] = PACKET_BYTES - 5;
  out[5] = FIELD_PCR;
  return out;
}

/** Nothing at all comes in `[fromMs, toMs)`. */
export function hole(fromMs: number, toMs: number): Habit {
  return (packets) => packets.filter(({ atMs }) => atMs < fromMs || atMs >= toMs);
}

/** Each packet is lost for which `isLost` says so. */
export function losing(isLost: (packet: SentPacket, index: number) => boolean): Habit {
  return (packets) => packets.filter((packet, i) => !isLost(packet, i));
}

/** Clears every PCR nearer to the last one kept than `everyMs`. */
export function clockEvery(everyMs: number): Habit {
  return (packets) => {
    let last: number | null = null;
    return packets.map((packet) => {
      const place = pcrAt(packet.bytes, 0);
      if (place < 0) return packet;
      const pcr = readPcr(packet.bytes, place);
      if (last === null || stepBetween(last, pcr) >= everyMs * 90) {
        last = pcr;
        return packet;
      }
      return edited(packet, (bytes) => {
        bytes[5] = bytes[5]! & ~FIELD_PCR;
        bytes.fill(0xff, 6, 12);
      });
    });
  };
}

/** The clock of the stream, and all its times, are `byMs` later from `fromMs` on. */
export function clockSet(fromMs: number, byMs: number): Habit {
  return (packets) =>
    packets.map((packet) =>
      packet.atMs < fromMs ? packet : edited(packet, (bytes) => {
        const place = pcrAt(bytes, 0);
        if (place >= 0) writePcr(bytes, place, readPcr(bytes, place) + byMs * 90);
        if (!startsUnit(bytes, 0) || !hasPayload(bytes, 0) || readPesHeader(payloadOf(bytes, 0)) === null) return;
        const at = 4 + fieldBytes(bytes, 0);
        const flags = bytes[at + 7]! >> 6;
        if (flags >= 2) writeStamp(bytes, at + 9, flags, readStamp(bytes, at + 9) + byMs * 90);
        if (flags === 3) writeStamp(bytes, at + 14, 1, readStamp(bytes, at + 14) + byMs * 90);
      })
    );
}

/** Sets the clock so that the stream passes its end, 2^33, at `atMs`. */
export function wrapsAt(atMs: number): Habit {
  return (packets) => {
    const first = packets.find(({ bytes }) => pcrAt(bytes, 0) >= 0)!;
    return clockSet(0, (2 ** 33 - readPcr(first.bytes, 6)) / 90 - atMs)(packets);
  };
}

/** No packet is marked as a random access point. */
export const unflagged: Habit = (packets) =>
  packets.map((packet) =>
    isRandomAccess(packet.bytes, 0)
      ? edited(packet, (bytes) => void (bytes[5] = bytes[5]! & ~FIELD_RANDOM_ACCESS))
      : packet
  );

/** Of the video, only units for which `isKept` says so, by their time and whether a decoder can start there. */
export function pictures(isKept: (atMs: number, isKey: boolean) => boolean): Habit {
  return (packets) => {
    let keeps = false;
    return packets.flatMap((packet) => {
      const { bytes, atMs } = packet;
      if (pidOf(bytes, 0) !== VIDEO_PID) return [packet];
      if (startsUnit(bytes, 0)) keeps = isKept(atMs, isRandomAccess(bytes, 0));
      return keeps ? [packet] : [];
    });
  };
}

/** The clock is on a PID of its own, in packets without payload. */
export function clockOn(pid: number): Habit {
  return (packets) =>
    packets.flatMap((packet) => {
      const place = pcrAt(packet.bytes, 0);
      if (place < 0) return [packet];
      const clock = clockAlone(packet.bytes);
      clock[1] = pid >> 8;
      clock[2] = pid & 0xff;
      const rest = edited(packet, (bytes) => {
        bytes[5] = bytes[5]! & ~FIELD_PCR;
        bytes.fill(0xff, 6, 12);
      });
      return [{ atMs: packet.atMs, bytes: clock }, rest];
    });
}

/** The sender pauses at `fromMs`, and its clock with it. */
export function paused(fromMs: number, forMs: number): Habit {
  return (packets) => packets.map(({ atMs, bytes }) => ({ atMs: atMs < fromMs ? atMs : atMs + forMs, bytes }));
}

/** The encoder begins again at `atMs`: times and counters start over. */
export function restarted(atMs: number): Habit {
  return (packets) => [
    ...packets.filter((packet) => packet.atMs < atMs),
    ...packets.map(({ atMs: own, bytes }) => ({ atMs: atMs + own, bytes })),
  ];
}

/** Each packet comes twice for which `isTwice` says so. */
export function repeated(isTwice: (index: number) => boolean): Habit {
  return (packets) => packets.flatMap((packet, i) => isTwice(i) ? [packet, packet] : [packet]);
}

/** A packet of `pid` without anything known in it. */
export function unknownPacket(pid: number): Uint8Array {
  const bytes = new Uint8Array(PACKET_BYTES).fill(0xff);
  bytes.set([0x47, pid >> 8, pid & 0xff, 0x10]);
  return bytes;
}

/** A packet with a whole PES of private data, as teletext has it. */
export function privatePacket(pid: number, pts90k: number, counter: number): Uint8Array {
  const bytes = unknownPacket(pid);
  bytes[1] = bytes[1]! | 0x40;
  bytes[3] = 0x10 | (counter & 15);
  bytes.set([0, 0, 1, 0xbd, 0, PACKET_BYTES - 10, 0x80, 0x80, 5], 4);
  writeStamp(bytes, 13, 2, pts90k);
  return bytes;
}

/** Still pictures with a clock that comes with them alone: a key frame every `everyMs`. */
export function slides(everyMs: number): Habit {
  return (packets) => {
    let dueMs = 0;
    return pictures((atMs, isKey) => {
      if (!isKey || atMs < dueMs) return false;
      dueMs = atMs + everyMs - 500;
      return true;
    })(packets);
  };
}

/** A stream of a map: type, PID and descriptors. */
export type Named = readonly [type: number, pid: number, ...descriptors: number[]];

/** A map section. `version` is 0 and it holds now unless stated otherwise. */
export function mapSection(
  streams: readonly Named[],
  options: { number?: number; pcrPid?: number; version?: number; isNext?: boolean } = {},
): Uint8Array {
  const { number = 1, pcrPid = VIDEO_PID, version = 0, isNext = false } = options;
  const loops = streams.flatMap(([type, pid, ...descriptors]) => [
    type,
    0xe0 | (pid >> 8),
    pid & 0xff,
    0xf0,
    descriptors.length,
    ...descriptors,
  ]);
  const section = psiSection(2, number, [0xe0 | (pcrPid >> 8), pcrPid & 0xff, 0xf0, 0, ...loops]);
  section[5] = 0xc0 | (version << 1) | (isNext ? 0 : 1);
  signSection(section);
  return section;
}

/** In place of each map come `sections`, one after the other, from `fromMs` on. */
export function maps(sections: readonly Uint8Array[], fromMs = 0): Habit {
  return (packets) => {
    let counter = 0;
    return packets.flatMap((packet) => {
      if (pidOf(packet.bytes, 0) !== MAP_PID || packet.atMs < fromMs) return [packet];
      return sections.flatMap((section) => {
        const made = sectionPackets(section, MAP_PID);
        return Array.from({ length: made.length / PACKET_BYTES }, (_, i) => {
          const bytes = made.slice(i * PACKET_BYTES, (i + 1) * PACKET_BYTES);
          bytes[3] = 0x10 | (counter++ & 15);
          return { atMs: packet.atMs, bytes };
        });
      });
    });
  };
}

/** In place of each PAT comes one that names `programs`: number and PID of the map. */
export function programs(...named: readonly (readonly [number: number, mapPid: number])[]): Habit {
  const body = named.flatMap(([number, pid]) => [number >> 8, number & 0xff, 0xe0 | (pid >> 8), pid & 0xff]);
  const bytes = sectionPackets(psiSection(0, 1, body), 0);
  return (packets) =>
    packets.map((packet) =>
      pidOf(packet.bytes, 0) !== 0 ? packet : edited({ atMs: packet.atMs, bytes }, (copy) => {
        copy[3] = 0x10 | (packet.bytes[3]! & 15);
      })
    );
}

/** Tables come once per `everyMs` only. */
export function tablesEvery(everyMs: number): Habit {
  return (packets) => {
    const last = new Map<number, number>();
    return packets.filter(({ bytes, atMs }) => {
      const pid = pidOf(bytes, 0);
      if (pid !== 0 && pid !== MAP_PID) return true;
      if (atMs - (last.get(pid) ?? -Infinity) < everyMs) return false;
      last.set(pid, atMs);
      return true;
    });
  };
}

/** The stream of `pid` comes on another one. */
export function moved(pid: number, to: number, fromMs = 0): Habit {
  return (packets) =>
    packets.map((packet) =>
      pidOf(packet.bytes, 0) !== pid || packet.atMs < fromMs ? packet : edited(packet, (bytes) => {
        bytes[1] = (bytes[1]! & 0xe0) | (to >> 8);
        bytes[2] = to & 0xff;
      })
    );
}

/** `edit` on a copy of each packet of `pid`, or of all. */
export function each(pid: number | null, edit: (bytes: Uint8Array, atMs: number) => void): Habit {
  return (packets) =>
    packets.map((packet) =>
      pid === null || pidOf(packet.bytes, 0) === pid ? edited(packet, (bytes) => edit(bytes, packet.atMs)) : packet
    );
}

/** `make(atMs, n)` is put in once per `everyMs`: packets of another PID. */
export function inserted(everyMs: number, make: (atMs: number, n: number) => Uint8Array): Habit {
  return (packets) => {
    let dueMs = 0;
    let n = 0;
    return packets.flatMap((packet) => {
      if (packet.atMs < dueMs) return [packet];
      dueMs += everyMs;
      return [{ atMs: packet.atMs, bytes: make(packet.atMs, n++) }, packet];
    });
  };
}

/** `before` until `atMs`, then `after` from its beginning, with times that go on. */
export function followedBy(before: readonly SentPacket[], atMs: number, after: readonly SentPacket[]): SentPacket[] {
  return [
    ...before.filter((packet) => packet.atMs < atMs),
    ...clockSet(0, atMs)(after).map((packet) => ({ ...packet, atMs: packet.atMs + atMs })),
  ];
}

function edited(packet: SentPacket, edit: (bytes: Uint8Array) => void): SentPacket {
  const bytes = packet.bytes.slice();
  edit(bytes);
  return { atMs: packet.atMs, bytes };
}
