/** IPv4 addresses on sockets of IPv6: systems write them as `::ffff:a.b.c.d`, everybody else as `a.b.c.d`. */
import net from "node:net";

const DOTTED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
const IN_HEX = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i;

/** The address as a socket of IPv6 takes it. */
export function mapped(host: string): string {
  return net.isIPv4(host) ? `::ffff:${host}` : host;
}

/** The address as others write it. */
export function unmapped(host: string): string {
  const dotted = DOTTED.exec(host);
  if (dotted !== null) return dotted[1]!;
  const hex = IN_HEX.exec(host);
  if (hex === null) return host;
  const [high, low] = [parseInt(hex[1]!, 16), parseInt(hex[2]!, 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}
