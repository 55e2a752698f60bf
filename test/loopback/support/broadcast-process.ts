/** A broadcaster that runs until it is killed: `<directory> <peer port>`. Says where it is and which piece is its first. */
import { loadPorts } from "../../../platform/detect.ts";
import { createEngine } from "../../../src/engine.ts";
import { LoopInput, RATE } from "../../live/live-lab.ts";

const [directory = "", port = "0"] = process.argv.slice(2);
const options = { peerHost: "127.0.0.1", peerPort: Number(port), dht: false, lsd: false, cache: "ram" } as const;
const engine = await createEngine(await loadPorts({ log: { level: "error" } }), options);
const broadcast = await engine.broadcast({ input: new LoopInput(), name: "Test", directory, bytesPerS: RATE });
console.log(`ready ${engine.peerAddress!.port} ${broadcast.metainfo.infohashHex}`);
const timer = setInterval(() => {
  const { headSeq } = broadcast.status();
  if (headSeq < 0) return;
  clearInterval(timer);
  console.log(`first ${headSeq}`);
}, 10);
