/** bittorrent-tracker's server over WebSocket alone, on loopback: `node page-tracker.mjs FOLDER-OF-THE-PACKAGE`. Prints its port. */
import process from "node:process";
import { pathToFileURL } from "node:url";

const { default: Server } = await import(pathToFileURL(`${process.argv[2]}/server.js`).href);
const server = new Server({ http: false, udp: false, ws: true, stats: false });
server.on("error", (error) => console.error(error));
server.listen(0, "127.0.0.1", () => console.log(server.ws.address().port));
