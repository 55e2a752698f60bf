/**
 * HTTP on a socket of our own. For servers that break its grammar: lines that end in LF alone, fields whose names are none,
 * lengths that are wrong, as old trackers send them; node:http refuses the last two even with `insecureHTTPParser`. And through
 * proxies: not every runtime's client takes a socket that is connected.
 */
import net from "node:net";
import tls from "node:tls";
import { HTTPParser } from "http-parser-js";
import { abortError, MillraceError } from "../../src/errors.ts";
import type { HttpClientAnswer, HttpClientRequest, SocketAddress } from "../../src/ports.ts";
import { headersOf } from "./http-fields.ts";
import { brokenError, connectError } from "./os-error.ts";
import { openProxied } from "./proxied-socket.ts";

/** Body bytes between the socket and the reader. */
const BUFFER_BYTES = 64 * 1024;

/** Bytes of a response that are not its body: fields, and sizes of chunks. The parser itself has no bound. */
const MAX_OVERHEAD_BYTES = 256 * 1024;

/** What one exchange is made with. */
export interface RawOptions {
  /** Certificates to trust instead of the runtime's, PEM. */
  readonly ca?: string | undefined;
  /** Called with the bytes of each part of a response that arrived. */
  readonly received?: ((bytes: number) => void) | undefined;
}

/**
 * As `HttpClientPort.open`, on a connection of its own. With `isLenient` a body that ends early is whole: its length is not
 * believed.
 */
export async function openRaw(request: HttpClientRequest, options: RawOptions): Promise<HttpClientAnswer> {
  const { url, address, signal, proxy, localAddress } = request;
  const isTls = url.protocol === "https:";
  const target = { host: address, port: Number(url.port || (isTls ? 443 : 80)) };
  const name = url.hostname.replace(/^\[|\]$/g, "");
  const through = proxy === undefined ? null : await openProxied(proxy, target, signal, localAddress);
  const direct = { ...target, ...(localAddress && { localAddress }) };
  const secure = { ...(net.isIP(name) === 0 && { servername: name }), ...(options.ca && { ca: options.ca }) };
  const socket = isTls
    ? tls.connect({ ...(through === null ? direct : { socket: through }), ...secure })
    : through ?? net.connect(direct);
  if (through !== null && !isTls) socket.write(headOf(request));
  else socket.once(isTls ? "secureConnect" : "connect", () => socket.write(headOf(request)));
  return await new Promise((resolve, reject) => {
    const exchange = new Exchange(socket, target, request, options, resolve, reject);
    const abort = () => exchange.end(abortError(signal));
    signal.addEventListener("abort", abort, { once: true });
    socket.once("close", () => signal.removeEventListener("abort", abort));
    if (signal.aborted) abort();
  });
}

function headOf({ url, method, headers }: HttpClientRequest): string {
  const fields = new Headers(headers);
  if (!fields.has("host")) fields.set("host", url.host);
  fields.set("connection", "close");
  const lines = [...fields].map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${url.pathname}${url.search} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

/** One request's response, from the first byte to the end of the body. */
class Exchange {
  readonly #socket: net.Socket;
  readonly #target: SocketAddress;
  readonly #resolve: (answer: HttpClientAnswer) => void;
  readonly #reject: (error: Error) => void;
  #body: ReadableStreamDefaultController<Uint8Array> | null = null;
  #overheadBytes = 0;
  #isInterim = false;
  #isOver = false;

  constructor(
    socket: net.Socket,
    target: SocketAddress,
    { method, isLenient = false }: HttpClientRequest,
    { received }: RawOptions,
    resolve: (answer: HttpClientAnswer) => void,
    reject: (error: Error) => void,
  ) {
    this.#socket = socket;
    this.#target = target;
    this.#resolve = resolve;
    this.#reject = reject;
    const parser = this.#createParser(method === "HEAD");
    socket.on("data", (chunk: Uint8Array) => {
      if (this.#isOver) return;
      received?.(chunk.length);
      this.#overheadBytes += chunk.length;
      const failed = parse(parser, chunk);
      if (failed !== null) this.end(failed);
      else if (this.#overheadBytes > MAX_OVERHEAD_BYTES) this.end(new Error("the head is too long"));
    });
    socket.once("end", () => {
      // A body without a length ends with the connection.
      parser.finish();
      if (this.#body === null) this.end(new Error("no response"));
      else this.end(isLenient ? null : new Error("the response ended early"));
    });
    socket.on("error", (error) => this.end(error));
    socket.once("close", () => this.end(new Error("the connection was closed")));
  }

  /** The response is complete, or failed with `error`. Only the first call has an effect. */
  end(error: Error | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#socket.destroy();
    if (error === null) this.#body?.close();
    else if (this.#body === null) {
      this.#reject(error instanceof MillraceError ? error : connectError(error, this.#target));
    } else this.#body.error(error instanceof MillraceError ? error : brokenError(error, this.#target));
  }

  #createParser(isHead: boolean) {
    const parser = new HTTPParser(HTTPParser.RESPONSE);
    parser.parseHeader = parseField;
    parser[HTTPParser.kOnHeadersComplete] = ({ statusCode, headers }) => {
      this.#isInterim = statusCode < 200;
      if (!this.#isInterim) this.#answer(statusCode, headers);
      return isHead ? 1 : 0;
    };
    parser[HTTPParser.kOnBody] = (chunk, _offset, length) => {
      // The parser checks no sizes.
      if (length < 0) throw new Error("a chunk without a size");
      this.#overheadBytes -= length;
      if (this.#isOver) return;
      this.#body?.enqueue(new Uint8Array(chunk));
      if ((this.#body?.desiredSize ?? 0) <= 0) this.#socket.pause();
    };
    parser[HTTPParser.kOnMessageComplete] = () => {
      if (!this.#isInterim) this.end(null);
    };
    return parser;
  }

  #answer(status: number, fields: readonly string[]): void {
    if (this.#isOver) return;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#body = controller;
      },
      pull: () => void this.#socket.resume(),
      cancel: () => {
        this.#isOver = true;
        this.#socket.destroy();
      },
    }, new ByteLengthQueuingStrategy({ highWaterMark: BUFFER_BYTES }));
    this.#resolve({ status, headers: headersOf(fields), body });
  }
}

function parse(parser: { execute(chunk: Buffer): number | Error }, chunk: Uint8Array): Error | null {
  try {
    const parsed = parser.execute(chunk as Buffer);
    return parsed instanceof Error ? parsed : null;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** Adds the field in `line` to `fields`. One that is none is left out, and so is a second or unreadable length. */
function parseField(text: string, fields: string[]): void {
  const line = text.trimEnd();
  if (line === "" || line.includes("\r")) return;
  HTTPParser.prototype.parseHeader(line, fields);
  const at = fields.length - 2;
  const isLength = (name: string | undefined) => name?.toLowerCase() === "content-length";
  if (!isLength(fields[at])) return;
  const isSecond = fields.some((name, i) => i < at && i % 2 === 0 && isLength(name));
  if (isSecond || !/^\d{1,15}$/.test(fields[at + 1]!)) fields.length = at;
}
