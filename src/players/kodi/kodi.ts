/** Kodi as a player, controlled and queried by JSON-RPC. */
import * as z from "zod";
import { sleep } from "../../bytes/deadline.ts";
import { MillraceError } from "../../errors.ts";
import type { Clock } from "../../ports.ts";
import {
  IDLE,
  type Player,
  type PlayerCommand,
  type PlayerDevice,
  type PlayerStatus,
  type PlayerStream,
} from "../player-device.ts";
import type { KodiRpc } from "./kodi-rpc.ts";

/** Time between two checks whether it plays, ms: over HTTP Kodi reports nothing by itself. */
const LOOK_EVERY_MS = 250;
/** If Kodi has nothing open this long after a play command, it has given up, ms. */
const REFUSED_AFTER_MS = 2500;
/** Kodi's number of its video player, which also opens streams. */
const VIDEO_PLAYER = 1;

/** `Global.Time` of Kodi's API. */
const TIME = z.object({ hours: z.number(), minutes: z.number(), seconds: z.number(), milliseconds: z.number() });
const ACTIVE = z.array(z.object({ playerid: z.int() }));
const PROPERTIES = z.object({ speed: z.number(), time: TIME, totaltime: TIME });
const VOLUME = z.object({ volume: z.number() });
const MEDIA = z.object({ "Player.HasMedia": z.boolean() });

/** One Kodi. */
export class KodiPlayer implements PlayerDevice {
  readonly facts: Player;
  readonly localOnly = false;
  // Kodi reads every container with its subtitles and chapters.
  readonly output = "file";
  readonly host: string;
  readonly #rpc: KodiRpc;
  readonly #clock: Clock;

  /** `place` is `host:port` as the user named it, `host` its literal address. */
  constructor(rpc: KodiRpc, clock: Clock, { place, name, host }: { place: string; name: string; host: string }) {
    this.facts = { id: `kodi:${place}`, type: "proxy", protocol: null, name, icon: null };
    this.host = host;
    this.#rpc = rpc;
    this.#clock = clock;
  }

  async open(stream: PlayerStream, signal: AbortSignal): Promise<void> {
    // Stop the previous stream first, or it would be mistaken for the new one.
    while (await this.#hasMedia(signal)) {
      await this.#stop(signal);
      await sleep(this.#clock, LOOK_EVERY_MS, signal);
    }
    await this.#rpc.call("Player.Open", { item: { file: stream.url } }, signal);
    let nothingMs = 0;
    // The player becomes active once it has read the file's first tracks.
    while (await this.#active(signal) === null) {
      if (!await this.#hasMedia(signal)) nothingMs += LOOK_EVERY_MS;
      if (nothingMs >= REFUSED_AFTER_MS) {
        const why = stream.trouble() ?? "it stops; its own message is on its screen";
        throw new MillraceError("unavailable", `${this.facts.name} does not play it: ${why}`);
      }
      await sleep(this.#clock, LOOK_EVERY_MS, signal);
    }
  }

  async status(signal: AbortSignal): Promise<PlayerStatus> {
    const playerid = await this.#active(signal);
    if (playerid === null) return IDLE;
    const [playing, loudness] = await Promise.all([
      this.#rpc.call("Player.GetProperties", { playerid, properties: ["speed", "time", "totaltime"] }, signal),
      this.#rpc.call("Application.GetProperties", { properties: ["volume"] }, signal),
    ]);
    const { speed, time, totaltime } = read(PROPERTIES, playing);
    return {
      state: speed === 0 ? "paused" : "playing",
      positionSeconds: secondsOf(time),
      durationSeconds: secondsOf(totaltime) || null,
      volumePercent: read(VOLUME, loudness).volume,
    };
  }

  async control(command: PlayerCommand, signal: AbortSignal): Promise<void> {
    if (command.kind === "stop") return await this.#stop(signal);
    const playerid = await this.#active(signal);
    if (playerid === null) throw new MillraceError("conflict", `${this.facts.name} plays nothing now`);
    if (command.kind === "seek") {
      await this.#rpc.call("Player.Seek", { playerid, value: { time: timeOf(command.positionSeconds) } }, signal);
    } else {
      await this.#rpc.call("Player.PlayPause", { playerid, play: command.kind === "resume" }, signal);
    }
  }

  async setVolume(percent: number, signal: AbortSignal): Promise<void> {
    await this.#rpc.call("Application.SetVolume", { volume: Math.round(percent) }, signal);
  }

  /** Stops what plays or is being opened. Without a sound device Kodi needs some 10 s for that, so nobody waits for it. */
  async #stop(signal: AbortSignal): Promise<void> {
    await this.#rpc.call("Player.Stop", { playerid: await this.#active(signal) ?? VIDEO_PLAYER }, signal);
  }

  /** Number of the active player; null when none plays, or a stream is still being opened. */
  async #active(signal: AbortSignal): Promise<number | null> {
    return read(ACTIVE, await this.#rpc.call("Player.GetActivePlayers", {}, signal))[0]?.playerid ?? null;
  }

  /** Whether it plays something or is about to. */
  async #hasMedia(signal: AbortSignal): Promise<boolean> {
    const said = await this.#rpc.call("XBMC.GetInfoBooleans", { booleans: ["Player.HasMedia"] }, signal);
    return read(MEDIA, said)["Player.HasMedia"];
  }
}

/** Parses Kodi's answer in the form that its API promises. Throws `protocol_violation`. */
export function read<T>(form: z.ZodType<T>, said: unknown): T {
  const result = form.safeParse(said);
  if (result.success) return result.data;
  throw new MillraceError("protocol_violation", "Kodi's response does not match its API", {
    cause: result.error,
  });
}

function secondsOf({ hours, minutes, seconds, milliseconds }: z.infer<typeof TIME>): number {
  return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000;
}

function timeOf(seconds: number): z.infer<typeof TIME> {
  const whole = Math.floor(seconds);
  return {
    hours: Math.floor(whole / 3600),
    minutes: Math.floor(whole / 60) % 60,
    seconds: whole % 60,
    milliseconds: Math.floor((seconds - whole) * 1000),
  };
}
