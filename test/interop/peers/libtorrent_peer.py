#!/usr/bin/python3
"""A libtorrent peer for the interop tests. Ends when its standard input does.

usage: libtorrent_peer.py seed|fetch|idle TORRENT_OR_MAGNET DIR HOST:PORT [options]
       libtorrent_peer.py dht NODES HOST
       libtorrent_peer.py strict-dht HOST HOST ...
       libtorrent_peer.py create FILE_OR_DIR TORRENT hybrid|v2 [PIECE_BYTES]
       libtorrent_peer.py names TORRENT

seed, fetch and idle (joins, asks for no piece) print "READY <port>" when they listen (seed: when the files are checked),
"BY utp|tcp <ms>" when the first connection stands, with the time since it was told of the peers,
"PEERS <n>" when that number changes, "HAS <n>" when the first peer's number of pieces does, and "DONE" when every piece is
there. Of trackers, DHT, LSD and PEX only those named
by an option are used. "strict-dht" runs DHT nodes that give a place in their tables only to nodes whose ids fit their
addresses (BEP 42), one for each host; it prints "READY <port> ..." once they know each other, and "NODES <n> ..." with how
many each knows when that changes. "names" prints "NAMES <JSON>": infohashes and numbered files that are no padding. "dht" runs a small DHT of its own and prints "READY <port> ..." of its nodes.
"""
import argparse
import json
import os
import sys
import threading
import time
import warnings

import libtorrent as lt

warnings.simplefilter("ignore", DeprecationWarning)

POLL_S = 0.03
# Of peer_info::flags; the binding does not name it.
UTP_SOCKET = 1 << 17
BASE = {
    "enable_dht": False,
    "enable_lsd": False,
    "enable_upnp": False,
    "enable_natpmp": False,
    "enable_incoming_utp": False,
    "enable_outgoing_utp": False,
    "allow_multiple_connections_per_ip": True,
    "close_redundant_connections": False,
    "unchoke_slots_limit": 50,
    "alert_mask": 0,
    "user_agent": "interop-libtorrent",
    # Loopback is no address that a public DHT would take.
    "dht_restrict_routing_ips": False,
    "dht_restrict_search_ips": False,
    "dht_ignore_dark_internet": False,
    "dht_prefer_verified_node_ids": False,
    "dht_enforce_node_id": False,
    "dht_bootstrap_nodes": "",
}


def end_with_stdin():
    sys.stdin.read()
    os._exit(0)


def say(*words):
    print(*words, flush=True)


def endpoint(text):
    host, port = text.rsplit(":", 1)
    return host.strip("[]"), int(port)


def listening(session):
    while session.listen_port() == 0:
        time.sleep(POLL_S)
    return session.listen_port()


def dht(count, host):
    nodes = [lt.session({**BASE, "enable_dht": True, "listen_interfaces": f"{host}:0"}) for _ in range(count)]
    ports = [listening(node) for node in nodes]
    for node in nodes:
        for port in ports:
            if port != node.listen_port():
                node.add_dht_node((host.strip("[]"), port))
    while any(node.status().dht_nodes < count - 1 for node in nodes):
        time.sleep(POLL_S)
    say("READY", *ports)
    threading.Event().wait()


def strict_dht(*hosts):
    strict = {**BASE, "enable_dht": True, "dht_enforce_node_id": True}
    nodes = [lt.session({**strict, "listen_interfaces": f"{host}:0"}) for host in hosts]
    ports = [listening(node) for node in nodes]
    told = None
    while True:
        known = [node.status().dht_nodes for node in nodes]
        if told is None:
            for node in nodes:
                for host, port in zip(hosts, ports):
                    if port != node.listen_port():
                        node.add_dht_node((host.strip("[]"), port))
            if all(n == len(nodes) - 1 for n in known):
                say("READY", *ports)
                told = known
        elif known != told:
            told = known
            say("NODES", *told)
        time.sleep(POLL_S)


def create(source, target, versions, piece_bytes=64 * 1024):
    storage = lt.file_storage()
    lt.add_files(storage, source)
    # Unless told otherwise, libtorrent makes both v1 and v2.
    flags = lt.create_torrent_flags_t.v2_only if versions == "v2" else 0
    maker = lt.create_torrent(storage, int(piece_bytes), int(flags))
    lt.set_piece_hashes(maker, os.path.dirname(os.path.abspath(source)))
    with open(target, "wb") as file:
        file.write(lt.bencode(maker.generate()))


def names(torrent):
    info = lt.torrent_info(torrent)
    hashes, files = info.info_hashes(), info.files()
    say("NAMES", json.dumps({
        "v1": str(hashes.v1) if hashes.has_v1() else "",
        "v2": str(hashes.v2)[:40] if hashes.has_v2() else "",
        "files": [f"{n} {files.file_path(n)}" for n in range(files.num_files())
                  if not files.file_flags(n) & lt.file_flags_t.flag_pad_file],
    }))


def peer(a):
    settings = {**BASE, "listen_interfaces": a.listen, "enable_lsd": a.lsd}
    if a.utp:
        settings.update({"enable_incoming_utp": True, "enable_outgoing_utp": True})
    if a.no_tcp:
        settings.update({"enable_incoming_tcp": False, "enable_outgoing_tcp": False})
    if a.dht_node:
        settings["enable_dht"] = True
    if a.upload_limit:
        # Loopback belongs to the local class, which global limits leave alone.
        settings["upload_rate_limit"] = a.upload_limit
    if a.encrypt:
        settings.update({"in_enc_policy": 0, "out_enc_policy": 0, "allowed_enc_level": 2})
    session = lt.session(settings)
    if a.upload_limit:
        session.set_peer_class_filter(lt.ip_filter())
    flags = lt.torrent_flags
    if a.source.startswith("magnet:"):
        params = lt.parse_magnet_uri(a.source)
    else:
        params = lt.add_torrent_params()
        params.ti = lt.torrent_info(a.source)
    params.save_path = a.directory
    params.flags &= ~(flags.paused | flags.auto_managed)
    params.flags |= flags.override_trackers
    params.trackers = a.tracker
    if not a.pex:
        params.flags |= flags.disable_pex
    if a.super_seeding:
        params.flags |= flags.super_seeding
    if a.mode == "idle":
        params.flags |= flags.default_dont_download
    handle = session.add_torrent(params)
    if a.upload_limit:
        handle.set_upload_limit(a.upload_limit)
    if a.dht_node:
        session.add_dht_node(endpoint(a.dht_node))
    if a.mode == "seed":
        while not handle.status().is_seeding:
            time.sleep(POLL_S)
    say("READY", listening(session))
    for address in a.peer:
        handle.connect_peer(endpoint(address))
    told_done, told_peers, told_pieces, announced = a.mode == "seed", 0, 0, 0.0
    began, told_by = time.monotonic(), False
    while True:
        status = handle.status()
        if not told_done and status.is_seeding:
            told_done = True
            say("DONE")
        if status.num_peers != told_peers:
            told_peers = status.num_peers
            say("PEERS", told_peers)
        peers = handle.get_peer_info()
        if not told_by and peers and not peers[0].flags & (lt.peer_info.connecting | lt.peer_info.handshake):
            told_by = True
            say("BY", "utp" if peers[0].flags & UTP_SOCKET else "tcp", round(1000 * (time.monotonic() - began)))
        pieces = sum(peers[0].pieces) if peers else 0
        if pieces != told_pieces:
            told_pieces = pieces
            say("HAS", told_pieces)
        if a.dht_node and time.monotonic() - announced > 2:
            announced = time.monotonic()
            handle.force_dht_announce()
        time.sleep(POLL_S)


def main():
    threading.Thread(target=end_with_stdin, daemon=True).start()
    mode = sys.argv[1]
    if mode == "dht":
        return dht(int(sys.argv[2]), sys.argv[3])
    if mode == "strict-dht":
        return strict_dht(*sys.argv[2:])
    if mode == "names":
        return names(sys.argv[2])
    if mode == "create":
        return create(*sys.argv[2:])
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["seed", "fetch", "idle"])
    parser.add_argument("source")
    parser.add_argument("directory")
    parser.add_argument("listen")
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--tracker", action="append", default=[])
    parser.add_argument("--dht-node")
    parser.add_argument("--lsd", action="store_true")
    parser.add_argument("--pex", action="store_true")
    parser.add_argument("--encrypt", action="store_true")
    parser.add_argument("--super-seeding", action="store_true")
    parser.add_argument("--utp", action="store_true")
    parser.add_argument("--no-tcp", action="store_true")
    parser.add_argument("--upload-limit", type=int, default=0)
    peer(parser.parse_args())


main()
