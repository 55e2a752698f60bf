/** The Dolby Vision configuration that MP4 (`dvcC`, `dvvC`) and Matroska (BlockAdditionMapping) carry in the same form. */
import type { DolbyVision } from "../model/types.ts";

/** Bytes of the record that have a meaning; the others are reserved. */
const CONFIG_BYTES = 5;

/** Reads DOVIDecoderConfigurationRecord; null when it is cut off. */
export function readDolbyVision(record: Uint8Array): DolbyVision | null {
  if (record.length < CONFIG_BYTES) return null;
  return { profile: record[2]! >> 1, compatibility: record[4]! >> 4, config: record.slice(0, CONFIG_BYTES) };
}
