/** What one engine asks of another, as JSON: the sender signs the text, and the receiver's nonce in it makes it good once. */
import * as z from "zod";
import { CAST_KEY } from "./cast-identity.ts";

/** Longest request read, bytes. */
export const MAX_CAST_BYTES = 16 * 1024;
/** Path of the first step, by which the receiver gives a nonce and proves its key. */
export const HELLO_PATH = "/cast/hello";
/** Path of the second step. */
export const COMMAND_PATH = "/cast/command";
/** Field of the request with the signature of its body. */
export const SIGNATURE_FIELD = "x-cast-signature";

const NONCE = z.string().regex(/^[0-9a-f]{32}$/);

/** The first step. */
export const CAST_HELLO = z.object({ challenge: NONCE });

/** What the receiver says to it. The signature is of `helloText`. */
export const CAST_WELCOME = z.object({ nonce: NONCE, signature: z.string().max(128) });

/** What the receiver signs: `at` is the address by which it was asked, so that nobody can pass on another's answer. */
export function helloText(challenge: string, nonce: string, at: string): string {
  return `${challenge}\n${nonce}\n${at}`;
}

const SECONDS = z.number().min(0).max(1e9);

/** The second step. */
export const CAST_COMMAND = z.object({
  sender: z.string().regex(CAST_KEY),
  nonce: NONCE,
  /** What the sender calls itself. */
  name: z.string().max(100),
  action: z.discriminatedUnion("kind", [
    // No apostrophe and nothing else that players read as theirs: see `PlayerStream.url`.
    z.object({
      kind: z.literal("open"),
      url: z.string().max(4096).regex(/^http:\/\/[\w.~%:[\]-]+\/[\w.~%/?=&-]+$/),
      /** What the receiver announced that its player reads. */
      output: z.enum(["file", "hls"]),
      title: z.string().max(1000),
      isLive: z.boolean(),
    }),
    z.object({ kind: z.literal("status") }),
    z.object({ kind: z.enum(["pause", "resume", "stop"]) }),
    z.object({ kind: z.literal("seek"), positionSeconds: SECONDS }),
  ]),
});

/** A command that was read. */
export type CastCommand = z.output<typeof CAST_COMMAND>;

/** What the receiver says to it. */
export const CAST_REPLY = z.union([
  z.object({
    status: z.object({
      state: z.enum(["idle", "playing", "paused"]),
      positionSeconds: SECONDS.nullable(),
      durationSeconds: SECONDS.nullable(),
    }),
  }),
  z.object({ error: z.object({ code: z.string().max(40), message: z.string().max(1000) }) }),
]);
