/**
 * A proxy of a test's own, SOCKS5 or CONNECT, on loopback. It is as strict as microsocks: one read is one message, and what comes
 * early breaks the connection. Every name leads to 127.0.0.1.
 */
import net from "node:net";
import type { AddressInfo } from "node:net";

/** How the proxy behaves. */
export interface TestProxyOptions {
  readonly kind?: "socks5" | "http";
  /** Asked for; default: none. */
  readonly credentials?: { readonly user: string; readonly password: string };
  /** Reply of SOCKS5 to every request instead of connecting, with the type of address after it; or status of CONNECT. */
  readonly refusal?: readonly number[];
}

/** A running proxy. */
export interface TestProxy {
  /** As `--proxy` takes it, with the right password. */
  readonly url: string;
  readonly port: number;
  /** `host:port` of each request, names as they came. */
  readonly asked: readonly string[];
  /** What clients did wrong. */
  readonly faults: readonly string[];
  close(): Promise<void>;
}

/** Starts a proxy. */
export async function startProxy(options: TestProxyOptions = {}): Promise<TestProxy> {
  const { kind = "socks5", credentials } = options;
  const asked: string[] = [];
  const faults: string[] = [];
  const sockets = new Set<net.Socket>();
  const server = net.createServer((client) => {
    sockets.add(client);
    client.on("close", () => sockets.delete(client));
    client.on("error", () => {});
    const steps = kind === "http" ? connectSteps(options) : socksSteps(options);
    let isFirst = true;
    const step = (data: Uint8Array) => {
      // Another program of this machine may still look for whoever had the port before.
      if (isFirst && data[0] !== (kind === "http" ? "C".charCodeAt(0) : 5)) return client.destroy();
      isFirst = false;
      try {
        const { reply, target } = steps(data);
        if (target !== undefined) asked.push(`${target.host}:${target.port}`);
        if (target === undefined || options.refusal !== undefined) {
          client.write(reply);
          if (target !== undefined) client.end();
          return;
        }
        client.off("data", step);
        const host = net.isIP(target.host) === 0 ? "127.0.0.1" : target.host;
        const far = net.connect({ host, port: target.port }, () => {
          client.write(reply);
          client.pipe(far);
          far.pipe(client);
        });
        sockets.add(far);
        far.on("error", () => client.destroy());
        far.on("close", () => (sockets.delete(far), client.destroy()));
        client.on("close", () => far.destroy());
      } catch (error) {
        faults.push(String(error));
        client.destroy();
      }
    };
    client.on("data", step);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const user = credentials === undefined
    ? ""
    : `${encodeURIComponent(credentials.user)}:${encodeURIComponent(credentials.password)}@`;
  return {
    url: `${kind}://${user}127.0.0.1:${port}`,
    port,
    asked,
    faults,
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

interface Step {
  readonly reply: Uint8Array;
  readonly target?: { readonly host: string; readonly port: number };
}

/** Takes the messages of SOCKS5 in turn, each whole. */
function socksSteps({ credentials, refusal }: TestProxyOptions): (data: Uint8Array) => Step {
  let stage: "greeting" | "password" | "request" = "greeting";
  return (data) => {
    if (stage === "greeting") {
      if (data[0] !== 5 || data.length !== 2 + data[1]!) throw new Error(`a greeting is expected, alone: ${data}`);
      stage = credentials === undefined ? "request" : "password";
      const wanted = credentials === undefined ? 0 : 2;
      return { reply: Uint8Array.of(5, data.subarray(2).includes(wanted) ? wanted : 255) };
    }
    if (stage === "password") {
      const text = new TextDecoder().decode(data);
      const { user, password } = credentials!;
      stage = "request";
      const isRight =
        text === `\u0001${String.fromCharCode(user.length)}${user}${String.fromCharCode(password.length)}${password}`;
      return { reply: Uint8Array.of(1, isRight ? 0 : 1) };
    }
    const [version, command, , type] = data;
    const length = type === 1 ? 4 : type === 4 ? 16 : 1 + data[4]!;
    // UDP ASSOCIATE: not supported.
    if (version === 5 && command === 3) return { reply: Uint8Array.of(5, 7, 0, 1, 0, 0, 0, 0, 0, 0) };
    if (version !== 5 || command !== 1 || data.length !== 6 + length) throw new Error("a request is expected, alone");
    const bytes = data.subarray(4, 4 + length);
    const host = type === 3
      ? new TextDecoder().decode(bytes.subarray(1))
      : type === 1
      ? bytes.join(".")
      : Array.from({ length: 8 }, (_, i) => (bytes[2 * i]! * 256 + bytes[2 * i + 1]!).toString(16)).join(":");
    const target = { host, port: data[4 + length]! * 256 + data[5 + length]! };
    return { target, reply: Uint8Array.from(refusal ?? [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]) };
  };
}

function connectSteps({ credentials, refusal }: TestProxyOptions): (data: Uint8Array) => Step {
  return (data) => {
    const text = new TextDecoder().decode(data);
    const [, host, port] = /^CONNECT \[?([^\]\s]+?)\]?:(\d+) HTTP\/1\.1\r\n/.exec(text) ?? [];
    if (host === undefined || !text.endsWith("\r\n\r\n")) throw new Error("CONNECT is expected, alone");
    const wanted = credentials &&
      `Proxy-Authorization: Basic ${btoa(`${credentials.user}:${credentials.password}`)}\r\n`;
    const status = wanted !== undefined && !text.includes(wanted) ? 407 : refusal?.[0] ?? 200;
    const reply = new TextEncoder().encode(`HTTP/1.1 ${status} Said\r\nX-Proxy: test\r\n\r\n`);
    return status === 407 ? { reply } : { reply, target: { host, port: Number(port) } };
  };
}
