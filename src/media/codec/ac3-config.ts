/** Codec data of AC-3 and E-AC-3 in MP4, made from a frame (ETSI TS 102 366, annex F). */
import { ac3Frame, isEac3 } from "../../bytes/ac3-frames.ts";
import { BitReader, BitWriter } from "./bits.ts";

/** Most bytes of a body: eight substreams that others depend on, each of 32 bits. */
const MAX_BYTES = 40;
/** Independent and dependent substreams that the fields count. */
const MAX_INDEPENDENT = 8;
const MAX_DEPENDENT = 15;
/** `strmtyp` of a substream that adds channels to the one before. */
const DEPENDENT = 1;
const SYNC = 0x0b77;

/** Body of dac3 for the stream of `frame`; null if it is no AC-3. */
export function ac3Config(frame: Uint8Array): Uint8Array | null {
  const header = ac3Frame(frame, 0);
  if (header === null || isEac3(header.kind)) return null;
  const fields = new BitReader(frame.subarray(4));
  const fscod = fields.read(2);
  const rateCode = fields.read(6) >> 1;
  const [bsid, bsmod, acmod] = [fields.read(5), fields.read(3), fields.read(3)];
  const out = new BitWriter(MAX_BYTES);
  out.write(fscod, 2);
  out.write(bsid, 5);
  out.write(bsmod, 3);
  out.write(acmod, 3);
  out.write(header.channels > FRONT_AND_BACK[acmod]! ? 1 : 0, 1);
  out.write(rateCode, 5);
  out.write(0, 5);
  return out.bytes();
}

/** Channels by `acmod`, without the low-frequency one. */
const FRONT_AND_BACK = [2, 1, 2, 3, 3, 4, 4, 5];

/** What dec3 says of an independent substream. */
interface Independent {
  readonly fscod: number;
  readonly bsid: number;
  readonly acmod: number;
  readonly lfeon: number;
  dependent: number;
  /** Places of the channels that the dependent ones add, a bit each. */
  places: number;
}

/** Body of dec3 for the stream of `unit`, all substreams of one time; null if it is no E-AC-3. */
export function eac3Config(unit: Uint8Array): Uint8Array | null {
  const header = ac3Frame(unit, 0);
  if (header === null || !isEac3(header.kind)) return null;
  const all: Independent[] = [];
  for (let at = 0; at + 8 <= unit.length;) {
    const fields = new BitReader(unit.subarray(at));
    if (fields.read(16) !== SYNC) break;
    const type = fields.read(2);
    fields.read(3);
    at += (fields.read(11) + 1) * 2;
    const fscod = fields.read(2);
    fields.read(2);
    const [acmod, lfeon, bsid] = [fields.read(3), fields.read(1), fields.read(5)];
    const last = all.at(-1);
    if (type === DEPENDENT && last !== undefined) {
      last.dependent = Math.min(MAX_DEPENDENT, last.dependent + 1);
      last.places |= placesIn(fields, acmod);
    } else if (all.length < MAX_INDEPENDENT) {
      all.push({ fscod, bsid, acmod, lfeon, dependent: 0, places: 0 });
    }
  }
  const out = new BitWriter(MAX_BYTES);
  out.write(Math.min(Math.round((header.bitRate ?? 0) / 1000), 0x1fff), 13);
  out.write(all.length - 1, 3);
  for (const { fscod, bsid, acmod, lfeon, dependent, places } of all) {
    out.write(fscod, 2);
    out.write(bsid, 5);
    // Which service it is (bsmod) stands behind fields of any length; 0 is a main service.
    out.write(0, 2 + 3);
    out.write(acmod, 3);
    out.write(lfeon, 1);
    out.write(0, 3);
    out.write(dependent, 4);
    out.write(dependent > 0 ? places : 0, dependent > 0 ? 9 : 1);
  }
  return out.bytes();
}

/** The channels that a dependent substream names (`chanmap`, E.1.3.1.8), as dec3 has them; `fields` stands after its `bsid`. */
function placesIn(fields: BitReader, acmod: number): number {
  // Dialogue level, and a flag with a level; twice where there are two programmes.
  for (let i = 0; i < (acmod === 0 ? 2 : 1); i++) {
    fields.read(5);
    if (fields.read(1) === 1) fields.read(8);
  }
  if (fields.read(1) === 0) return 0;
  const map = fields.read(16);
  // The pairs from Lc/Rc on are the same in both; the second low-frequency channel comes last.
  return (((map >> 3) & 0xff) << 1) | ((map >> 1) & 1);
}
