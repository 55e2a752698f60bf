/** How media are described between DLNA devices (DLNA guidelines, part 1-1, 7.4.1.3). */

/** Streaming and background transfer, the connection may stall, DLNA 1.5: bits 24, 22, 21 and 20 of the primary flags. */
const FLAGS = "DLNA.ORG_FLAGS=01700000000000000000000000000000";

/**
 * The fourth field of `protocolInfo`, which is also the value of `contentFeatures.dlna.org`: whether ranges of bytes can be
 * asked for, and ranges of times, and that the bytes are not converted for the reader.
 */
export function contentFeatures(hasRanges: boolean, hasTimes = false): string {
  return `DLNA.ORG_OP=${Number(hasTimes)}${Number(hasRanges)};DLNA.ORG_CI=0;${FLAGS}`;
}

/** `protocolInfo` of MPEG TS of this MIME type, read over HTTP: with ranges of bytes and of times, or, as broadcasts, with neither. */
export function protocolInfo(type: string, hasRanges: boolean): string {
  return `http-get:*:${type}:${contentFeatures(hasRanges, hasRanges)}`;
}
