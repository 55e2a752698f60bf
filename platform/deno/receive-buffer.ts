/**
 * Receives UDP on Deno as fast as it comes. Deno's `setRecvBufferSize` changes nothing, and the 208 KiB that Linux gives by
 * default hold 90 datagrams: of a source that sends in bursts more than half was lost. And Deno delivers one datagram per turn of
 * its event loop, so that a busy one falls behind. So the kernel is asked directly.
 */
import type { FastReceiver } from "../shared/udp.ts";

/** From the system's headers: asm-generic/socket.h, linux/socket.h. */
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
const MSG_DONTWAIT = 0x40;
const AF_INET = 2;
const AF_INET6 = 10;
/** Largest datagram. */
const DATAGRAM_BYTES = 65_535;
/** Size of the largest address, `sockaddr_in6`. */
const ADDRESS_BYTES = 28;

/** What stands in front of an IPv4 address in one of IPv6 (RFC 4291, 2.5.5.2). */
const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

const SYMBOLS = {
  setsockopt: { parameters: ["i32", "i32", "i32", "buffer", "u32"], result: "i32" },
  getsockopt: { parameters: ["i32", "i32", "i32", "buffer", "buffer"], result: "i32" },
  recvfrom: { parameters: ["i32", "buffer", "usize", "i32", "buffer", "buffer"], result: "isize" },
} as const;

let libc: Deno.DynamicLibrary<typeof SYMBOLS> | null = null;

/**
 * Asks for a receive buffer of `bytes` for the UDP sockets of this process that are bound to `port`. Returns what takes
 * datagrams from the socket; null if there are several. Null, too, where this is not Linux, or where the program may not call
 * foreign functions. Throws when the system's library cannot be opened.
 */
export function openFastReceiver(port: number, bytes: number): FastReceiver | null {
  // Asking for the permission would stop the program until somebody answers.
  if (Deno.build.os !== "linux" || Deno.permissions.querySync({ name: "ffi" }).state !== "granted") return null;
  const inodes = new Set(["udp", "udp6"].flatMap((family) => inodesAt(family, port)));
  const { setsockopt } = (libc ??= Deno.dlopen("libc.so.6", SYMBOLS)).symbols;
  const value = new Int32Array([bytes]);
  const found = [...Deno.readDirSync("/proc/self/fd")].map(({ name }) => name).filter((name) =>
    inodes.has(target(name))
  );
  for (const descriptor of found) setsockopt(Number(descriptor), SOL_SOCKET, SO_RCVBUF, value, value.byteLength);
  return found.length === 1 ? receiverOf(Number(found[0])) : null;
}

/** Takes what waits at the socket `descriptor`. */
function receiverOf(descriptor: number): FastReceiver {
  const { getsockopt, recvfrom } = libc!.symbols;
  const granted = new Int32Array(1);
  getsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, granted, new Uint32Array([granted.byteLength]));
  const data = new Uint8Array(DATAGRAM_BYTES);
  const address = new Uint8Array(ADDRESS_BYTES);
  const addressLength = new Uint32Array(1);
  const next = () => {
    addressLength[0] = ADDRESS_BYTES;
    const length = Number(recvfrom(descriptor, data, BigInt(data.length), MSG_DONTWAIT, address, addressLength));
    const from = length < 0 ? null : addressOf(address);
    return from && { data: data.slice(0, length), from };
  };
  return { bufferBytes: granted[0]!, next };
}

function addressOf(bytes: Uint8Array): { host: string; port: number } | null {
  const view = new DataView(bytes.buffer);
  const family = new Uint16Array(bytes.buffer, 0, 1)[0];
  const port = view.getUint16(2);
  if (family === AF_INET) return { host: bytes.subarray(4, 8).join("."), port };
  if (family !== AF_INET6) return null;
  // IPv4 at a socket of both families, which is most of what comes: reading the address as IPv6 took most of a flood's time.
  if (MAPPED.every((byte, n) => bytes[8 + n] === byte)) return { host: bytes.subarray(20, 24).join("."), port };
  const words = Array.from({ length: 8 }, (_, n) => view.getUint16(8 + 2 * n).toString(16));
  return { host: new URL(`http://[${words.join(":")}]`).hostname.slice(1, -1), port };
}
/** Names, as links of descriptors have them, of the sockets bound to `port`. */
function inodesAt(family: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  let table: string;
  try {
    table = Deno.readTextFileSync(`/proc/self/net/${family}`);
  } catch {
    // A kernel without IPv6.
    return [];
  }
  const rows = table.split("\n").map((line) => line.trim().split(/\s+/));
  return rows.filter((row) => row[1]?.endsWith(suffix)).map((row) => `socket:[${row[9]}]`);
}

function target(descriptor: string): string {
  try {
    return Deno.readLinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    // The descriptor with which the directory was read is closed by now.
    return "";
  }
}
