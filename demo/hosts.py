"""Two hosts on this machine: network namespaces, connected by a cable that can be cut.

A namespace is held by a process that exits with ours, and not by a name: so its processes exit when run.py is
killed, and the kernel removes the rest. The clock of the second host is ahead, because the clocks of two
computers differ.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

TOOLS = {"ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}
PORT = 7450
CLOCK_OFFSET_S = 5000  # clock of the second host
DEVICE = "eth0"


def missing():
    """Why hosts are unavailable, or None."""
    if os.geteuid() != 0:
        return "hosts are network namespaces, which need root"
    for tool, package in TOOLS.items():
        if not shutil.which(tool):
            return f"`{tool}` not found (Debian, Ubuntu: apt-get install {package})"
    tried = subprocess.run(["unshare", "--net", "--time", "--fork", "true"], capture_output=True, text=True)
    return f"cannot create a network namespace: {tried.stderr.strip()}" if tried.returncode else None


class Host:
    """A host: its own network, clock and directory."""

    def __init__(self, name, number, directory):
        self.name, self.address, self.directory = name, f"10.78.0.{number}", directory
        directory.mkdir(0o700, parents=True)
        ahead = str(CLOCK_OFFSET_S * (number - 1))
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--time", "--monotonic", ahead, "--fork", "--kill-child", "cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self.pid = self._holder.pid
        self._holder.stdin.write(b"\n")
        self._holder.stdin.flush()
        self._holder.stdout.readline()  # it is in its namespaces

    def command(self, *words):
        """The command line that runs a command on this host."""
        place = f"/proc/{self.pid}/ns"
        return ["nsenter", f"--net={place}/net", f"--time={place}/time_for_children", "--", *words]

    def run(self, *words, env=None):
        """The output of a command on this host, which must not fail."""
        return subprocess.run(self.command(*words), env=env, check=True, stdout=subprocess.PIPE, text=True).stdout

    def plug(self):
        """Assigns an address to its end of the cable, and enables it."""
        self.run("ip", "address", "add", f"{self.address}/24", "dev", DEVICE)
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "link", "set", DEVICE, "up")

    def close(self):
        """Stops its processes and the host. A second call does nothing."""
        network = os.stat(f"/proc/{self.pid}/ns/net").st_ino if self._holder.poll() is None else None
        while network and (left := self._processes(network)):
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self._holder.stdin.close()
        self._holder.wait()
        self._holder.stdout.close()

    def _processes(self, network):
        """Processes on this host, except those that hold it."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.stat(path / "ns/net").st_ino == network and not self._holds(path):
                    found.append(int(path.name))
            except OSError:
                pass  # it has exited
        return found

    def _holds(self, path):
        parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
        return str(self.pid) in (path.name, parent)


class Cable:
    """Two hosts and their cable. A context: removes everything at its end."""

    def __init__(self, domain, names, link):
        self._domain, self._names, self._link = domain, names, link
        self.hosts = []

    def environment(self, host):
        """Environment variables for the nodes of a host."""
        other = next(h for h in self.hosts if h is not host)
        listens = host is self.hosts[0]
        own = {
            "RNET_DIR": str(host.directory),
            "RNET_HOST": host.name,
            "RNET_NETWORK": "peers",
            "RNET_INSECURE": "1",
            "RNET_LISTEN": f"tcp/{host.address}:{PORT}" if listens else "",
            "RNET_CONNECT": "" if listens else f"tcp/{other.address}:{PORT}",
            "RNET_LINK": str(self._link),
        }
        environment = {**self._domain.environment(), **{key: value for key, value in own.items() if value}}
        for key in ("RNET_CONFIG", *(key for key, value in own.items() if not value)):
            environment.pop(key, None)
        return environment

    def cut(self):
        """Both ends lose the carrier."""
        self.hosts[1].run("ip", "link", "set", DEVICE, "down")

    def heal(self):
        self.hosts[1].run("ip", "link", "set", DEVICE, "up")

    def __enter__(self):
        try:
            for number, name in enumerate(self._names, 1):
                self.hosts.append(Host(name, number, self._domain.path / name))
            self._domain.hold()
            here, there = self.hosts
            peer = ("peer", "name", DEVICE, "netns", str(there.pid))
            here.run("ip", "link", "add", "name", DEVICE, "type", "veth", *peer)
            for host in self.hosts:
                host.plug()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *_):
        for host in self.hosts:
            host.close()
