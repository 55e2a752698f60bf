/** Commands of one engine to another, as JSON: the sender signs the text, and the receiver's nonce in it makes it valid once. */
import * as z from "zod";
import { CAST_KEY } from "./cast-identity.ts";

/** Longest request read, bytes. */
export const MAX_CAST_BYTES = 16 * 1024;
/** Path of the first step, in which the receiver issues a nonce and proves its key. */
export const HELLO_PATH = "/cast/hello";
/** Path of the second step. */
export const COMMAND_PATH = "/cast/command";
/** Header field with the signature of the request's body. */
export const SIGNATURE_FIELD = "x-cast-signature";

const NONCE = z.string().regex(/^[0-9a-f]{32}$/);

/** The first step. */
export const CAST_HELLO = z.object({ challenge: NONCE });

/** The receiver's reply to the first step. The signature is of `helloText`. */
export const CAST_WELCOME = z.object({ nonce: NONCE, signature: z.string().max(128) });

/** The text that the receiver signs; `at` is the address that was contacted, so that nobody can relay another engine's answer. */
export function helloText(challenge: string, nonce: string, at: string): string {
  return `${challenge}\n${nonce}\n${at}`;
}

const SECONDS = z.number().min(0).max(1e9);

/** The second step. */
export const CAST_COMMAND = z.object({
  sender: z.string().regex(CAST_KEY),
  nonce: NONCE,
  /** Name that the sender gives itself. */
  name: z.string().max(100),
  action: z.discriminatedUnion("kind", [
    // No apostrophe or other characters with a meaning for players: see `PlayerStream.url`.
    z.object({
      kind: z.literal("open"),
      url: z.string().max(4096).regex(/^http:\/\/[\w.~%:[\]-]+\/[\w.~%/?=&-]+$/),
      /** The output that the receiver announced for its player. */
      output: z.enum(["file", "hls"]),
      title: z.string().max(1000),
      isLive: z.boolean(),
    }),
    z.object({ kind: z.literal("status") }),
    z.object({ kind: z.enum(["pause", "resume", "stop"]) }),
    z.object({ kind: z.literal("seek"), positionSeconds: SECONDS }),
  ]),
});

/** A parsed command. */
export type CastCommand = z.output<typeof CAST_COMMAND>;

/** The receiver's reply to a command. */
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
