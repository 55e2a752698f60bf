/** WebSocket clients to a chosen address, on node:net: the runtimes' own look names up again, after any check. */
import net from "node:net";
import tls from "node:tls";
import websocket from "websocket-driver";
import { abortError, MillraceError } from "../../src/errors.ts";
import type { WebSocketConnection, WebSocketRequest } from "../../src/ports.ts";
import { connectError } from "./os-error.ts";

/** A server that does not read what it asks for, pongs among it, is left above this, bytes. */
const MAX_UNSENT_BYTES = 1024 * 1024;

/** See `PagePort.openWebSocket`. */
export async function openWebSocket(request: WebSocketRequest): Promise<WebSocketConnection> {
  let failure: unknown = new MillraceError("connection_failed", "no address to connect to");
  for (const address of request.addresses) {
    if (request.signal.aborted) throw abortError(request.signal);
    try {
      return await openAt(request, address);
    } catch (error) {
      if (request.signal.aborted) throw abortError(request.signal);
      failure = error;
    }
  }
  throw failure;
}

function openAt(
  { url, maxMessageBytes, signal, onMessage, onClose }: WebSocketRequest,
  address: string,
): Promise<WebSocketConnection> {
  const isTls = url.protocol === "wss:";
  const target = { host: address, port: Number(url.port || (isTls ? 443 : 80)) };
  const name = url.hostname.replace(/^\[|\]$/g, "");
  const socket = isTls
    ? tls.connect({ ...target, ...(net.isIP(name) === 0 && { servername: name }) })
    : net.connect(target);
  const driver = websocket.client(url.href, { maxLength: maxMessageBytes });
  return new Promise((resolve, reject) => {
    let state: "opening" | "open" | "over" = "opening";
    const end = (error: Error) => {
      const before = state;
      state = "over";
      signal.removeEventListener("abort", abort);
      socket.destroy();
      if (before === "opening") reject(connectError(error, target));
      else if (before === "open") onClose();
    };
    const abort = () => end(abortError(signal));
    signal.addEventListener("abort", abort, { once: true });
    socket.on("error", end);
    socket.on("close", () => end(new Error("the connection was closed")));
    socket.once(isTls ? "secureConnect" : "connect", () => void driver.start());
    socket.on("data", (chunk: Uint8Array) => void driver.io.write(chunk));
    driver.io.on("data", (chunk: Uint8Array) => {
      if (state === "over") return;
      socket.write(chunk);
      if (socket.writableLength > MAX_UNSENT_BYTES) end(new Error("the server does not read"));
    });
    driver.on("error", ({ message }: { message: string }) => end(new Error(message)));
    driver.on("close", () => {
      // Our own close frame is still to be sent.
      socket.end();
      end(new Error("the server closed the WebSocket"));
    });
    driver.on("message", ({ data }: { data: unknown }) => {
      if (state === "open" && typeof data === "string") onMessage(data);
    });
    driver.on("open", () => {
      if (state !== "opening") return;
      state = "open";
      signal.removeEventListener("abort", abort);
      resolve({
        address,
        send: (text) => void (state === "open" && driver.text(text)),
        close: () => {
          if (state !== "open") return;
          state = "over";
          driver.close();
          socket.end();
          onClose();
        },
      });
    });
  });
}
