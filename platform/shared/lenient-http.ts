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
import type { KeptSockets } from "./kept-sockets.ts";
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
  /** Where connections wait for the next request, unless this one is lenient. Default: each is closed. */
  readonly kept?: KeptSockets;
}

/**
 * As `HttpClientPort.open`, on a connection that nothing else uses meanwhile. With `isLenient` a body that ends early is whole: its length is not
 * believed.
 */
export async function openRaw(request: HttpClientRequest, options: RawOptions): Promise<HttpClientAnswer> {
  const kept = request.isLenient === true ? undefined : options.kept;
  const key = JSON.stringify([request.proxy, request.address, request.url.origin, request.localAddress]);
  const keep = kept && ((socket: net.Socket) => kept.keep(key, socket));
  const waiting = kept?.take(key) ?? null;
  if (waiting !== null) {
    const exchange = new Exchange(waiting, request, options, keep);
    waiting.write(headOf(request, true));
    try {
      return await exchange.answer;
    } catch (error) {
      // The server closed the connection before it read the request.
      if (exchange.hasReceived || request.signal.aborted) throw error;
    }
  }
  const socket = await connected(request, options.ca);
  const exchange = new Exchange(socket, request, options, keep);
  const send = () => void socket.write(headOf(request, kept !== undefined));
  if (!socket.connecting && !isTls(request)) send();
  else socket.once(isTls(request) ? "secureConnect" : "connect", send);
  return await exchange.answer;
}

function isTls({ url }: HttpClientRequest): boolean {
  return url.protocol === "https:";
}

function targetOf({ url, address }: HttpClientRequest): SocketAddress {
  return { host: address, port: Number(url.port || (url.protocol === "https:" ? 443 : 80)) };
}

/** A socket to the server, through the proxy if there is one, which may still be connecting. */
async function connected(request: HttpClientRequest, ca: string | undefined): Promise<net.Socket> {
  const { url, signal, proxy, localAddress } = request;
  const target = targetOf(request);
  const name = url.hostname.replace(/^\[|\]$/g, "");
  const through = proxy === undefined ? null : await openProxied(proxy, target, signal, localAddress);
  const direct = { ...target, ...(localAddress && { localAddress }) };
  const secure = { ...(net.isIP(name) === 0 && { servername: name }), ...(ca && { ca }) };
  if (isTls(request)) return tls.connect({ ...(through === null ? direct : { socket: through }), ...secure });
  return through ?? net.connect(direct);
}

function headOf({ url, method, headers }: HttpClientRequest, isKept: boolean): string {
  const fields = new Headers(headers);
  if (!fields.has("host")) fields.set("host", url.host);
  fields.set("connection", isKept ? "keep-alive" : "close");
  const lines = [...fields].map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${url.pathname}${url.search} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

/** One request's response, from the first byte to the end of the body. */
class Exchange {
  /** The response; its body follows. */
  readonly answer: Promise<HttpClientAnswer>;
  /** Something of it has come. */
  hasReceived = false;
  readonly #socket: net.Socket;
  readonly #target: SocketAddress;
  readonly #keep: ((socket: net.Socket) => void) | undefined;
  #resolve!: (answer: HttpClientAnswer) => void;
  #reject!: (error: Error) => void;
  #body: ReadableStreamDefaultController<Uint8Array> | null = null;
  #overheadBytes = 0;
  #isInterim = false;
  #isOver = false;
  /** The server serves another request on this connection. */
  #mayKeep = false;
  /** Takes the listeners off the socket. */
  readonly #release: () => void;

  /** `keep` gets the socket when the server goes on with it. */
  constructor(
    socket: net.Socket,
    request: HttpClientRequest,
    { received }: RawOptions,
    keep: ((socket: net.Socket) => void) | undefined,
  ) {
    const { method, signal, isLenient = false } = request;
    this.#socket = socket;
    this.#target = targetOf(request);
    this.#keep = keep;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const parser = this.#createParser(method === "HEAD");
    const data = (chunk: Uint8Array) => {
      if (this.#isOver) return;
      this.hasReceived = true;
      received?.(chunk.length);
      this.#overheadBytes += chunk.length;
      const failed = parse(parser, chunk);
      if (failed !== null) this.end(failed);
      else if (this.#overheadBytes > MAX_OVERHEAD_BYTES) this.end(new Error("the head is too long"));
    };
    const ended = () => {
      this.#mayKeep = false;
      // A body without a length ends with the connection.
      parser.finish();
      if (this.#body === null) this.end(new Error("no response"));
      else this.end(isLenient ? null : new Error("the response ended early"));
    };
    const failed = (error: Error) => this.end(error);
    const closed = () => {
      signal.removeEventListener("abort", abort);
      this.end(new Error("the connection was closed"));
    };
    const abort = () => this.end(abortError(signal));
    this.#release = () => {
      signal.removeEventListener("abort", abort);
      socket.off("data", data).off("end", ended).off("error", failed).off("close", closed);
    };
    socket.on("data", data).once("end", ended).on("error", failed).once("close", closed);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
  }

  /** The response is complete, or failed with `error`. Only the first call has an effect. */
  end(error: Error | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (error === null && this.#mayKeep && this.#keep !== undefined) {
      this.#release();
      this.#keep(this.#socket);
    } else this.#socket.destroy();
    if (error === null) this.#body?.close();
    else if (this.#body === null) {
      this.#reject(error instanceof MillraceError ? error : connectError(error, this.#target));
    } else this.#body.error(error instanceof MillraceError ? error : brokenError(error, this.#target));
  }

  #createParser(isHead: boolean) {
    const parser = new HTTPParser(HTTPParser.RESPONSE);
    parser.parseHeader = parseField;
    parser[HTTPParser.kOnHeadersComplete] = ({ statusCode, headers, shouldKeepAlive }) => {
      this.#isInterim = statusCode < 200;
      this.#mayKeep = shouldKeepAlive;
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
      if (this.#isInterim) return;
      // What comes beyond the response belongs to nothing.
      const { offset, end } = parser as unknown as { readonly offset: number; readonly end: number };
      this.#mayKeep &&= offset === end;
      this.end(null);
    };
    return parser;
  }

  #answer(status: number, fields: readonly string[]): void {
    if (this.#isOver) return;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#body = controller;
      },
      // Afterwards the socket may be another exchange's.
      pull: () => void (this.#isOver || this.#socket.resume()),
      cancel: () => {
        if (this.#isOver) return;
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
