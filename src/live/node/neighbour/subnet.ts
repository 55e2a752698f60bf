/** Which network an address belongs to. */

/** The part of an address that one party is likely to own: /24 of IPv4, /48 of IPv6; null for this machine and its local network. */
export function subnetOf(host: string): string | null {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(host)?.[1] ?? host;
  const v4 = /^(\d+)\.(\d+)\.(\d+)\.\d+$/.exec(mapped);
  if (v4 !== null) {
    const [a, b] = [Number(v4[1]), Number(v4[2])];
    const isLocal = a === 10 || a === 127 || (a === 192 && b === 168) || (a === 172 && b >= 16 && b < 32) ||
      (a === 169 && b === 254);
    return isLocal ? null : `${a}.${b}.${v4[3]}`;
  }
  if (mapped === "::1" || /^f(e[89ab]|[cd])/i.test(mapped)) return null;
  const [head = "", tail] = mapped.toLowerCase().split("::");
  const groups = head === "" ? [] : head.split(":");
  const behind = tail === undefined || tail === "" ? [] : tail.split(":");
  while (tail !== undefined && groups.length + behind.length < 8) groups.push("0");
  return [...groups, ...behind].slice(0, 3).map((group) => group.replace(/^0+(?=.)/, "")).join(":");
}
