/**
 * Looks the names of its arguments up, by our resolver and by the system's `getaddrinfo`, in a network of its own where it is
 * the name server. Prints an object with the addresses of each name, `own` and `system`.
 */
import { execFile } from "node:child_process";
import dgram from "node:dgram";
import net from "node:net";
import process from "node:process";
import { createResolver } from "../../../platform/shared/resolver.ts";

/** What the name server knows: addresses, or another name. */
const RECORDS: Readonly<Record<string, readonly string[]>> = {
  "two.test": ["192.0.2.10", "2001:db8::10"],
  "four.test": ["192.0.2.11"],
  "six.test": ["2001:db8::12"],
  "alias.test": ["two.test"],
  "nas.lan.test": ["192.0.2.7"],
  "box.office.lan.test": ["192.0.2.9"],
  "tv.local": ["192.0.2.8"],
};
const TYPES = { a: 1, cname: 5, aaaa: 28 };

function encodedName(name: string): Buffer {
  return Buffer.concat(
    [...name.split(".").map((label) => Buffer.from(`\0${label}`)), Buffer.from([0])].map((part, n, all) => {
      if (n < all.length - 1) part[0] = part.length - 1;
      return part;
    }),
  );
}

function encodedAddress(address: string): Buffer {
  if (net.isIPv4(address)) return Buffer.from(address.split(".").map(Number));
  const [front = "", back = ""] = address.split("::");
  const words = (text: string) => text === "" ? [] : text.split(":").map((word) => parseInt(word, 16));
  const zeros = new Array(8 - words(front).length - words(back).length).fill(0);
  return Buffer.from([...words(front), ...zeros, ...words(back)].flatMap((word) => [word >> 8, word & 255]));
}

const record = (name: string, type: number, data: Buffer) =>
  Buffer.concat([encodedName(name), Buffer.from([0, type, 0, 1, 0, 0, 0, 60, 0, data.length]), data]);

/** The answers to a question, through other names. */
function answersTo(name: string, type: number): Buffer[] {
  return (RECORDS[name] ?? []).flatMap((value) => {
    if (net.isIP(value) === 0) return [record(name, TYPES.cname, encodedName(value)), ...answersTo(value, type)];
    const own = net.isIPv4(value) ? TYPES.a : TYPES.aaaa;
    return own === type ? [record(name, type, encodedAddress(value))] : [];
  });
}

const server = dgram.createSocket("udp4");
server.on("message", (query, from) => {
  const labels: string[] = [];
  let at = 12;
  for (; query[at] !== 0; at += query[at]! + 1) labels.push(query.toString("latin1", at + 1, at + 1 + query[at]!));
  const name = labels.join(".").toLowerCase();
  const answers = answersTo(name, query.readUInt16BE(at + 1));
  const code = name in RECORDS ? 0 : 3;
  const head = Buffer.from([query[0]!, query[1]!, 0x85, 0x80 + code, 0, 1, 0, answers.length, 0, 0, 0, 0]);
  server.send(Buffer.concat([head, query.subarray(12, at + 5), ...answers]), from.port, from.address);
});
await new Promise<void>((resolve) => server.bind(53, "127.0.0.1", resolve));

const ASK = `import json, socket, sys
def ask(name):
    try: return [a[4][0] for a in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]
    except socket.gaierror: return []
print(json.dumps({name: ask(name) for name in sys.argv[1:]}))`;

function bySystem(names: readonly string[]): Promise<Record<string, string[]>> {
  return new Promise((resolve, reject) => {
    execFile("python3", ["-c", ASK, ...names], (error, stdout) => error ? reject(error) : resolve(JSON.parse(stdout)));
  });
}

const ours = createResolver();
const names = process.argv.slice(2);
const own = Object.fromEntries(
  await Promise.all(names.map(async (name) => {
    return [name, await ours(name, { signal: AbortSignal.timeout(60_000) }).catch(() => [])] as const;
  })),
);
process.stdout.write(`${JSON.stringify({ own, system: await bySystem(names) })}\n`);
server.close();
