/**
 * The front of an HDHomeRun tuner (`--front hdhomerun`): television servers such as Jellyfin, Emby and Plex take the
 * channels of the library as those of a tuner. The HTTP interface follows Silicondust's document ("HDHomeRun HTTP
 * Development Guide").
 */
import type { Hono } from "hono";
import { MillraceError } from "../../../errors.ts";
import { startOne } from "../../../playback/failover.ts";
import { tsBody } from "../../../playback/output.ts";
import { escapeXml } from "../../../bytes/xml.ts";
import type { LineupEntry } from "../../../playlist/channel.ts";
import { addressHead, channelResponse, playbackOf } from "../../channel.ts";
import type { HttpContext, HttpEnv, HttpParts } from "../../context.ts";
import { playbackFailure } from "../../errors.ts";
import { OUTPUT_TYPES } from "../../stream-routes.ts";
import { deviceId, FIRMWARE, FIRMWARE_VERSION, MODEL, TUNERS } from "./device.ts";

/** Adds the routes. */
export function addHdHomeRunRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  app.get("/discover.json", async (c) => {
    const base = c.get("caller").ownUrl;
    return c.json({
      FriendlyName: "millrace",
      Manufacturer: "Silicondust",
      ModelNumber: MODEL,
      FirmwareName: FIRMWARE,
      FirmwareVersion: FIRMWARE_VERSION,
      DeviceID: await deviceId(parts.api.token),
      DeviceAuth: "",
      TunerCount: TUNERS,
      BaseURL: base,
      LineupURL: `${base}/lineup.json`,
    });
  });
  app.get(
    "/lineup_status.json",
    (c) => c.json({ ScanInProgress: 0, ScanPossible: 1, Source: "Cable", SourceList: ["Cable"] }),
  );
  // A scan finds the channels of the lineup. Servers take an empty body for a failure.
  app.on(["GET", "POST"], "/lineup.post", (c) => c.json({}));
  // The newest lineup as JSON: many may ask, and writing thousands of channels takes milliseconds.
  let written: { entries: readonly LineupEntry[]; base: string; bytes: Uint8Array } | null = null;
  app.get("/lineup.json", async (c) => {
    const base = c.get("caller").ownUrl;
    const entries = await parts.api.channels.lineup();
    if (written?.entries !== entries || written.base !== base) {
      const lineup = entries.map(({ number, title }) => ({
        GuideNumber: number,
        GuideName: title,
        URL: `${base}/auto/v${number}`,
      }));
      written = { entries, base, bytes: new TextEncoder().encode(JSON.stringify(lineup)) };
    }
    const { bytes } = written;
    return c.body(ReadableStream.from([bytes]), 200, {
      "content-type": "application/json",
      "content-length": String(bytes.length),
    });
  });
  app.get(
    "/device.xml",
    async (c) =>
      c.body(deviceDescription(c.get("caller").ownUrl, await deviceId(parts.api.token)), 200, {
        "content-type": "application/xml; charset=utf-8",
      }),
  );
  app.get("/auto/:channel", async (c) => {
    try {
      return await tune(c, parts);
    } catch (error) {
      return playbackFailure(error);
    }
  });
}

/** Sends the MPEG TS of a channel in the response itself, because tuners do not redirect. */
async function tune(c: HttpContext, parts: HttpParts): Promise<Response> {
  const number = /^v(.+)$/.exec(c.req.param("channel") ?? "")?.[1] ?? "";
  const item = await parts.api.channels.itemOf(number);
  const members = item === null ? [] : await parts.api.channels.members({ item });
  if (members.length === 0) throw new MillraceError("not_found", "no channel has this number: see /lineup.json");
  const leave = parts.admission.enter(c.get("caller").holder);
  try {
    const channel = playbackOf(c, parts, {}, "ts", members);
    const head = addressHead(c, channel, OUTPUT_TYPES.ts);
    if (head !== null) return head;
    const { index, session } = await startOne(channel.parts, channel.sources, c.req.raw.signal);
    const isHead = c.req.raw.method === "HEAD";
    if (session.kind === "live") {
      const response = channelResponse(channel, { index, session });
      return isHead ? new Response(null, response) : response;
    }
    // It was not known to be a film: it plays to its end.
    const body = isHead ? null : tsBody(session)?.open(0, null) ?? null;
    return new Response(body, { headers: { "content-type": OUTPUT_TYPES.ts } });
  } finally {
    leave();
  }
}

function deviceDescription(base: string, id: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?>
<root xmlns="urn:schemas-upnp-org:device-1-0">
  <specVersion><major>1</major><minor>0</minor></specVersion>
  <URLBase>${escapeXml(base)}</URLBase>
  <device>
    <deviceType>urn:schemas-upnp-org:device:MediaServer:1</deviceType>
    <friendlyName>millrace</friendlyName>
    <manufacturer>Silicondust</manufacturer>
    <modelName>${MODEL}</modelName>
    <modelNumber>${MODEL}</modelNumber>
    <serialNumber>${id}</serialNumber>
    <UDN>uuid:6d696c6c-7261-6365-0000-0000${id.toLowerCase()}</UDN>
  </device>
</root>
`;
}
