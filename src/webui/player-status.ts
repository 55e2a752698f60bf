/** The text below the picture. */
import type { Stat } from "./engine.ts";
import { bytesText, durationText, failureText, reasonText, sessionCodeOf, text } from "./texts.ts";

/** What the page knows of the engine: it responds, it does not, it does not know the session. */
export type Contact = "ok" | "gone" | "over";

/** Everything that may be wrong. */
export interface Circumstances {
  readonly stat: Stat | null;
  readonly contact: Contact;
  /** What a start said. */
  readonly trouble: string;
  /** Codecs that the browser lacks for the picture, and for the sound; empty when it has them. */
  readonly undecodable: string;
  readonly mute: string;
  /** The browser's decoder failed at a place that was sought. */
  readonly unsearchable: boolean;
}

/** The most important of it in words. */
export function statusOf({ stat, contact, trouble, undecodable, mute, unsearchable }: Circumstances): {
  readonly words: string;
  readonly isTrouble: boolean;
} {
  if (trouble !== "") return { words: trouble, isTrouble: true };
  if (contact !== "ok") return { words: text(contact === "gone" ? "engineGone" : "sessionOver"), isTrouble: true };
  if (undecodable !== "") return { words: text("cannotDecode", undecodable), isTrouble: true };
  if (stat === null) return { words: text("looking"), isTrouble: false };
  if (mute !== "") return { words: text("cannotHear", mute), isTrouble: true };
  if (stat.error_message !== null) {
    return { words: failureText(stat.error_message, sessionCodeOf(stat.error_code ?? null)), isTrouble: true };
  }
  if (stat.checking && (stat.status === "prefuf" || stat.stall_reason !== null)) {
    return { words: text("checkingDisk", stat.checking.done, stat.checking.total), isTrouble: false };
  }
  if (stat.cushion_wait_s !== null) {
    const wait = durationText(stat.cushion_wait_s);
    const { cushion_play_s: playS } = stat;
    return {
      words: playS === null ? text("cushion", wait) : text("cushionFor", wait, durationText(playS)),
      isTrouble: false,
    };
  }
  if (stat.stall_reason !== null) {
    return { words: reasonText(stat.stall_reason) ?? stat.stall_reason, isTrouble: false };
  }
  if (stat.status === "prefuf") return { words: text("prebuffering", stat.progress), isTrouble: false };
  return { words: unsearchable ? text("unsearchable") : "", isTrouble: unsearchable };
}

/** Peers and speeds. */
export function figuresText({ peers, speed_down, speed_up, total_progress }: Stat): string {
  const rate = (kibPerS: number) => bytesText(kibPerS * 1024);
  const parts = [text("peers", peers), text("down", rate(speed_down)), text("up", rate(speed_up))];
  return [...parts, ...total_progress > 0 ? [text("here", total_progress)] : []].join(" · ");
}
