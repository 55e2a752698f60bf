/**
 * Parameter sets that stand in the sample entry are left out of the pictures: `avc1` and `hvc1` promise that (ISO/IEC 14496-15),
 * and Apple's players want it.
 */
import { concatBytes, equalBytes } from "../../../bytes/hex.ts";
import { type NalCodec, typeOf } from "../../codec/parameter-sets.ts";

/** NAL units of a picture that are looked at: parameter sets come before its slices, and few others do. */
const MAX_UNITS = 64;

/** How the two codecs differ. */
const FORMS = {
  // `lengths`: where the size of lengths stands in the codec data.
  h264: { lengths: 4, isSet: (type: number) => type === 7 || type === 8, isSlice: (type: number) => type <= 5 },
  hevc: { lengths: 21, isSet: (type: number) => type >= 32 && type <= 34, isSlice: (type: number) => type < 32 },
} as const;

/** The NAL units in the undamaged part of an avcC or hvcC. */
function unitsIn(codec: NalCodec, config: Uint8Array): Uint8Array[] {
  const units: Uint8Array[] = [];
  let at = 0;
  const byte = () => config[at++] ?? 0;
  const take = (count: number) => {
    for (let i = 0; i < count && at < config.length; i++) {
      const length = byte() * 256 + byte();
      units.push(config.subarray(at, at += length));
    }
  };
  if (codec === "h264") {
    at = 5;
    take(byte() & 31);
    take(byte());
  } else {
    at = 22;
    for (let arrays = byte(); arrays > 0 && at < config.length; arrays--) {
      at++;
      take(byte() * 256 + byte());
    }
  }
  return units;
}

/** What makes pictures without the sets in `config`. Sets that differ stay: a film has one sample entry. */
export function toldSetsTrimmer(codec: NalCodec, config: Uint8Array): (picture: Uint8Array) => Uint8Array {
  const { lengths, isSet, isSlice } = FORMS[codec];
  const told = unitsIn(codec, config).filter((unit) => unit.length > 0 && isSet(typeOf(codec, unit)));
  const lengthBytes = (config[lengths]! & 3) + 1;
  return (picture) => {
    const kept: Uint8Array[] = [];
    let from = 0;
    for (let at = 0, n = 0; n < MAX_UNITS && at + lengthBytes < picture.length; n++) {
      let end = 0;
      for (let i = 0; i < lengthBytes; i++) end = end * 256 + picture[at + i]!;
      end += at + lengthBytes;
      const unit = picture.subarray(at + lengthBytes, end);
      if (unit.length === 0 || end > picture.length || isSlice(typeOf(codec, unit))) break;
      if (told.some((set) => equalBytes(set, unit))) {
        if (at > from) kept.push(picture.subarray(from, at));
        from = end;
      }
      at = end;
    }
    // An access unit of parameter sets alone stays what it is.
    if (from === 0 || from === picture.length) return picture;
    const rest = picture.subarray(from);
    return kept.length === 0 ? rest : concatBytes([...kept, rest]);
  };
}
