/**
 * A Chromecast without a screen, run by Node: `node cast-receiver.mjs <node_modules> <name>`. TLS, frames and messages are those
 * of castv2, its announcement bonjour-service's; here is what the receiver and its Default Media Receiver do. Like the real one
 * it reads HLS as a web page of another origin, by `fetch` with the rules of CORS, and shows nothing for as long as a film takes.
 * It writes one JSON object per line of what happens.
 */
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import process from "node:process";

const [, , modules, name, keyFile, certificateFile] = process.argv;
const require = createRequire(`${modules}/x.js`);
const { Server } = require("castv2");
const { Bonjour } = require("bonjour-service");

const ORIGIN = "https://www.gstatic.com";
const AGENT =
  "Mozilla/5.0 (X11; Linux armv7l) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/125.0 Safari/537.36 CrKey/1.56";
const NAMESPACE = "urn:x-cast:com.google.cast.";
const APP = { appId: "CC1AD845", sessionId: "session-1", transportId: "web-1", displayName: "Default Media Receiver" };
const tell = (event) => console.log(JSON.stringify(event));

let level = 0.5;
let isRunning = false;
let launchedMs = 0;
/** What is loaded: `playing` counts from `sinceMs`, `paused` stands still. */
let media = null;

const receiverStatus = () => ({
  type: "RECEIVER_STATUS",
  // As a real one: the application is listed a moment before it takes messages.
  status: {
    applications: !isRunning ? [] : [Date.now() - launchedMs < 500 ? { ...APP, transportId: undefined } : APP],
    volume: { level, muted: false },
  },
});
const position = () => {
  if (media === null) return 0;
  const moved = media.state === "PLAYING" ? (Date.now() - media.sinceMs) / 1000 : 0;
  return media.durationS < 0 ? media.fromS + moved : Math.min(media.fromS + moved, media.durationS);
};
const move = (state, fromS = position()) => Object.assign(media, { state, fromS, sinceMs: Date.now() });
function mediaStatus() {
  if (media?.state === "PLAYING" && media.durationS >= 0 && position() >= media.durationS) {
    Object.assign(media, { state: "IDLE", idleReason: "FINISHED" });
  }
  if (media === null) return { type: "MEDIA_STATUS", status: [] };
  const { id: mediaSessionId, state: playerState, idleReason, described, durationS: duration } = media;
  const reason = idleReason === undefined ? {} : { idleReason };
  const status = { mediaSessionId, playerState, ...reason, currentTime: position(), media: { ...described, duration } };
  return { type: "MEDIA_STATUS", status: [status] };
}

/** As a browser fetches for a page of `ORIGIN`: what does not allow it is an error. */
async function get(url) {
  const response = await fetch(url, { headers: { origin: ORIGIN, referer: `${ORIGIN}/`, "user-agent": AGENT } });
  const allowed = response.headers.get("access-control-allow-origin");
  if (!response.ok || (allowed !== ORIGIN && allowed !== "*")) throw new Error(`${response.status}, allows ${allowed}`);
  return new Uint8Array(await response.arrayBuffer());
}

async function load(request) {
  const { media: described } = request;
  media = { id: (media?.id ?? 0) + 1, described, durationS: 0, state: "BUFFERING", fromS: 0, sinceMs: Date.now() };
  const mine = media;
  tell({ event: "load", media: described });
  try {
    const seen = new Set();
    for (let n = 0; media === mine;) {
      const playlist = new TextDecoder().decode(await get(described.contentId));
      const segments = playlist.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
      const hasEnd = playlist.includes("#EXT-X-ENDLIST");
      const wholeS = [...playlist.matchAll(/^#EXTINF:([\d.]+)/gm)].reduce((sum, [, s]) => sum + Number(s), 0);
      mine.durationS = hasEnd ? wholeS : -1;
      for (const url of segments.filter((each) => !seen.has(each))) {
        seen.add(url);
        const startedMs = Date.now();
        const bytes = await get(url);
        if (bytes[0] !== 0x47 || bytes.length % 188 !== 0) throw new Error("no MPEG TS");
        tell({ event: "segment", n, of: segments.length, bytes: bytes.length, ms: Date.now() - startedMs, url });
        if (n++ === 0) move("PLAYING", 0);
      }
      if (hasEnd) return;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  } catch (error) {
    if (media !== mine) return;
    tell({ event: "failed", reason: String(error) });
    Object.assign(mine, { state: "IDLE", idleReason: "ERROR" });
  }
}

const server = new Server({ key: readFileSync(keyFile), cert: readFileSync(certificateFile) });
server.on("message", (client, source, destination, namespace, data) => {
  const request = JSON.parse(data);
  const { type, requestId } = request;
  const reply = (body) => server.send(client, destination, source, namespace, JSON.stringify({ ...body, requestId }));
  if (type === "PING") return reply({ type: "PONG" });
  tell({ event: "request", type, destination });
  if (namespace === `${NAMESPACE}receiver` && destination === "receiver-0") {
    if (type === "LAUNCH") {
      if (request.appId !== APP.appId) return reply({ type: "LAUNCH_ERROR", reason: "NOT_FOUND" });
      isRunning = true;
      launchedMs = Date.now();
    } else if (type === "STOP") {
      if (request.sessionId !== APP.sessionId) return reply({ type: "INVALID_REQUEST", reason: "INVALID_SESSION_ID" });
      isRunning = false;
      media = null;
    } else if (type === "SET_VOLUME") level = request.volume.level;
    return reply(receiverStatus());
  }
  if (namespace !== `${NAMESPACE}media` || destination !== APP.transportId || !isRunning) return;
  if (type === "LOAD") void load(request);
  else if (type !== "GET_STATUS") {
    if (media === null || request.mediaSessionId !== media.id) return reply({ type: "INVALID_PLAYER_STATE" });
    if (type === "PAUSE") move("PAUSED");
    else if (type === "PLAY") move("PLAYING");
    else if (type === "SEEK") move(media.state, request.currentTime);
  }
  reply(mediaStatus());
});
server.listen(0, "0.0.0.0", () => {
  const { port } = server.server.address();
  const bonjour = new Bonjour();
  const txt = { id: "00112233445566778899aabbccddeeff", fn: name, md: "Chromecast", ca: "4101", ic: "/setup/icon.png" };
  bonjour.publish({ name: "Chromecast-0011", type: "googlecast", port, txt, probe: false });
  tell({ event: "ready", port });
  process.on("SIGTERM", () => bonjour.unpublishAll(() => process.exit(0)));
});
