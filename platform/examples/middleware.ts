/**
 * What a middleware does with a running engine: it starts a stream, hands `playback_url` to a player, follows `stat_url`, and
 * stops the session. `node platform/examples/middleware.ts http://127.0.0.1:6878 'magnet=…'`; STREAM as in the README.
 */
import process from "node:process";

/** The addresses of a session. */
interface Session {
  readonly playback_url: string;
  readonly stat_url: string;
  readonly command_url: string;
}

/** The status of a session; these are a few of its fields. */
interface Stat {
  readonly status: string;
  readonly peers: number;
  readonly downloaded: number;
}

const [engineUrl, stream] = process.argv.slice(2);
if (engineUrl === undefined || stream === undefined) throw new Error("usage: middleware.ts ENGINE_URL STREAM");

/** The `response` of an address; throws with the engine's error, which says what to do. */
async function ask<T>(url: string): Promise<T> {
  const { response, error } = await (await fetch(url, { signal: AbortSignal.timeout(60_000) })).json();
  if (error !== null) throw new Error(error);
  return response;
}

// `pid` names the viewer: a start under the same name replaces the viewer's session.
const session = await ask<Session>(`${engineUrl}/engine/getstream?${stream}&format=json&pid=example`);
console.log(`playing ${session.playback_url}`);

// Stands for the player.
const played = await fetch(session.playback_url);
let bytes = 0;
for await (const chunk of played.body!) bytes += chunk.length;

const stat = await ask<Stat>(session.stat_url);
console.log(`${stat.status}: ${stat.peers} peers, ${stat.downloaded} bytes downloaded, ${bytes} bytes of MPEG TS`);
console.log(`stopped: ${await ask<string>(`${session.command_url}?method=stop`)}`);
