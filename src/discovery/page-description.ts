/**
 * Descriptions of WebRTC connections (SDP, RFC 8866) that strangers wrote, and ours before strangers get them. Only the lines of a
 * data channel are passed on, and only candidates whose addresses may be asked, or sent.
 */
import type { SocketAddress } from "../ports.ts";
import { canonicalHost } from "./addresses.ts";

/** Longest description, characters. Browsers write 500 to 3000. */
export const MAX_DESCRIPTION_CHARS = 16 * 1024;

/** Candidates of one description that are used: browsers with several cards and two servers name up to ten. */
const MAX_CANDIDATES = 16;

/** Lines that a data channel needs, besides candidates. */
const NEEDED =
  /^(?:v=0|o=- \d{1,20} \d{1,20} IN IP[46] [\d.:a-f]+|s=-|t=0 0|a=group:BUNDLE \S{1,32}|m=application \d{1,5} \S{1,32} \S{1,32}|a=(?:ice-ufrag|ice-pwd|mid|max-message-size|sctp-port):\S{1,256}|a=fingerprint:\S{1,16} [\dA-F:]{1,200}|a=setup:(?:actpass|active|passive))$/i;

const CANDIDATE = /^(a=candidate:\S{1,32} [12] udp \d{1,10}) (\S{1,64}) (\d{1,5}) typ (host|srflx|prflx)(?: |$)/i;

/**
 * `sdp` with nothing but the lines of one data channel and the candidates for which `isGood` is true. Null when it describes
 * none. Names are left out: those of browsers' own hosts are known in their own network alone.
 */
export function cleanDescription(sdp: string, isGood: (address: SocketAddress) => boolean): string | null {
  if (sdp.length > MAX_DESCRIPTION_CHARS) return null;
  const kept: string[] = [];
  let candidates = 0;
  for (const line of sdp.split(/\r?\n/)) {
    const candidate = CANDIDATE.exec(line);
    if (candidate !== null) {
      const [, start, name, digits, kind] = candidate;
      const host = canonicalHost(name!);
      const port = Number(digits);
      if (host === null || port < 1 || port > 65535 || candidates === MAX_CANDIDATES || !isGood({ host, port })) {
        continue;
      }
      candidates++;
      // What follows the kind may name another address.
      kept.push(`${start} ${host} ${port} typ ${kind}`);
    } else if (NEEDED.test(line)) {
      kept.push(line);
      // Its own address would be that of a candidate.
      if (/^m=/.test(line)) kept.push("c=IN IP4 0.0.0.0");
    }
  }
  const has = (start: string) => kept.some((line) => line.startsWith(start));
  const isWhole = ["v=", "m=", "a=ice-ufrag:", "a=ice-pwd:", "a=fingerprint:", "a=setup:"].every(has);
  const isOne = kept.filter((line) => line.startsWith("m=")).length === 1;
  return isWhole && isOne ? `${kept.join("\r\n")}\r\n` : null;
}
