import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { HttpServer } from "../../src/ports.ts";
import { openSource } from "../../src/inputs/open-source.ts";
import { CLIP, dataOf, hear, losses, OPTIONS, sourcePorts } from "./support.ts";

type Answer = (request: Request) => Response | Promise<Response>;

async function serving(
  answers: (n: number, request: Request) => Response | Promise<Response>,
  body: (url: string, ports: Awaited<ReturnType<typeof sourcePorts>>) => Promise<void>,
  factor = 20,
): Promise<number> {
  const ports = await sourcePorts(factor);
  let requests = 0;
  const answer: Answer = (request) => answers(requests++, request);
  const server: HttpServer = await ports.http.serve({ host: "127.0.0.1", port: 0 }, answer);
  try {
    await body(`http://127.0.0.1:${server.address.port}`, ports);
  } finally {
    await server.close(0);
  }
  return requests;
}

/** A body of `parts` that then ends, hangs, or breaks on command, since breaking earlier would lose data under way. */
function body(parts: readonly Uint8Array[], then: "end" | "hang" | Promise<void>): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    async pull(controller) {
      if (at < parts.length) return controller.enqueue(parts[at++]!.slice());
      if (then === "end") return controller.close();
      await (then === "hang" ? new Promise(() => {}) : then);
      controller.error(new Error("the server broke off"));
    },
  });
}

const HALF = 188 * 300;

test("an HTTP source reports each drop as lost and connects again", async () => {
  let breakOff = () => {};
  const broken = new Promise<void>((resolve) => breakOff = resolve);
  const requests = await serving(
    // The second half starts inside a packet, as live streams do.
    (n) => new Response(n === 0 ? body([CLIP.subarray(0, HALF)], broken) : body([CLIP.subarray(HALF + 50)], "end")),
    async (url, ports) => {
      const { input } = await openSource(ports, `${url}/live?key=secret`, OPTIONS);
      const heard = await hear(input, (soFar, bytes) => {
        if (bytes === HALF) breakOff();
        return losses(soFar).length === 2;
      });
      assertEquals(heard.map((one) => "lost" in one ? "lost" : "data"), ["data", "lost", "data", "lost"]);
      assertEquals(dataOf(heard.slice(0, 1)), CLIP.subarray(0, HALF));
      // From the next whole packet on.
      assertEquals(dataOf(heard.slice(2)), CLIP.subarray(HALF + 188));
      assert(losses(heard).every((reason) => !reason.includes("secret")), losses(heard).join());
    },
  );
  assertEquals(requests, 2);
});

test("an HTTP source that falls silent is lost after 5 s, and is connected to again", () =>
  serving(
    (n) => new Response(body([CLIP.subarray(0, HALF)], n === 0 ? "hang" : "end")),
    async (url, ports) => {
      const { input } = await openSource(ports, url, OPTIONS);
      const startMs = ports.clock.monotonic();
      const heard = await hear(input, (soFar, bytes) => losses(soFar).length >= 1 && bytes > HALF);
      assertMatch(losses(heard)[0]!, /5 s|no bytes|silent|nothing/i);
      assert(ports.clock.monotonic() - startMs >= 5000);
    },
  ).then(() => {}));

test("an HTTP source keeps trying a server that refuses, and is lost once", async () => {
  const requests = await serving(
    (n) => n < 3 ? new Response("busy", { status: 503 }) : new Response(body([CLIP], "end")),
    async (url, ports) => {
      const { input } = await openSource(ports, url, OPTIONS);
      const heard = await hear(input, (_, bytes) => bytes >= CLIP.length);
      assertEquals(heard.map((one) => "lost" in one ? "lost" : "data"), ["lost", "data"]);
      assertMatch(losses(heard)[0]!, /503/);
      // The log says why the broadcast does not begin yet.
      const waiting = ports.lines.filter(({ message }) => message === `waiting for ${url}`);
      assertEquals(waiting.length, 3);
      assertMatch(String(waiting[0]!.fields["reason"]), /503/);
    },
  );
  assertEquals(requests, 4);
});

test("an HTTP source recovers when a web page replaces the stream for a while", async () => {
  const pages = ["<html>we will be back soon</html>".repeat(200), "#EXTM3U\n", "x"];
  await serving(
    (n) => n === 0 || n > pages.length ? new Response(body([CLIP], "end")) : new Response(pages[n - 1]!),
    async (url, ports) => {
      const { input } = await openSource(ports, url, OPTIONS);
      const heard = await hear(input, (_, bytes) => bytes === 2 * CLIP.length);
      assertEquals(heard.map((one) => "lost" in one ? "lost" : "data"), ["data", "lost", "data"]);
    },
  );
});

test("an HTTP source with --once ends where the answer ends in order", () =>
  serving(() => new Response(body([CLIP], "end")), async (url, ports) => {
    const { input } = await openSource(ports, url, { ...OPTIONS, once: true });
    const heard = await hear(input);
    assertEquals(losses(heard), []);
    assertEquals(dataOf(heard), CLIP.subarray(0, CLIP.length - CLIP.length % 188));
  }).then(() => {}));

test("an HTTP source follows redirects, but not from a public address into the private network", () =>
  serving(
    (_, request) =>
      new URL(request.url).pathname === "/a"
        ? new Response(null, { status: 302, headers: { location: "/b" } })
        : new Response(body([CLIP], "end")),
    async (url, ports) => {
      const heard = await hear((await openSource(ports, `${url}/a`, { ...OPTIONS, once: true })).input);
      assertEquals(dataOf(heard).length, CLIP.length);
      // A public server that leads to this machine.
      const network = { ...ports.network, resolve: () => Promise.resolve(["93.184.216.34"]) };
      const client = {
        open: () =>
          Promise.resolve({
            status: 302,
            headers: new Headers({ location: `${url}/b` }),
            body: new ReadableStream<Uint8Array>({ start: (controller) => controller.close() }),
          }),
      };
      const led = await openSource({ ...ports, network, httpClient: client }, "http://tv.example/a", OPTIONS);
      const [first] = await hear(led.input, (soFar) => losses(soFar).length > 0);
      assertMatch((first as { lost: string }).lost, /private network/);
    },
  ).then(() => {}));

test("an HTTP source holds back data sent faster than its clock, except for a lead of 3 s", () =>
  serving(() => new Response(body([CLIP, CLIP], "end")), async (url, ports) => {
    // Twice six seconds; the clock steps back in between, which takes no time.
    const startMs = ports.clock.monotonic();
    await hear((await openSource(ports, url, { ...OPTIONS, once: true })).input);
    const tookMs = ports.clock.monotonic() - startMs;
    assert(tookMs > 8000 && tookMs < 15_000, `${tookMs} ms`);
  }, 10).then(() => {}));

test("an HTTP source that is neither MPEG TS nor a playlist goes to ffmpeg, and says so when there is none", () =>
  serving(() => new Response("<html>not found</html>".repeat(500)), async (url, ports) => {
    const spawned: (readonly string[])[] = [];
    const without = {
      ...ports,
      processes: {
        spawn(command: string, args: readonly string[]) {
          spawned.push([command, ...args]);
          return Promise.reject(new MillraceError("unavailable", `cannot start ${command}: is it installed?`));
        },
      },
    };
    const { input } = await openSource(without, `${url}/page?key=secret`, OPTIONS);
    const error = await assertRejects(() => hear(input), MillraceError);
    assertEquals(error.code, "unavailable");
    assertMatch(error.message, /takes ffmpeg, which is not on the PATH/);
    assert(!error.message.includes("secret"));
    assertEquals(spawned.length, 1);
    assertEquals(spawned[0]!.slice(spawned[0]!.indexOf("-i"))[1], `${url}/page?key=secret`);
  }).then(() => {}));
