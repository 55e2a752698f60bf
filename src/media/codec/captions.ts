/** Captions that broadcasts carry in their pictures: CEA-608, and CEA-708 around it (ATSC A/53 part 4, 6.2.3). */

/** user_data of ATSC with cc_data, as SEI of H.264 and HEVC and user data of MPEG-2 have it: `GA94`, type 3. */
const MARK = [0x47, 0x41, 0x39, 0x34, 3];
/** Bits of a construct: it is valid, its type. */
const VALID = 4;
const TYPE = 3;
/** Types: both fields of CEA-608, the rest and the beginning of a packet of CEA-708. */
const SECOND_FIELD = 1;
const PACKET_START = 3;
/** Service of CEA-708 whose number stands in the next byte. */
const EXTENDED = 7;

/** Looks for captions in the pictures of a stream. */
export class CaptionFinder {
  readonly #names = new Set<string>();

  /** The captions so far, by their names in HLS, those of CEA-608 first. */
  get found(): readonly string[] {
    return [...this.#names].sort();
  }

  /** Looks at the bytes of a picture. */
  push(picture: Uint8Array): void {
    for (let at = picture.indexOf(MARK[0]!); at >= 0; at = picture.indexOf(MARK[0]!, at + 1)) {
      if (MARK.every((byte, i) => picture[at + i] === byte)) this.#constructs(picture, at + MARK.length);
    }
  }

  #constructs(picture: Uint8Array, at: number): void {
    const flags = picture[at] ?? 0;
    // process_cc_data_flag
    if ((flags & 0x40) === 0) return;
    const end = Math.min(at + 2 + 3 * (flags & 31), picture.length);
    for (let one = at + 2; one + 3 <= end; one += 3) {
      const head = picture[one]!;
      if ((head & VALID) === 0 || (head & 0xf8) !== 0xf8) continue;
      const type = head & TYPE;
      // The first two channels are in the first field, the others in the second; nearly all use one of each.
      if (type <= SECOND_FIELD) {
        const isEmpty = (picture[one + 1]! & 0x7f) === 0 && (picture[one + 2]! & 0x7f) === 0;
        if (type === 0) this.#names.add("CC1");
        else if (!isEmpty) this.#names.add("CC3");
      } else if (type === PACKET_START) {
        // After the packet's header comes that of its first service.
        const service = picture[one + 2]! >> 5;
        if (service > 0 && service < EXTENDED) this.#names.add(`SERVICE${service}`);
      }
    }
  }
}
