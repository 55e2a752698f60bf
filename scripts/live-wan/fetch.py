#!/usr/bin/env python3
"""Waits for a line with an address on standard input, then copies what it sends to standard output as it comes.

It says "REQUEST <Unix ms>" on standard error when it asks.
"""
import sys
import time
import urllib.request

CHUNK_BYTES = 65536
# A newcomer may wait this long for its first bytes, and a viewer for the next ones.
TIMEOUT_S = 120

# No proxy of the environment: it is outside of this network.
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
address = sys.stdin.readline().strip()
print("REQUEST", round(time.time() * 1000), file=sys.stderr, flush=True)
try:
    with opener.open(address, timeout=TIMEOUT_S) as response:
        while data := response.read1(CHUNK_BYTES):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
except OSError as error:
    sys.exit(f"{error} {error.read(500) if hasattr(error, 'read') else ''}")
