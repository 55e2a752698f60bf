/** TLS that does not check the certificate, on node:tls, which all three runtimes have. */
import tls from "node:tls";
import net from "node:net";
import { abortError } from "../../src/errors.ts";
import type { DeviceTlsPort } from "../../src/ports.ts";
import { webReadable, webWritable } from "./node-streams.ts";
import { brokenError, connectError } from "./os-error.ts";

/** TLS to devices. */
export const deviceTls: DeviceTlsPort = {
  connectUnverified(target, { signal }) {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(abortError(signal));
      // A name could lead out of the local network, to hosts whose certificates must be checked.
      if (net.isIP(target.host) === 0) return reject(connectError(new Error("not a literal address"), target));
      const socket = tls.connect({ ...target, rejectUnauthorized: false, minVersion: "TLSv1.2" });
      const abort = () => {
        socket.destroy();
        reject(abortError(signal));
      };
      const fail = (cause: Error) => {
        signal.removeEventListener("abort", abort);
        socket.destroy();
        reject(connectError(cause, target));
      };
      const close = () => fail(new Error("closed before the handshake was over"));
      signal.addEventListener("abort", abort, { once: true });
      socket.once("error", fail);
      socket.once("close", close);
      socket.once("secureConnect", () => {
        signal.removeEventListener("abort", abort);
        socket.off("error", fail);
        socket.off("close", close);
        socket.on("error", () => {});
        resolve({
          readable: webReadable(socket, (error) => brokenError(error, target)),
          writable: webWritable(socket),
          close: () => void socket.destroy(),
        });
      });
    });
  },
};
