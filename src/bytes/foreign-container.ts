/** Recognises containers that we have no reader for and ffmpeg has, by their first bytes. */

/** A container that only ffmpeg reads. */
export interface ForeignContainer {
  /** As users call it. */
  readonly name: string;
  /** ffmpeg's demuxer. */
  readonly demuxer: string;
  /** MIME type. */
  readonly mime: string;
  /** The container usually holds sound alone. */
  readonly isSound: boolean;
  /** MIME types by the extensions that promise this container, lower case, without the dot. */
  readonly extensions: Readonly<Record<string, string>>;
}

interface Magic extends ForeignContainer {
  /** First bytes of the file, one character per byte; `?` stands for any. */
  readonly begins: string;
}

/** Describes a container; by default the demuxer's name is the only extension. */
function container(
  isSound: boolean,
  name: string,
  demuxer: string,
  mime: string,
  begins: string,
  extensions: Readonly<Record<string, string>> = { [demuxer]: mime },
): Magic {
  return { name, demuxer, mime, begins, isSound, extensions };
}
const film = container.bind(null, false);
const sound = container.bind(null, true);

/** All containers that are recognised. Their demuxers open nothing besides their input. */
const KNOWN: readonly Magic[] = [
  film("AVI", "avi", "video/x-msvideo", "RIFF????AVI ", { avi: "video/x-msvideo", divx: "video/x-msvideo" }),
  film("FLV", "flv", "video/x-flv", "FLV\x01"),
  // The GUID of the header object.
  film("ASF", "asf", "video/x-ms-asf", "\x30\x26\xb2\x75\x8e\x66\xcf\x11", {
    asf: "video/x-ms-asf",
    wmv: "video/x-ms-wmv",
    wma: "audio/x-ms-wma",
  }),
  // Pack header (ISO/IEC 13818-1, 2.5.3.3).
  film("MPEG PS", "mpeg", "video/mpeg", "\0\0\x01\xba", {
    mpg: "video/mpeg",
    mpeg: "video/mpeg",
    vob: "video/mpeg",
    m2p: "video/mpeg",
  }),
  sound("Monkey's Audio", "ape", "audio/x-ape", "MAC "),
  sound("WavPack", "wv", "audio/x-wavpack", "wvpk"),
  sound("TTA", "tta", "audio/x-tta", "TTA1"),
  sound("TAK", "tak", "audio/x-tak", "tBaK"),
  sound("Musepack", "mpc8", "audio/x-musepack", "MPCK", { mpc: "audio/x-musepack" }),
  sound("Musepack", "mpc", "audio/x-musepack", "MP+"),
  sound("AIFF", "aiff", "audio/aiff", "FORM????AIF", { aif: "audio/aiff", aiff: "audio/aiff", aifc: "audio/aiff" }),
  sound("CAF", "caf", "audio/x-caf", "caff\0\x01"),
  sound("AU", "au", "audio/basic", ".snd"),
  sound("Wave64", "w64", "audio/x-w64", "riff\x2e\x91\xcf\x11"),
  sound("AMR", "amr", "audio/amr", "#!AMR"),
  sound("DSF", "dsf", "audio/x-dsf", "DSD "),
  sound("DTS", "dts", "audio/vnd.dts", "\x7f\xfe\x80\x01"),
];

/** All containers that only ffmpeg reads. */
export const FOREIGN_CONTAINERS: readonly ForeignContainer[] = KNOWN;

/** Containers that our own readers know, for codecs in them that they don't. */
const OGG: ForeignContainer = { name: "Ogg", demuxer: "ogg", mime: "audio/ogg", isSound: true, extensions: {} };
const WAV: ForeignContainer = { name: "WAV", demuxer: "wav", mime: "audio/wav", isSound: true, extensions: {} };

/** The container that begins with `head` (16 bytes are enough); null when it is not a known one. */
export function sniffForeign(head: Uint8Array): ForeignContainer | null {
  const fits = ({ begins }: Magic) =>
    begins.length <= head.length && [...begins].every((c, i) => c === "?" || c.charCodeAt(0) === head[i]);
  return KNOWN.find(fits) ?? null;
}

/** ffmpeg's reader of a container that we read, too, for codecs that we don't know in it. */
export function foreignOf(container: "ogg" | "wav"): ForeignContainer {
  return container === "ogg" ? OGG : WAV;
}
