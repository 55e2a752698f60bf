/** Every answer of a served engine, compared with `/openapi.json` on its way to the test. */
import { METHODS } from "../../src/http/api/registry.ts";

/** Longest answer that is looked at, characters: lists of 100,000 items have their own tests. */
const MAX_CHARS = 512 * 1024;
/** Session addresses below `/engine`. */
const OF_SESSION = /^\/engine\/(stat|cmd|event)\/[^/]+\/[^/]+$/;
/** Starts that may answer in JSON. */
const STARTS = /^\/engine\/(?:getstream|manifest\.m3u8|getfile)$/;
const NAMES: ReadonlySet<string> = new Set(METHODS.map(({ name }) => name));

/** Compares answers; mismatches are reported when the engine is closed, so that the test's own failure comes first. */
export class CheckedAnswers {
  readonly #faults: unknown[] = [];
  readonly #running = new Set<Promise<void>>();

  /** `response` to `request`, unchanged. */
  take(request: Request, response: Response): Response {
    const path = describedPath(new URL(request.url));
    const isJson = (response.headers.get("content-type") ?? "").startsWith("application/json");
    if (path === null || response.status !== 200 || !isJson || response.body === null) return response;
    const [shown, looked] = response.body.tee();
    const running: Promise<void> = check(path, looked).catch((error) => void this.#faults.push(error))
      .then(() => void this.#running.delete(running));
    this.#running.add(running);
    return new Response(shown, response);
  }

  /** Waits for pending comparisons. Rejects with the first answer that does not fit. */
  async close(): Promise<void> {
    await Promise.all(this.#running);
    if (this.#faults.length > 0) throw this.#faults[0];
  }
}

async function check(path: string, body: ReadableStream<Uint8Array>): Promise<void> {
  let text = "";
  try {
    for await (const part of body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>)) {
      text += part;
      if (text.length > MAX_CHARS) return;
    }
  } catch {
    // The caller did not want the rest.
    return;
  }
  if (text === "") return;
  const { assertDescribed } = await import("./described.ts");
  assertDescribed(path, JSON.parse(text));
}

/** The address in the document; null unless it answers in JSON. */
function describedPath({ pathname, searchParams }: URL): string | null {
  const session = OF_SESSION.exec(pathname);
  if (session !== null) return `/engine/${session[1]}/{infohash}/{session}`;
  if (STARTS.test(pathname)) return pathname;
  const [, base, name] = /^\/(server|service)\/api(?:\/(\w+))?\/?$/.exec(pathname) ?? [];
  if (base === undefined) return null;
  const method = name ?? searchParams.get("method");
  // A method in the body is not known here.
  return method !== null && NAMES.has(method) ? `/server/api/${method}` : null;
}
