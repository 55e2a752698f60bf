/** The numbers that program tables use. */

/** PID of the table that names the maps of all programs (ISO/IEC 13818-1, table 2-3). */
export const PAT_PID = 0;

/** stream_type: ISO/IEC 13818-1, table 2-34; from 0x80 on ATSC A/53 and BDAV. */
export const STREAM_TYPE = {
  mpeg1Video: 0x01,
  mpeg2Video: 0x02,
  mpeg1Audio: 0x03,
  mpeg2Audio: 0x04,
  /** Descriptors name its codec. */
  privateData: 0x06,
  /** AAC with ADTS headers. */
  aac: 0x0f,
  mpeg4Video: 0x10,
  /** AAC in LATM. */
  aacLatm: 0x11,
  h264: 0x1b,
  hevc: 0x24,
  pcm: 0x80,
  ac3: 0x81,
  dts: 0x82,
  trueHd: 0x83,
  /** E-AC-3 of discs; broadcasts use 0x87. */
  eac3Disc: 0x84,
  dtsHd: 0x85,
  /** On discs; broadcasts have SCTE-35 under this number. */
  dtsHdMaster: 0x86,
  eac3: 0x87,
  /** Subtitles of discs: pictures and text. */
  pictureSubtitles: 0x90,
  textSubtitles: 0x92,
  eac3Secondary: 0xa1,
} as const;

/** descriptor_tag: ISO/IEC 13818-1, table 2-45; from 0x40 on DVB (EN 300 468, table 12), from 0x80 on ATSC A/52 and others. */
export const DESCRIPTOR = {
  mpeg1Audio: 0x03,
  registration: 0x05,
  conditionalAccess: 0x09,
  language: 0x0a,
  mpeg4Audio: 0x1c,
  mpeg2Aac: 0x2b,
  stuffing: 0x42,
  service: 0x48,
  teletext: 0x56,
  subtitling: 0x59,
  ac3: 0x6a,
  eac3: 0x7a,
  dts: 0x7b,
  aac: 0x7c,
  extension: 0x7f,
  atscAc3: 0x81,
  /** DOVI_video_stream_descriptor (Dolby Vision streams within the MPEG-2 transport stream format, 3.2). */
  dolbyVision: 0xb0,
  atscEac3: 0xcc,
} as const;
