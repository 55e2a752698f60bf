/** What the real ffmpeg lets a hostile source reach: no file of the broadcaster's, no service of its network. Needs ffmpeg. */
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { openSource } from "../../src/inputs/open-source.ts";
import { dataOf, hear, OPTIONS, sourcePorts } from "../inputs/support.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { clip, clipPath } from "../support/fixtures.ts";
import { run } from "../support/process.ts";
import { serveWeb } from "../support/web.ts";

const SECRET = clipPath("ts-188.ts");
const playlist = (address: string) => `#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\n${address}\n#EXT-X-ENDLIST\n`;

test("a file that is a list in disguise has ffmpeg read no other file", async () => {
  const { path, remove } = await temporaryDirectory();
  const ports = await sourcePorts(20);
  try {
    const lists: Record<string, string> = {
      "hls.avi": playlist(SECRET),
      "hls-url.avi": playlist(`file://${SECRET}`),
      "concat.mpg": `ffconcat version 1.0\nfile '${SECRET}'\n`,
      "sdp.avi": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 33\n",
    };
    for (const [name, text] of Object.entries(lists)) {
      await ports.files.writeFile(`${path}/${name}`, new TextEncoder().encode(text));
      const { input } = await openSource(ports, `${path}/${name}`, { ...OPTIONS, once: true });
      const heard = await hear(input, (events) => events.some((event) => "lost" in event)).catch(() => []);
      assertEquals(dataOf(heard).length, 0, name);
    }
    // Media files play, whatever their names.
    await run("ffmpeg", ["-nostdin", "-v", "error", "-i", SECRET, "-c", "copy", "-f", "nut", `${path}/real.avi`]);
    const { input } = await openSource(ports, `${path}/real.avi`, { ...OPTIONS, once: true });
    assert(dataOf(await hear(input)).length > 50_000);
  } finally {
    await remove();
  }
});

test("a playlist on the web has ffmpeg read no file of this machine", async () => {
  const web = await serveWeb((request, response) => {
    if (request.url === "/good.ts") response.end(clip("ts-188.ts"));
    else response.end(playlist(request.url === "/good.m3u8" ? "good.ts" : `file://${SECRET}`));
  });
  const ports = await sourcePorts(20);
  try {
    const read = async (address: string) => {
      const { input } = await openSource(ports, address, { ...OPTIONS, once: true });
      const heard = await hear(input, (events) => events.some((event) => "lost" in event)).catch(() => []);
      return dataOf(heard).length;
    };
    assertEquals(await read(`ffmpeg:${web.base}/evil.m3u8`), 0);
    assert(await read(`ffmpeg:${web.base}/good.m3u8`) > 50_000);
    await assertRejects(async () => {
      const { input } = await openSource(ports, `${web.base}/evil.m3u8`, { ...OPTIONS, once: true });
      for await (const event of input) if (event.kind === "data") throw new Error("the secret");
    }, MillraceError);
  } finally {
    await web.close();
  }
});
