// webtorrent behind its own server: webtorrent-stream.mjs LIBRARY TORRENT DIRECTORY. READY, then after a line URL of the only file.
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
const { server } = client.createServer();
server.listen(0, "127.0.0.1", () => {
  console.log("READY");
  process.stdin.once("data", () => {
    // As its command line tool does for a player.
    const added = client.add(readFileSync(torrent), { path: directory, strategy: "sequential" });
    added.on("metadata", () => console.log(`URL http://127.0.0.1:${server.address().port}${added.files[0].streamURL}`));
  });
});
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
