/** Transport streams that name their programmes. */
import { crc32Mpeg } from "../../src/bytes/ts/crc.ts";

/** Character codes of `text`. */
export const latin1 = (text: string) => Array.from(text, (c) => c.charCodeAt(0));

/** A service description table (EN 300 468, 5.2.3) with a service for each name. */
export function serviceTable(names: readonly (readonly number[])[], tableId = 0x42): number[] {
  const services = names.flatMap((name, i) => {
    const descriptor = [0x48, 5 + name.length + 3, 1, 5, ...latin1("Maker"), name.length, ...name, 0];
    return [0, i + 1, 0xfc, 0x80, descriptor.length, ...descriptor];
  });
  const length = 8 + services.length + 4;
  const section = [tableId, 0xf0 | (length >> 8), length & 255, 0, 1, 0xc1, 0, 0, 0, 1, 0xff, ...services];
  const crc = crc32Mpeg(Uint8Array.from(section));
  return [...section, crc >>> 24, (crc >>> 16) & 255, (crc >>> 8) & 255, crc & 255];
}

/** Packets of other PIDs with `section` among them, `stride` apart, after `before` bytes. */
export function serviceStream(section: readonly number[], stride = 188, before = 0): Uint8Array {
  const bytes = new Uint8Array(before + 12 * stride);
  for (let n = 0, at = before; n < 12; n++, at += stride) bytes.set([0x47, 0x01, n, 0x10, n], at);
  for (let part = 0; part * 183 < section.length; part++) {
    const payload = part === 0
      ? [0, ...section.slice(0, 183)]
      : section.slice(183 + (part - 1) * 184, 183 + part * 184);
    const at = before + (3 + 2 * part) * stride;
    bytes.fill(0xff, at, at + 188);
    bytes.set([0x47, part === 0 ? 0x40 : 0, 0x11, 0x10 | part, ...payload], at);
  }
  return bytes;
}
