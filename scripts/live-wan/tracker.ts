/** A tracker of one swarm, as a program: `tracker.ts HOST PORT`. Says "ready" when it listens. Tells IPv4 addresses only. */
import { createServer } from "node:http";
import process from "node:process";

/** Times between two announces that members are asked to keep, s. */
const INTERVAL_S = 120;
const MIN_INTERVAL_S = 30;
/** Most members named in one answer. */
const MAX_PEERS = 50;

/** Host and port of a member, in six bytes. */
function compact(host: string, port: number): string {
  return String.fromCharCode(...host.split(".").map(Number), port >> 8, port & 255);
}

/** Some of `members`, at random. */
function some(members: readonly string[]): string[] {
  return members.map((member) => ({ member, place: Math.random() })).sort((a, b) => a.place - b.place)
    .slice(0, MAX_PEERS).map(({ member }) => member);
}

const members = new Set<string>();
const server = createServer((request, response) => {
  const query = new URL(request.url!, "http://tracker").searchParams;
  const own = compact(request.socket.remoteAddress!, Number(query.get("port")));
  if (query.get("event") === "stopped") members.delete(own);
  else members.add(own);
  const peers = some([...members].filter((member) => member !== own)).join("");
  const times = `8:intervali${INTERVAL_S}e12:min intervali${MIN_INTERVAL_S}e`;
  const counts = `8:completei1e10:incompletei${members.size}e`;
  response.setHeader("connection", "close");
  response.end(`d${counts}${times}5:peers${peers.length}:${peers}e`, "latin1");
});
server.listen(Number(process.argv[3]), process.argv[2], () => console.log("ready"));
