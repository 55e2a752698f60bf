/** Keeps one network from surrounding a peer (eclipse): few neighbours of one subnet, and some that we chose ourselves. */

/** Most neighbours of one IPv4 /24 or IPv6 /48. */
const PEERS_PER_SUBNET = 2;
/** Places that only connections of our own making can take. */
export const OUTGOING_PEERS = 4;

/** The part of an address that one party is likely to own: /24 of IPv4, /48 of IPv6; null for this machine and its site. */
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

/** Counts neighbours by subnet and direction. */
export class PeerAdmission {
  private readonly limit: number;
  private readonly subnets = new Map<string, number>();
  private incoming = 0;
  private total = 0;

  /** `limit`: neighbours in all, more than four. */
  constructor(limit: number) {
    this.limit = limit;
  }

  /** Neighbours that we chose. */
  get outgoing(): number {
    return this.total - this.incoming;
  }

  /** Places left for those who come to us, networks aside. */
  get incomingRoom(): number {
    return Math.min(this.limit - this.total, this.limit - OUTGOING_PEERS - this.incoming);
  }

  /** True when there is a place for a neighbour. */
  allows(host: string, incoming: boolean): boolean {
    if (this.thereAt(subnetOf(host)) >= PEERS_PER_SUBNET || this.total >= this.limit) return false;
    return !incoming || this.incomingRoom > 0;
  }

  /** Takes a place for a neighbour; false when there is none for it. */
  take(host: string, incoming: boolean): boolean {
    if (!this.allows(host, incoming)) return false;
    const subnet = subnetOf(host);
    if (subnet !== null) this.subnets.set(subnet, this.thereAt(subnet) + 1);
    this.total++;
    if (incoming) this.incoming++;
    return true;
  }

  /** Gives the place of a neighbour back that `take` let in. */
  release(host: string, incoming: boolean): void {
    const subnet = subnetOf(host);
    const there = this.thereAt(subnet);
    if (subnet !== null && there <= 1) this.subnets.delete(subnet);
    else if (subnet !== null) this.subnets.set(subnet, there - 1);
    this.total--;
    if (incoming) this.incoming--;
  }

  private thereAt(subnet: string | null): number {
    return subnet === null ? 0 : this.subnets.get(subnet) ?? 0;
  }
}
