"""Nodes of a cluster in network namespaces of their own, so that they can be cut off.

    if apart.enter():              # the program begins anew, where the network is ours
        net = apart.Network(6)
        cluster = Cluster(3, 1, places=net.places)
        net.cut(cluster.nodes[0])
        net.heal(cluster.nodes[0])

All of it ends with the program: nothing of the machine's own network is touched. It needs root,
or user namespaces for every client; enter() says why it cannot be, and returns False.

    this program --- bridge ---+--- node 0          a node that is cut off has its link down; one
                       |       +--- node 1          that is cut off from nodes only is moved to
                    aside -------- node 2           another bridge, which this program has too
"""

import os
import subprocess
import sys

MARK = "CLAIMD_APART"  # set where the network is ours
PORT = 7000
BRIDGE_MAC = "02:00:00:00:00:01"


def host(i):
    return "10.99.0.%d" % (i + 1)


def _run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True)


def unshare():
    words = ["unshare", "--net", "--mount"]
    return words if os.geteuid() == 0 else words + ["--map-root-user"]


def enter():
    """True: the network is ours; it has begun anew for that. False: it cannot be."""
    if os.environ.get(MARK):
        return True
    try:
        _run(*unshare(), "sh", "-c", "mount -t tmpfs none /run && ip netns add a && "
             "ip link add name v0 type veth peer name eth0 netns a && "
             "ip link add name b0 type bridge")
    except (OSError, subprocess.CalledProcessError) as error:
        print("no partitions: there are no network namespaces here (%s)"
              % (getattr(error, "stderr", "") or error), flush=True)
        return False
    sys.stdout.flush()
    os.environ[MARK] = "1"
    words = unshare() + [sys.executable, "-B", *sys.argv]
    os.execvp(words[0], words)


class Network:
    """So many places for nodes; see Cluster's `places`."""

    def __init__(self, count):
        self.count = count
        _run("mount", "-t", "tmpfs", "none", "/run")
        with open("/proc/sys/net/ipv4/ip_forward", "w", encoding="ascii") as f:
            f.write("0")
        self._ip("link set lo up")
        for bridge, address in (("bridge", "10.99.0.100/24"), ("aside", "10.99.0.101/32")):
            self._ip("link add name %s address %s type bridge" % (bridge, BRIDGE_MAC))
            self._ip("addr add %s dev %s" % (address, bridge))
            self._ip("link set %s up" % bridge)
        for i in range(count):
            self._ip("netns add n%d" % i)
            self._ip("link add name v%d type veth peer name eth0 netns n%d" % (i, i))
            self._ip("link set v%d master bridge up" % i)
            self._ip("-n n%d addr add %s/24 dev eth0" % (i, host(i)))
            self._ip("-n n%d link set lo up" % i)
            self._ip("-n n%d link set eth0 up" % i)
        self.places = [{"host": host(i), "port": PORT, "protected_mode": "no",
                        "prefix": ("nsenter", "--net=/run/netns/n%d" % i)}
                       for i in range(count)]

    @staticmethod
    def _ip(words):
        _run("ip", *words.split())

    def _number(self, node):
        return [host(i) for i in range(self.count)].index(node.host)

    def cut(self, node):
        """No node reaches it, and it reaches none; no connection is broken."""
        self._ip("link set v%d down" % self._number(node))

    def cut_from_nodes(self, *nodes):
        """They reach this program and each other, but no other node."""
        for i in map(self._number, nodes):
            self._ip("link set v%d master aside" % i)
            self._ip("route replace %s/32 dev aside" % host(i))

    def heal(self, *nodes):
        for i in map(self._number, nodes):
            self._ip("link set v%d master bridge up" % i)
            subprocess.run(["ip", "route", "del", host(i) + "/32", "dev", "aside"],
                           check=False, capture_output=True)
