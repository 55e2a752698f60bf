"""What both of libtorrent's parts in the bench have in common: a session that knows the peers it is told of, and no others."""
import os

import libtorrent as lt

SETTINGS = {
    "listen_interfaces": "127.0.0.1:0",
    "enable_dht": False,
    "enable_lsd": False,
    "enable_upnp": False,
    "enable_natpmp": False,
    "enable_incoming_utp": False,
    "enable_outgoing_utp": False,
    "allow_multiple_connections_per_ip": True,
}

# A DHT on loopback, whose nodes share one address.
LOCAL_DHT = {
    "enable_dht": True,
    "dht_restrict_routing_ips": False,
    "dht_restrict_search_ips": False,
    "dht_ignore_dark_internet": False,
    "dht_prefer_verified_node_ids": False,
    "dht_enforce_node_id": False,
    # Also for other queries than announces.
    "dht_upload_rate_limit": 100_000,
}


# For benches of uTP ($LT_UTP is the address to listen at).
UTP_ONLY = {
    "enable_incoming_utp": True,
    "enable_outgoing_utp": True,
    "enable_incoming_tcp": False,
    "enable_outgoing_tcp": False,
}


def open_session(settings, dht_node=""):
    """A session with `settings` besides the common ones; `dht_node` (host:port) is its first contact of the DHT."""
    utp_host = os.environ.get("LT_UTP")
    if utp_host:
        settings = {**UTP_ONLY, "listen_interfaces": f"{utp_host}:0", **settings}
    dht = {**LOCAL_DHT, "dht_bootstrap_nodes": dht_node} if dht_node else {}
    session = lt.session({**SETTINGS, **dht, **settings})
    if dht_node:
        host, port = dht_node.split(":")
        session.add_dht_node((host, int(port)))
    return session


def add_torrent(session, info, directory, seeds=False):
    """Adds `info`, its data in `directory`: complete when it `seeds`. Returns the handle."""
    params = lt.add_torrent_params()
    params.ti = info
    params.save_path = directory
    if seeds:
        params.flags |= lt.torrent_flags.seed_mode
    return session.add_torrent(params)


def add_magnet(session, magnet, directory):
    """Adds a magnet link; returns the handle and, once peers sent it, the metadata."""
    params = lt.parse_magnet_uri(magnet)
    params.save_path = directory
    handle = session.add_torrent(params)
    while True:
        session.wait_for_alert(1000)
        for alert in session.pop_alerts():
            if isinstance(alert, lt.metadata_received_alert):
                return handle, handle.torrent_file()
