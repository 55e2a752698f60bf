/** Options of the muxer of a streamed slot. */

/** Describes the slot. */
export interface StreamedSlotOptions {
  /** Decoding time of its first random access point, or an estimate of it. */
  readonly startDts90k: number;
  /** How long it lasts, where that is known. */
  readonly duration90k: number;
  /** No access unit of the main stream in the next slot is decoded earlier; null when that is not known. */
  readonly endDts90k: number | null;
  /** Presentation time at which the file ends, 90 kHz. Default: not known. */
  readonly fileEnd90k?: number;
  /** Size, packets; null: as many as it takes. */
  readonly packets: number | null;
  /** PES of the stream with the clock that this size has room for. Null: any number. */
  readonly clockPes: number | null;
  /** Packets that subtitles may take beyond their bytes in the file. Null: any number. */
  readonly subtitlePackets: number | null;
  /** The first run of the file may begin with audio long before its first picture. */
  readonly isFirst: boolean;
  /** The previous slot's clock may have run up to `startDts90k`. Default false. */
  readonly followsClock?: boolean;
}
