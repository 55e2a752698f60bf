"""What both of libtorrent's parts in the bench have in common: a session that knows the peers it is told of, and no others."""
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


def open_session(settings):
    """A session with `settings` besides the common ones."""
    return lt.session({**SETTINGS, **settings})


def add_torrent(session, info, directory, seeds=False):
    """Adds `info`, its data in `directory`: complete when it `seeds`. Answers the handle."""
    params = lt.add_torrent_params()
    params.ti = info
    params.save_path = directory
    if seeds:
        params.flags |= lt.torrent_flags.seed_mode
    return session.add_torrent(params)
