/** Names of codecs with their profiles, as `CODECS` of HLS and browsers have them (RFC 6381 and the codecs' bindings). */
import { parseVpcC } from "./vpx-config.ts";

const two = (value: number) => String(value).padStart(2, "0");
const hex2 = (value: number) => value.toString(16).toUpperCase().padStart(2, "0");

/** `avc1.PPCCLL` of an avcC (ISO/IEC 14496-15, annex E); null when it is cut off. */
export function avcString(config: Uint8Array): string | null {
  return config.length < 4 ? null : `avc1.${[...config.subarray(1, 4)].map(hex2).join("")}`;
}

/** `av01.P.LLT.DD` of an av1C (AV1 binding, 5); null when it is none. */
export function av1String(config: Uint8Array): string | null {
  if (config.length < 4 || config[0] !== 0x81) return null;
  const profile = config[1]! >> 5;
  const level = config[1]! & 31;
  const tier = config[2]! >> 7 === 1 ? "H" : "M";
  const isHigh = ((config[2]! >> 6) & 1) === 1;
  const isTwelve = ((config[2]! >> 5) & 1) === 1;
  return `av01.${profile}.${two(level)}${tier}.${isHigh ? isTwelve ? "12" : "10" : "08"}`;
}

/** `vp09.PP.LL.DD`, with colours where they are known, of the body of a vpcC; null when it is cut off. */
export function vpxString(name: "vp08" | "vp09", body: Uint8Array): string | null {
  const config = parseVpcC(body);
  if (config === null) return null;
  const { profile, level, bitDepth, chroma, primaries, transfer, matrix, isFullRange } = config;
  const short = [name, two(profile), two(level), two(bitDepth)];
  const isKnown = primaries !== 2 && transfer !== 2 && matrix !== 2;
  const colours = [two(chroma), two(primaries), two(transfer), two(matrix), isFullRange ? "01" : "00"];
  return [...short, ...isKnown ? colours : []].join(".");
}

/** `hvc1.…` of an hvcC (ISO/IEC 14496-15, annex E.3); null when it is cut off, or says nothing of the profile. */
export function hevcString(config: Uint8Array): string | null {
  if (config.length < 23 || (config[1]! & 31) === 0) return null;
  const space = ["", "A", "B", "C"][config[1]! >> 6]!;
  const tier = ((config[1]! >> 5) & 1) === 1 ? "H" : "L";
  let flags = 0;
  // The first flag is the lowest bit of the name.
  for (let bit = 0; bit < 32; bit++) if ((config[2 + (bit >> 3)]! >> (7 - (bit & 7))) & 1) flags += 2 ** bit;
  const constraints = [...config.subarray(6, 12)];
  while (constraints.length > 0 && constraints.at(-1) === 0) constraints.pop();
  return [
    `hvc1.${space}${config[1]! & 31}`,
    flags.toString(16).toUpperCase(),
    `${tier}${config[12]!}`,
    ...constraints.map((byte) => byte.toString(16).toUpperCase()),
  ].join(".");
}

/** `mp4a.40.N` of an AudioSpecificConfig, N being the object type that it names first; null when it is empty. */
export function aacString(config: Uint8Array): string | null {
  if (config.length < 2) return null;
  const type = config[0]! >> 3;
  return `mp4a.40.${type === 31 ? 32 + ((config[0]! & 7) << 3 | config[1]! >> 5) : type}`;
}
