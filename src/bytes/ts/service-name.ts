/** The name that a transport stream gives its programme: the service description table of DVB (ETSI EN 300 468, 5.2.3). */
import { DESCRIPTOR } from "./codes.ts";
import { hasPayload, PACKET_BYTES, payloadOf, pidOf, startsUnit, SYNC_BYTE } from "./packet.ts";
import { descriptorsOf, SECTION_CRC_BYTES, SectionAssembler } from "./psi.ts";
import { findPackets, PACKET_STRIDES } from "./sync.ts";

const SDT_PID = 0x11;
/** The table that describes the stream it is part of; others describe other streams. */
const SDT_ACTUAL = 0x42;
/** Bytes before the first service. */
const HEAD_BYTES = 11;

/** Matches the names that muxers write when nobody names the programme. */
const NAMELESS = /^service\s?\d*$/i;

/**
 * Name of the one programme of the stream that begins with `head`; null while no table is complete, when it describes
 * several, and for names that say nothing.
 */
export function serviceName(head: Uint8Array): string | null {
  const grid = findPackets(head, PACKET_STRIDES);
  if (grid === null) return null;
  const sections = new SectionAssembler();
  for (let at = grid.firstAt; at + PACKET_BYTES <= head.length; at += grid.strideBytes) {
    if (head[at] !== SYNC_BYTE || pidOf(head, at) !== SDT_PID || !hasPayload(head, at)) continue;
    for (const section of sections.push(payloadOf(head, at), startsUnit(head, at))) {
      if (section[0] !== SDT_ACTUAL) continue;
      const names = [...serviceNames(section)];
      return names.length === 1 && names[0] !== "" && !NAMELESS.test(names[0]!) ? names[0]! : null;
    }
  }
  return null;
}

function* serviceNames(section: Uint8Array): Generator<string> {
  const end = section.length - SECTION_CRC_BYTES;
  for (let at = HEAD_BYTES; at + 5 <= end;) {
    const length = ((section[at + 3]! & 0x0f) << 8) | section[at + 4]!;
    const loop = section.subarray(at + 5, Math.min(end, at + 5 + length));
    for (const { tag, body } of descriptorsOf(loop)) {
      if (tag !== DESCRIPTOR.service) continue;
      // Type, length and name of the provider, length and name of the service.
      const at = 2 + (body[1] ?? 0);
      yield dvbText(body.subarray(at + 1, at + 1 + (body[at] ?? 0)));
    }
    at += 5 + length;
  }
}

/** Encodings by the first byte of a text (annex A, table A.3). */
const CODE_TABLES: Readonly<Record<number, string>> = {
  0x01: "iso-8859-5",
  0x02: "iso-8859-6",
  0x03: "iso-8859-7",
  0x04: "iso-8859-8",
  0x05: "iso-8859-9",
  0x06: "iso-8859-10",
  0x07: "iso-8859-11",
  0x09: "iso-8859-13",
  0x0a: "iso-8859-14",
  0x0b: "iso-8859-15",
  0x11: "utf-16be",
  0x13: "gbk",
  0x14: "big5",
  0x15: "utf-8",
};

/** Text as annex A codes it. Without a code table it is ISO 6937, which few follow: UTF-8 where valid, else Latin-1. */
function dvbText(bytes: Uint8Array): string {
  const first = bytes[0] ?? 0x20;
  if (first >= 0x20) return cleaned(decoded(bytes, "utf-8") ?? decoded(bytes, "windows-1252") ?? "");
  if (first === 0x10) return cleaned(decoded(bytes.subarray(3), `iso-8859-${bytes[2] ?? 1}`) ?? "");
  return cleaned(decoded(bytes.subarray(1), CODE_TABLES[first] ?? "windows-1252") ?? "");
}

function decoded(bytes: Uint8Array, encoding: string): string | null {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** `text` without control characters, those for emphasis (annex A.1) included. */
function cleaned(text: string): string {
  // deno-lint-ignore no-control-regex
  return text.replace(/[\x00-\x1f\x7f-\x9f\ue080-\ue09f]/g, "").trim();
}
