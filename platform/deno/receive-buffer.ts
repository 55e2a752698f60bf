/**
 * A larger receive buffer for UDP on Deno. Its `setRecvBufferSize` changes nothing, and the 208 KiB that Linux gives by
 * default hold 90 datagrams: of a source that sends in bursts more than half was lost. So the kernel is asked directly.
 */

/** From the system's headers: asm-generic/socket.h. */
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;

/**
 * Asks for `bytes` for the UDP sockets of this process that are bound to `port`. Does nothing where this is not Linux, or
 * where the program may not call foreign functions. Throws when the system's library cannot be opened.
 */
export function enlargeReceiveBuffer(port: number, bytes: number): void {
  // Asking for the permission would stop the program until somebody answers.
  if (Deno.build.os !== "linux" || Deno.permissions.querySync({ name: "ffi" }).state !== "granted") return;
  const inodes = new Set(["udp", "udp6"].flatMap((family) => inodesAt(family, port)));
  const libc = Deno.dlopen("libc.so.6", {
    setsockopt: { parameters: ["i32", "i32", "i32", "buffer", "u32"], result: "i32" },
  });
  try {
    const value = new Int32Array([bytes]);
    for (const { name } of Deno.readDirSync("/proc/self/fd")) {
      if (inodes.has(target(name))) {
        libc.symbols.setsockopt(Number(name), SOL_SOCKET, SO_RCVBUF, value, value.byteLength);
      }
    }
  } finally {
    libc.close();
  }
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
