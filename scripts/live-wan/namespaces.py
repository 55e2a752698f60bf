"""Network namespaces whose only way out is a TUN device of ours. Needs root and `ip`."""
import ctypes
import fcntl
import os
import signal
import struct
import subprocess

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
# Packets come without four bytes about the protocol in front.
IFF_NO_PI = 0x1000
DEVICE = "wan0"
MTU_BYTES = 1500
# A device holds this many packets for us: more than programs send while we are busy, so that it never drops one itself.
DEVICE_PACKETS = 2000
# All addresses of the emulated network are reached through the device.
PREFIX_BITS = 8
# Reno is what line meters have to cope with at worst: it fills a router's queue until packets are lost.
CONGESTION_CONTROL = "reno"
CONGESTION_CONTROL_FILE = "/proc/sys/net/ipv4/tcp_congestion_control"
DIRECTORY = "/run/netns"

libc = ctypes.CDLL(None, use_errno=True)


def enter(namespace_fd):
    """Moves this thread, and what it starts from now on, to a namespace."""
    if libc.setns(namespace_fd, CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def open_tun():
    """A TUN device in the current namespace, as a file to read packets from and to write them to."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    return tun


class Namespaces:
    """Those of one run. `close` also ends every process in them: whoever should have ended it may be gone."""

    def __init__(self):
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.names = []

    def add(self, name, address):
        """Creates a namespace with that IPv4 address; returns its TUN device."""
        ip("netns", "add", name)
        self.names.append(name)
        namespace = os.open(f"{DIRECTORY}/{name}", os.O_RDONLY)
        try:
            enter(namespace)
            tun = open_tun()
            ip("link", "set", "lo", "up")
            ip("address", "add", f"{address}/{PREFIX_BITS}", "dev", DEVICE)
            ip("link", "set", DEVICE, "mtu", str(MTU_BYTES), "txqueuelen", str(DEVICE_PACKETS), "up")
            self.set_congestion_control()
        finally:
            enter(self.home)
            os.close(namespace)
        return tun

    @staticmethod
    def set_congestion_control():
        try:
            with open(CONGESTION_CONTROL_FILE, "w") as file:
                file.write(CONGESTION_CONTROL)
        except OSError:
            pass  # This kernel has it not: its own choice stays.

    def close(self):
        self.end_processes()
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], check=False)
        self.names = []

    def end_processes(self):
        """A process is in one of the namespaces if its file for the network is that of the namespace."""
        ours = {os.stat(f"{DIRECTORY}/{name}").st_ino for name in self.names}
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.stat(f"/proc/{process}/ns/net").st_ino in ours:
                    os.kill(int(process), signal.SIGKILL)
            except OSError:
                pass  # It has ended meanwhile.
