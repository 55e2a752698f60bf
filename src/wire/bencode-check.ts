/** Bencoded payloads of extended messages (BEP 10), within limits that every honest peer keeps. */
import { type BencodeDictionary, decodeBencode, isDictionary, scanBencode } from "../bytes/bencode.ts";
import { MillraceError } from "../errors.ts";

/** The deepest nesting of any message we know is 3 (handshake, `m`); none has hundreds of values. */
const LIMITS = { maxDepth: 16, maxValues: 4096 } as const;

/** The dictionary at the start of `bytes`, and where it ends. Throws `protocol_violation` when there is none. */
export function decodeDictionary(bytes: Uint8Array): { dictionary: BencodeDictionary; end: number } {
  const { end } = scanBencode(bytes, LIMITS);
  const dictionary = decodeBencode(bytes.subarray(0, end), LIMITS);
  if (!isDictionary(dictionary)) throw new MillraceError("protocol_violation", "expected a bencoded dictionary");
  return { dictionary, end };
}
