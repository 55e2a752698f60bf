#!/usr/bin/env python3
"""A wide-area network between network namespaces, for kernels without netem. Needs root and Linux.

The first line of standard input describes the nodes, as JSON:
  {"nodes": [{"namespace": "a", "address": "52.0.1.1", "uplinkMbit": 4, "queueMs": 300, "delayMs": 20, "loss": 0, "lossBurst": 1, "isClosed": false}, ...]}
It creates the namespaces and prints "up". Further lines are commands: "hole 3" makes node 3 swallow everything from now on.
When standard input ends, it prints what it has carried as JSON, ends all processes in the namespaces and deletes them.

What a node sends takes its up-link's time (`uplinkMbit`, 0: none). A packet that finds `queueMs` or more before it in the
line is dropped. `loss` of the others is lost on the way, on average `lossBurst` in a row. They arrive after the `delayMs` of the sender and of the receiver.
Down-links take no time. Nobody can open a TCP connection to a closed node. It hears datagrams only from an address and
port to which it has sent one from the same port within the last minute; if it is deaf ("isDeaf"), it hears none.
"""
import gc
import heapq
import json
import os
import random
import select
import signal
import socket
import sys
from time import monotonic, process_time

sys.dont_write_bytecode = True
from namespaces import Namespaces

# Packets taken from a node before others have their turn.
BATCH_PACKETS = 8
MAX_PACKET_BYTES = 2048
# A packet that leaves the emulator this long after it was due counts as late.
LATE_S = 0.005
FLOW_S = 60
TCP = 6
UDP = 17
FLAGS_AT = 13
SYN_ACK = 0x12
SYN = 0x02
STDIN = 0
# Lowest priority of real time.
PRIORITY = 1


class Node:
    def __init__(self, tun, address, uplinkMbit, queueMs, delayMs, loss, lossBurst, isClosed, isDeaf=False, **_):
        self.tun = tun
        self.address = socket.inet_aton(address)
        self.byte_s = 8e-6 / uplinkMbit if uplinkMbit > 0 else 0
        self.queue_s = queueMs / 1000
        self.delay_s = delayMs / 1000
        self.loss = loss
        # Bursts by Gilbert and Elliott: the line is bad for so many packets, and loses them all. As many are lost in a row when
        # each is lost by itself.
        burst = max(lossBurst, 1 / (1 - loss))
        self.loss_begins = loss / (1 - loss) / burst
        self.loss_goes_on = 1 - 1 / burst
        self.is_bad = False
        # When the line has sent what it was given so far.
        self.free_s = 0.0
        # Of a closed node: when it last sent a datagram, by the other's address, the other's port and its own port.
        self.flows = {} if isClosed else None
        self.is_deaf = isDeaf

    def note(self, packet, now):
        """Remembers to whom a closed node sends datagrams."""
        if packet[9] == UDP:
            at = (packet[0] & 15) * 4
            self.flows[packet[16:20] + packet[at + 2:at + 4] + packet[at:at + 2]] = now

    def loses(self):
        """Whether the next packet is lost on the way."""
        self.is_bad = random.random() < (self.loss_goes_on if self.is_bad else self.loss_begins)
        return self.is_bad

    def refuses(self, packet, now):
        """Whether the router of a closed node drops what comes."""
        at = (packet[0] & 15) * 4
        if packet[9] == TCP:
            return packet[at + FLAGS_AT] & SYN_ACK == SYN
        if packet[9] == UDP:
            return self.is_deaf or self.flows.get(packet[12:16] + packet[at:at + 4], -FLOW_S) + FLOW_S <= now
        return False


class Network:
    def __init__(self, nodes):
        self.nodes = nodes
        self.by_tun = {node.tun: node for node in nodes}
        self.by_address = {node.address: node for node in nodes}
        self.poll = select.epoll()
        self.poll.register(STDIN, select.EPOLLIN)
        for node in nodes:
            self.poll.register(node.tun, select.EPOLLIN)
        # What is on the way: when it is due, a running number, the receiver's device, the packet.
        self.flights = []
        self.packets = self.dropped = self.lost = self.late = 0

    def command(self, line):
        word, number = line.split()
        if word != "hole":
            raise ValueError(line)
        node = self.nodes[int(number)]
        if self.by_address.pop(node.address, None) is not None:
            self.poll.unregister(node.tun)

    def run(self):
        """Carries packets until standard input ends."""
        flights, pending = self.flights, b""
        while True:
            wait_s = max(0, flights[0][0] - monotonic()) if flights else None
            for ready, _ in self.poll.poll(wait_s):
                if ready != STDIN:
                    self.take(self.by_tun[ready])
                    continue
                said = os.read(STDIN, 4096)
                if not said:
                    return
                *lines, pending = (pending + said).split(b"\n")
                for line in lines:
                    self.command(line.decode())
            if flights:
                self.deliver()

    def take(self, sender):
        """Takes what a node wants to send."""
        now, count, by_address, flights = monotonic(), self.packets, self.by_address, self.flights
        tun, byte_s, queue_s, delay_s, loss = sender.tun, sender.byte_s, sender.queue_s, sender.delay_s, sender.loss
        for _ in range(BATCH_PACKETS):
            try:
                packet = os.read(tun, MAX_PACKET_BYTES)
            except BlockingIOError:
                break
            # IPv6 has something else there, which is no address of ours.
            receiver = by_address.get(packet[16:20])
            if receiver is None:
                continue
            if sender.flows is not None:
                sender.note(packet, now)
            start_s = sender.free_s
            if start_s < now:
                start_s = now
            elif start_s - now > queue_s:
                self.dropped += 1
                continue
            sender.free_s = start_s = start_s + len(packet) * byte_s
            if loss and sender.loses():
                self.lost += 1
                continue
            if receiver.flows is not None and receiver.refuses(packet, now):
                continue
            count += 1
            heapq.heappush(flights, (start_s + delay_s + receiver.delay_s, count, receiver.tun, packet))
        self.packets = count

    def deliver(self):
        """Hands over what is due."""
        flights, now = self.flights, monotonic()
        late_s = now - LATE_S
        while flights and flights[0][0] <= now:
            due_s, _, tun, packet = heapq.heappop(flights)
            if due_s < late_s:
                self.late += 1
            try:
                os.write(tun, packet)
            except OSError:
                self.dropped += 1

    def carried(self):
        counts = {"packets": self.packets, "dropped": self.dropped, "lost": self.lost, "late": self.late}
        return {**counts, "cpuS": round(process_time(), 2)}


def run_in_real_time():
    """Other work on the machine should not look like a slow network."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY))
    except OSError:
        pass  # A container may not allow that.


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    run_in_real_time()
    setup = json.loads(sys.stdin.buffer.raw.readline())
    random.seed(setup["seed"])
    namespaces = Namespaces()
    try:
        network = Network([Node(namespaces.add(one["namespace"], one["address"]), **one) for one in setup["nodes"]])
        # Nothing here forms cycles, and a collection would hold packets up.
        gc.disable()
        print("up", flush=True)
        network.run()
        print(json.dumps(network.carried()), flush=True)
    finally:
        namespaces.close()


if __name__ == "__main__":
    main()
