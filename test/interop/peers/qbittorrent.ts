/** qBittorrent without a screen, controlled by its web API. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryDirectory } from "../../support/engine.ts";
import { start } from "../../support/process.ts";
import { freePort } from "../../support/tracker.ts";
import { until } from "../../support/until.ts";
import { CLIENT_TIMEOUT_MS, homeOf, LOOPBACK, type StartClient, started } from "./clients.ts";

/** A setting per line, as qBittorrent keeps them: of all ways to find peers none, so that only named ones are dialled. */
function configOf(webPort: number, peerPort: number): string {
  return `[LegalNotice]
Accepted=true
[BitTorrent]
Session\\Port=${peerPort}
Session\\InterfaceAddress=${LOOPBACK}
Session\\DHTEnabled=false
Session\\LSDEnabled=false
Session\\PeXEnabled=false
Session\\BTProtocol=TCP
Session\\QueueingSystemEnabled=false
Session\\DisableAutoTMMByDefault=true
[Preferences]
Connection\\UPnP=false
Connection\\ResolvePeerCountries=false
WebUI\\Address=${LOOPBACK}
WebUI\\Port=${webPort}
WebUI\\LocalHostAuth=false
WebUI\\CSRFProtection=false
WebUI\\HostHeaderValidation=false
WebUI\\UseUPnP=false
`;
}

/** qBittorrent; `options.peers` are dialled once it has the torrent. */
export const qbittorrent: StartClient = async (content, options) => {
  const home = await homeOf(content, options);
  const profile = await temporaryDirectory();
  const [webPort, peerPort] = [await freePort(), options.port ?? await freePort()];
  const settings = join(profile.path, "qBittorrent", "config");
  await mkdir(settings, { recursive: true });
  await writeFile(join(settings, "qBittorrent.conf"), configOf(webPort, peerPort));
  const program = start("qbittorrent-nox", [`--profile=${profile.path}`]);
  const call = async (path: string, body: FormData | URLSearchParams | null): Promise<Response> => {
    const request = body === null ? {} : { method: "POST", body };
    const answer = await fetch(`http://${LOOPBACK}:${webPort}/api/v2/${path}`, {
      ...request,
      signal: AbortSignal.timeout(CLIENT_TIMEOUT_MS),
    });
    if (!answer.ok) throw new Error(`qbittorrent-nox: ${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  const torrent = async () => {
    const torrents = await (await call("torrents/info", null)).json();
    return torrents[0] as { hash: string; progress: number; state: string } | undefined;
  };
  const done = () =>
    until("qbittorrent-nox has everything", async () => (await torrent())?.progress === 1, CLIENT_TIMEOUT_MS);
  const both = {
    path: home.path,
    remove: async () => {
      await profile.remove();
      await home.remove();
    },
  };
  return await started(program, both, async () => {
    await until("qbittorrent-nox answers", async () => {
      if (program.child.exitCode !== null || program.child.pid === undefined) {
        throw new Error(`qbittorrent-nox did not start: ${program.output()}`);
      }
      return await call("app/version", null).then((answer) => answer.body?.cancel(), () => false) !== false;
    }, CLIENT_TIMEOUT_MS);
    const form = new FormData();
    form.append("savepath", home.path);
    if (options.magnet !== undefined) form.append("urls", options.magnet);
    else form.append("torrents", new Blob([new Uint8Array(await readFile(content.torrentPath))]), "pack.torrent");
    await (await call("torrents/add", form)).body?.cancel();
    await until("qbittorrent-nox has the torrent", async () => await torrent() !== undefined, CLIENT_TIMEOUT_MS);
    if (options.mode === "seed") await done();
    const { hash } = (await torrent())!;
    if ((options.peers ?? []).length > 0) {
      const peers = options.peers!.join("|");
      await (await call("torrents/addPeers", new URLSearchParams({ hashes: hash, peers }))).body?.cancel();
    }
    return { peer: `${LOOPBACK}:${peerPort}`, done };
  });
};
