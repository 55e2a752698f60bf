/** Ports of what an engine finds in the network of `leaks.ts`. */
export const PORTS = {
  tracker: 80,
  /** Nobody answers at these. */
  secureTracker: 443,
  pageTracker: 8008,
  udpTracker: 6969,
  dht: 6881,
  webSeed: 8002,
  files: 8003,
  lists: 8004,
  liveTracker: 8006,
  channel: 8007,
  /** A peer that names another one, which nobody else names; and one of a broadcast. At the last two is nobody. */
  teller: 7001,
  pexPeer: 7002,
  livePeer: 7003,
} as const;
