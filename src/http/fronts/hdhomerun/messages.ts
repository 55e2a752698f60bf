/** Messages by which clients find a tuner (libhdhomerun, `hdhomerun_discover.c`). */
import { numbersIn, numberValue, readPacket, writePacket } from "./packets.ts";

const DISCOVER = 2;
const FOUND = 3;
/** Tags of values. */
const TAG = { type: 1, id: 2, tuners: 0x10, lineupUrl: 0x27, baseUrl: 0x2a, types: 0x2d } as const;
const TUNER_TYPE = 1;
const ANY = 0xffff_ffff;

/** Whether the datagram looks for a tuner of this id, or for any. */
export function looksForTuner(datagram: Uint8Array, id: number): boolean {
  const packet = readPacket(datagram);
  if (packet?.type !== DISCOVER) return false;
  let [isType, isId] = [true, true];
  for (const [tag, value] of packet.values) {
    const numbers = numbersIn(value);
    if (tag === TAG.type || tag === TAG.types) isType = numbers.includes(TUNER_TYPE) || numbers.includes(ANY);
    else if (tag === TAG.id) isId = numbers.includes(id) || numbers.includes(ANY);
  }
  return isType && isId;
}

/** The answer to a search. */
export function tunerFound(facts: {
  readonly id: number;
  readonly tuners: number;
  /** `http://192.168.1.10:6878`, less than 1000 characters. */
  readonly baseUrl: string;
}): Uint8Array {
  const text = (value: string) => new TextEncoder().encode(value);
  return writePacket({
    type: FOUND,
    values: [
      [TAG.type, numberValue(TUNER_TYPE)],
      [TAG.id, numberValue(facts.id)],
      [TAG.tuners, new Uint8Array([facts.tuners])],
      [TAG.baseUrl, text(facts.baseUrl)],
      [TAG.lineupUrl, text(`${facts.baseUrl}/lineup.json`)],
    ],
  });
}
