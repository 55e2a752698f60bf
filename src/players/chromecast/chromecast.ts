/** A Chromecast, or a television with one built in, as a player: its Default Media Receiver plays our HLS. */
import { sleep } from "../../bytes/deadline.ts";
import { faultFields, guarded } from "../../bytes/guarded-clock.ts";
import { hasCode, MillraceError } from "../../errors.ts";
import type { SocketAddress, Timer } from "../../ports.ts";
import {
  IDLE,
  type Player,
  type PlayerCommand,
  type PlayerDevice,
  type PlayerStatus,
  type PlayerStream,
} from "../player-device.ts";
import { CastChannel, type CastPorts, type CastReply, reasonIn, RECEIVER } from "./cast-channel.ts";
import { type MediaStatus, readMediaStatus, readReceiverStatus, type ReceiverStatus } from "./cast-status.ts";

/** Id of the Default Media Receiver. */
const APP = "CC1AD845";
const RECEIVER_NAMESPACE = "urn:x-cast:com.google.cast.receiver";
const MEDIA_NAMESPACE = "urn:x-cast:com.google.cast.media";
/** Time between two checks whether it plays, ms. */
const LOOK_EVERY_MS = 300;
/** An unused connection is dropped after this, ms; playback continues. */
const IDLE_MS = 30_000;

/** What is known about a device. */
export interface ChromecastFacts {
  readonly id: string;
  readonly name: string;
  readonly icon: string | null;
  readonly at: SocketAddress;
}

/** A running application that accepts messages. */
interface Running {
  readonly sessionId: string;
  readonly transportId: string;
}

/** One device in reach. */
export class Chromecast implements PlayerDevice {
  readonly facts: Player;
  readonly localOnly = false;
  readonly output = "hls";
  readonly sound = "aac";
  readonly isForeignPage = true;
  readonly host: string;
  readonly at: SocketAddress;
  readonly #ports: CastPorts;
  #channel: CastChannel | null = null;
  #connecting: Promise<CastChannel> | null = null;
  #idle: Timer | null = null;
  /** Address of the last stream sent to it. */
  #url: string | null = null;

  constructor(ports: CastPorts, { id, name, icon, at }: ChromecastFacts) {
    this.facts = { id: `chromecast:${id}`, type: "aircast", protocol: "chromecast", name, icon };
    this.host = at.host;
    this.at = at;
    this.#ports = ports;
  }

  async open(stream: PlayerStream, signal: AbortSignal): Promise<void> {
    await stream.ready(signal);
    const app = await this.#launch(signal);
    const loaded = await this.#ask(MEDIA_NAMESPACE, app.transportId, {
      type: "LOAD",
      sessionId: app.sessionId,
      autoplay: true,
      currentTime: 0,
      media: describeMedia(stream),
    }, signal);
    if (readMediaStatus(loaded) === null) throw this.#refused(stream, reasonIn(loaded));
    this.#url = stream.url;
    for (;;) {
      const playing = await this.#media(app, signal);
      if (playing?.playerState === "PLAYING" || playing?.playerState === "PAUSED") return;
      if (playing === null) throw this.#refused(stream, "it plays something else now");
      if (playing.playerState === "IDLE" && playing.idleReason !== undefined) {
        throw this.#refused(stream, `it stops (${playing.idleReason})`);
      }
      await sleep(this.#ports.clock, LOOK_EVERY_MS, signal);
    }
  }

  async status(signal: AbortSignal): Promise<PlayerStatus> {
    if (this.#url === null) return IDLE;
    const { status, app, media } = await this.#now(signal);
    if (app === null || media === null || media.playerState === "IDLE") return IDLE;
    return {
      state: media.playerState === "PAUSED" ? "paused" : "playing",
      positionSeconds: media.currentTime ?? null,
      durationSeconds: durationOf(media),
      volumePercent: status.volumePercent,
    };
  }

  async control(command: PlayerCommand, signal: AbortSignal): Promise<void> {
    const { app, media } = this.#url === null ? { app: null, media: null } : await this.#now(signal);
    if (app === null || media === null || media.playerState === "IDLE") {
      if (command.kind === "stop") return;
      throw new MillraceError("conflict", `${this.facts.name} plays nothing now`);
    }
    if (command.kind === "stop") {
      this.#url = null;
      const { sessionId } = app;
      return this.#check(readReceiverStatus, await this.#askReceiver({ type: "STOP", sessionId }, signal));
    }
    const { mediaSessionId } = media;
    const request = command.kind === "seek"
      ? { type: "SEEK", currentTime: command.positionSeconds }
      : { type: command.kind === "pause" ? "PAUSE" : "PLAY" };
    const reply = await this.#ask(MEDIA_NAMESPACE, app.transportId, { ...request, mediaSessionId }, signal);
    this.#check(readMediaStatus, reply);
  }

  async setVolume(percent: number, signal: AbortSignal): Promise<void> {
    const volume = { level: percent / 100 };
    this.#check(readReceiverStatus, await this.#askReceiver({ type: "SET_VOLUME", volume }, signal));
  }

  /** Drops the connection; playback continues. */
  close(): void {
    this.#idle?.cancel();
    this.#channel?.close();
    this.#channel = null;
  }

  /** The receiver's state, and our application and stream if they are there. */
  async #now(
    signal: AbortSignal,
  ): Promise<{ readonly status: ReceiverStatus; readonly app: Running | null; readonly media: MediaStatus | null }> {
    const status = await this.#receiver({ type: "GET_STATUS" }, signal);
    const app = runningIn(status);
    return { status, app, media: app === null ? null : await this.#media(app, signal) };
  }

  /** Our stream in the application; null when it plays something else, or nothing. */
  async #media({ transportId }: Running, signal: AbortSignal): Promise<MediaStatus | null> {
    const reply = await this.#ask(MEDIA_NAMESPACE, transportId, { type: "GET_STATUS" }, signal);
    return readMediaStatus(reply)?.find(({ media }) => media?.contentId === this.#url) ?? null;
  }

  /** Starts the application, unless it runs, and waits until it takes messages. */
  async #launch(signal: AbortSignal): Promise<Running> {
    let status = await this.#receiver({ type: "GET_STATUS" }, signal);
    if (!status.applications.some(({ appId }) => appId === APP)) {
      status = await this.#receiver({ type: "LAUNCH", appId: APP }, signal);
    }
    for (;;) {
      const app = runningIn(status);
      if (app !== null) return app;
      await sleep(this.#ports.clock, LOOK_EVERY_MS, signal);
      status = await this.#receiver({ type: "GET_STATUS" }, signal);
    }
  }

  async #receiver(body: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<ReceiverStatus> {
    const reply = await this.#askReceiver(body, signal);
    const status = readReceiverStatus(reply);
    if (status === null) throw this.#refusal(reply);
    return status;
  }

  #askReceiver(body: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<CastReply> {
    return this.#ask(RECEIVER_NAMESPACE, RECEIVER, body, signal);
  }

  /** Sends a request, and retries once on a new connection when the old one turns out to be dead. */
  async #ask(
    namespace: string,
    destination: string,
    body: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<CastReply> {
    for (let attempt = 0;; attempt++) {
      const channel = await this.#connected(signal);
      try {
        channel.join(destination);
        return await channel.request(namespace, destination, body, signal);
      } catch (error) {
        if (signal.aborted || attempt > 0 || !hasCode(error, "connection_failed")) throw error;
      }
    }
  }

  async #connected(signal: AbortSignal): Promise<CastChannel> {
    this.#idle?.cancel();
    const { clock, log } = this.#ports;
    const failed = (error: unknown) => {
      const fields = { player: this.facts.id, ...faultFields(error) };
      log.log("error", "a fault of the engine: a connection to a player may stay open", fields);
    };
    this.#idle = clock.setTimeout(guarded(() => this.close(), failed), IDLE_MS);
    if (this.#channel !== null && !this.#channel.isClosed) return this.#channel;
    return this.#channel = await (this.#connecting ??= CastChannel.open(this.#ports, this.at, this.facts.name, signal)
      .finally(() => this.#connecting = null));
  }

  #check(read: (reply: CastReply) => unknown, reply: CastReply): void {
    if (read(reply) === null) throw this.#refusal(reply);
  }

  #refusal(reply: CastReply): MillraceError {
    return new MillraceError("unavailable", `${this.facts.name} refuses: ${reasonIn(reply)}`);
  }

  #refused(stream: PlayerStream, why: string): MillraceError {
    return new MillraceError("unavailable", `${this.facts.name} does not play it: ${stream.trouble() ?? why}`);
  }
}

/** Duration of the media, s; null for endless media, for which devices report none or a negative one. */
function durationOf({ media }: MediaStatus): number | null {
  const duration = media?.duration ?? 0;
  return duration > 0 ? duration : null;
}

function runningIn({ applications }: ReceiverStatus): Running | null {
  const app = applications.find(({ appId }) => appId === APP);
  return app?.transportId === undefined ? null : { sessionId: app.sessionId, transportId: app.transportId };
}

/** Describes the media to load: an HLS playlist whose segments are MPEG TS. */
function describeMedia({ url, title, isLive }: PlayerStream): Readonly<Record<string, unknown>> {
  return {
    contentId: url,
    contentType: "application/x-mpegURL",
    streamType: isLive ? "LIVE" : "BUFFERED",
    hlsSegmentFormat: "ts",
    hlsVideoSegmentFormat: "mpeg2_ts",
    metadata: { metadataType: 0, title },
  };
}
