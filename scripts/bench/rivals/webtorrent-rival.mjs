// webtorrent as a rival: webtorrent-rival.mjs LIBRARY TORRENT DIRECTORY. READY when it may begin, DONE when complete.
import { readFileSync } from "node:fs";
import process from "node:process";
import { pathToFileURL } from "node:url";

const [library, torrent, directory] = process.argv.slice(2);
const { default: WebTorrent } = await import(pathToFileURL(library).href);
const client = new WebTorrent({ dht: false, lsd: false, utp: false, natUpnp: false, natPmp: false, webSeeds: false });
client.on("error", (error) => {
  console.error(error);
  process.exit(1);
});
console.log("READY");
client.add(readFileSync(torrent), { path: directory }).on("done", () => console.log("DONE"));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
