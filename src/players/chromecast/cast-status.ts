/** Status messages of CASTV2 receivers about themselves and their media; the fields that are used. */
import * as z from "zod";
import type { CastReply } from "./cast-channel.ts";

const TEXT = z.string().max(4096);

const RECEIVER_STATUS = z.object({
  type: z.literal("RECEIVER_STATUS"),
  status: z.object({
    applications: z.array(z.object({ appId: TEXT, sessionId: TEXT, transportId: TEXT.optional() })).max(16).default([]),
    volume: z.object({ level: z.number().min(0).max(1).optional(), muted: z.boolean().optional() }).optional(),
  }),
});

const MEDIA_STATUS = z.object({
  type: z.literal("MEDIA_STATUS"),
  status: z.array(z.object({
    mediaSessionId: z.number(),
    playerState: z.enum(["IDLE", "PLAYING", "PAUSED", "BUFFERING", "LOADING"]),
    idleReason: TEXT.optional(),
    currentTime: z.number().optional(),
    media: z.object({ contentId: z.string().max(64 * 1024), duration: z.number().nullish() }).optional(),
  })).max(16),
});

/** An application that runs on the receiver. */
export interface CastApplication {
  readonly appId: string;
  readonly sessionId: string;
  /** Destination for messages to it; missing while it starts. */
  readonly transportId?: string | undefined;
}

/** The receiver's own state. */
export interface ReceiverStatus {
  readonly applications: readonly CastApplication[];
  /** 0–100; null when unknown. */
  readonly volumePercent: number | null;
}

/** What an application plays. */
export type MediaStatus = z.output<typeof MEDIA_STATUS>["status"][number];

/** The receiver's state; null for any other reply. */
export function readReceiverStatus(reply: CastReply): ReceiverStatus | null {
  const read = RECEIVER_STATUS.safeParse(reply);
  if (!read.success) return null;
  const { applications, volume } = read.data.status;
  const volumePercent = volume?.level === undefined ? null : volume.muted ? 0 : Math.round(100 * volume.level);
  return { applications, volumePercent };
}

/** The media status; null for any other reply. */
export function readMediaStatus(reply: CastReply): readonly MediaStatus[] | null {
  const read = MEDIA_STATUS.safeParse(reply);
  return read.success ? read.data.status : null;
}
