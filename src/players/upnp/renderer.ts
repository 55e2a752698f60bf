/** A DLNA renderer, such as a television, as a player: UPnP's AVTransport:1, with media described by the DLNA guidelines. */
import { sleep } from "../../bytes/deadline.ts";
import { escapeXml } from "../../bytes/xml.ts";
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
import type { RendererDescription } from "./description.ts";
import { protocolInfo } from "../../upnp/dlna.ts";
import { callAction } from "../../upnp/soap.ts";

/** Time between two checks whether it plays, ms: events would need a server that the device can reach, and many devices send none. */
const LOOK_EVERY_MS = 250;
/** If the device still reports "stopped" this long after a play command, it does not play, ms. */
const REFUSED_AFTER_MS = 5000;

/** Types for MPEG TS in order of preference, if the device accepts them. */
const TS_TYPES = ["video/mp2t", "video/vnd.dlna.mpeg-tts", "video/mpeg"] as const;

/** One renderer in reach. */
export class DlnaRenderer implements PlayerDevice {
  readonly facts: Player;
  readonly localOnly = false;
  readonly output = "ts";
  readonly host: string;
  readonly #clock: Clock;
  readonly #fetch: typeof fetch;
  readonly #description: RendererDescription;
  #type: Promise<string> | null = null;

  constructor(ports: { readonly clock: Clock; readonly fetch: typeof fetch }, description: RendererDescription) {
    const { udn, name, icon, avTransport } = description;
    this.facts = { id: `dlna:${udn}`, type: "aircast", protocol: "dlna", name, icon };
    this.host = avTransport.controlUrl.hostname.replace(/^\[|\]$/g, "");
    this.#clock = ports.clock;
    this.#fetch = ports.fetch;
    this.#description = description;
  }

  async open(stream: PlayerStream, signal: AbortSignal): Promise<void> {
    const type = await (this.#type ??= this.#typeForTs(signal));
    // Stop first: a device that plays refuses another address, or queues it.
    await this.#call("Stop", {}, signal).catch((error) => {
      if (signal.aborted) throw error;
    });
    await this.#call("SetAVTransportURI", {
      CurrentURI: stream.url,
      CurrentURIMetaData: describeMedia(stream, type),
    }, signal);
    await this.#call("Play", { Speed: "1" }, signal);
    let stoppedMs = 0;
    for (;;) {
      const { state, status } = await this.#transport(signal);
      if (state === "PLAYING") return;
      if (status === "ERROR_OCCURRED") throw this.#refused(stream, "it reports an error");
      if (state !== "TRANSITIONING") stoppedMs += LOOK_EVERY_MS;
      if (stoppedMs >= REFUSED_AFTER_MS) throw this.#refused(stream, "it stops");
      await sleep(this.#clock, LOOK_EVERY_MS, signal);
    }
  }

  async status(signal: AbortSignal): Promise<PlayerStatus> {
    const { state } = await this.#transport(signal);
    if (state !== "PLAYING" && state !== "TRANSITIONING" && state !== "PAUSED_PLAYBACK") return IDLE;
    const position = await this.#call("GetPositionInfo", {}, signal);
    return {
      state: state === "PAUSED_PLAYBACK" ? "paused" : "playing",
      positionSeconds: readTime(position("RelTime")),
      durationSeconds: readTime(position("TrackDuration")) || null,
    };
  }

  async control(command: PlayerCommand, signal: AbortSignal): Promise<void> {
    if (command.kind !== "stop" && (await this.status(signal)).state === "idle") {
      throw new MillraceError("conflict", `${this.facts.name} plays nothing now`);
    }
    if (command.kind === "seek") {
      await this.#call("Seek", { Unit: "REL_TIME", Target: writeTime(command.positionSeconds) }, signal);
    } else if (command.kind === "resume") await this.#call("Play", { Speed: "1" }, signal);
    else await this.#call(command.kind === "pause" ? "Pause" : "Stop", {}, signal);
  }

  #call(action: string, args: Readonly<Record<string, string>>, signal: AbortSignal) {
    return callAction(this.#fetch, this.#description.avTransport, action, { InstanceID: "0", ...args }, signal);
  }

  async #transport(signal: AbortSignal): Promise<{ readonly state: string; readonly status: string }> {
    const info = await this.#call("GetTransportInfo", {}, signal);
    return { state: info("CurrentTransportState"), status: info("CurrentTransportStatus") };
  }

  /** The type under which this device accepts MPEG TS; the oldest if it does not say. */
  async #typeForTs(signal: AbortSignal): Promise<string> {
    const { connectionManager } = this.#description;
    const oldest = TS_TYPES[TS_TYPES.length - 1]!;
    if (connectionManager === null) return oldest;
    const said = await callAction(this.#fetch, connectionManager, "GetProtocolInfo", {}, signal).catch((error) => {
      this.#type = null;
      if (signal.aborted) throw error;
      return () => "";
    });
    const types = said("Sink").toLowerCase().split(",").map((entry) => entry.split(":")[2]?.trim() ?? "");
    return TS_TYPES.find((type) => types.includes(type)) ?? oldest;
  }

  #refused(stream: PlayerStream, why: string): MillraceError {
    return new MillraceError("unavailable", `${this.facts.name} does not play it: ${stream.trouble() ?? why}`);
  }
}

/** DIDL-Lite with what the device shows, and how it may read the stream. */
export function describeMedia(
  { url, title, isLive }: Pick<PlayerStream, "url" | "title" | "isLive">,
  type: string,
): string {
  return '<DIDL-Lite xmlns="urn:schemas-upnp-org:metadata-1-0/DIDL-Lite/" xmlns:dc="http://purl.org/dc/elements/1.1/" ' +
    'xmlns:upnp="urn:schemas-upnp-org:metadata-1-0/upnp/"><item id="0" parentID="-1" restricted="1">' +
    `<dc:title>${escapeXml(title)}</dc:title><upnp:class>object.item.videoItem</upnp:class>` +
    `<res protocolInfo="${escapeXml(protocolInfo(type, !isLive))}">${escapeXml(url)}</res></item></DIDL-Lite>`;
}

/** Seconds of `H+:MM:SS[.F+]` (AVTransport:1, 2.2.15); null for `NOT_IMPLEMENTED` and the like. */
export function readTime(text: string): number | null {
  const match = /^(\d{1,4}):([0-5]\d):([0-5]\d)/.exec(text);
  return match === null ? null : Number(match[1]) * 3600 + Number(match[2]) * 60 + Number(match[3]);
}

/** The reverse of `readTime`, in whole seconds. */
export function writeTime(seconds: number): string {
  const whole = Math.floor(seconds);
  return [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60].map((part) =>
    String(part).padStart(2, "0")
  )
    .join(":");
}
