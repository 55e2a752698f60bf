/** A web without a network: answers by address, names with their addresses, and a clock that stands still. */
import type { FetchPorts } from "../../src/content/fetch-guard.ts";
import type { HttpClientAnswer, HttpClientRequest } from "../../src/ports.ts";
import { FakeClock } from "./fake-clock.ts";

/** The answer to one request; if it is an error, the client rejects with it. */
export type Answer = (request: HttpClientRequest) => Response | Error;

/**
 * A web of `answers` by URL; other requests hang. Names are looked up in `names`: the first list the first time, and so
 * on, the last one from then on; those that are not there are at 8.8.8.8.
 */
export function fakeWeb(answers: Record<string, Answer>, names: Record<string, string[][]> = {}) {
  const asked: HttpClientRequest[] = [];
  const looked: string[] = [];
  const clock = new FakeClock();
  const ports: FetchPorts = {
    clock,
    network: {
      interfaces: () => [],
      resolve: (host: string) => {
        looked.push(host);
        const turns = names[host] ?? [["8.8.8.8"]];
        return Promise.resolve(turns.length > 1 ? turns.shift()! : turns[0]!);
      },
    },
    httpClient: {
      open: (request) =>
        new Promise<HttpClientAnswer>((resolve, reject) => {
          asked.push(request);
          if (request.signal.aborted) return reject(request.signal.reason);
          request.signal.addEventListener("abort", () => reject(request.signal.reason));
          const answer = answers[request.url.href]?.(request);
          if (answer instanceof Error) reject(answer);
          else if (answer) resolve({ status: answer.status, headers: answer.headers, body: bodyOf(answer, request) });
        }),
    },
  };
  return { ports, clock, asked, looked };
}

/** The body, which the signal ends as the real client's does. */
function bodyOf({ body }: Response, { signal }: HttpClientRequest): ReadableStream<Uint8Array> {
  const through = new TransformStream<Uint8Array, Uint8Array>();
  (body ?? new Response("").body!).pipeTo(through.writable, { signal }).catch(() => {});
  return through.readable;
}
