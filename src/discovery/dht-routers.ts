/** First contacts of the DHT. */

/** The routers that BitTorrent clients commonly contact first, `host:port`. */
export const DHT_ROUTERS: readonly string[] = [
  "router.bittorrent.com:6881",
  "dht.transmissionbt.com:6881",
  "dht.libtorrent.org:25401",
];
