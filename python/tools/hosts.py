"""Runs programs on three virtual hosts of this machine and compares what their network interfaces have sent with what was planned.

    python python/tools/hosts.py [--launcher target/mpich-env/bin/mpirun] [--size 600] [--hosts 3]

The hosts are network namespaces behind a switch, with links of 1 Gbit/s each way; names, shared memory and networks of their own make MPI use the links. Needs Linux, root and the commands `ip`, `tc` and
`unshare`; says so and ends with 0 where they are missing. For every program, the bytes that each rank has sent have to be those of its plan, and the counter of its interface has to agree with
them but for headers and acknowledgements.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
NETWORK = "10.79.0"
SWITCH = "tws"

#: A frame of 1500 bytes carries 1448 bytes of data, and every second one is acknowledged. What starts and ends a run is sent beside it.
HEADERS, START = 1.10, 400_000

PROGRAMS = {
    "product": "a = default_rng(1).normal(size=(n, n)); b = default_rng(2).normal(size=(n, n)); wanted = [a @ b]",
    "gram": "x = default_rng(1).normal(size=(20 * n, n // 4)); wanted = [x.T @ x]",
    "standard": "x = default_rng(1).normal(size=(20 * n, n // 4)); wanted = [(x - x.mean()) / x.std()]",
    "power": "x = default_rng(1).normal(size=(n, n)); v = tw.ones(n)\nfor _ in range(5): v = x @ v; v = v / abs(v).max()\nwanted = [v]",
    "attention": "q, k, v = (default_rng(s).normal(size=(2 * n, 64)) for s in (1, 2, 3)); e = tw.exp(q @ k.T / 8); "
    "wanted = [(e / e.sum(axis=1)[:, None]) @ v]",
}

SCRIPT = """
import json, os, sys, time
import tilewright as tw
from tilewright.random import default_rng
name, program, n, directory = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]

def counter():
    return int(open("/sys/class/net/eth0/statistics/tx_bytes").read())

with tw.Session(engine="mpi", threads=1) as session:
    float(tw.ones(8).sum())
    scope = {"default_rng": default_rng, "tw": tw, "n": n}
    exec(program, scope)
    time.sleep(0.3)
    before, began, report = counter(), time.perf_counter(), session.report()
    tw.persist(*scope["wanted"])
    seconds = time.perf_counter() - began
    time.sleep(0.3)
    after, then = counter(), session.report()
    found = {key: then[key] - report[key] for key in ("sent_bytes", "received_bytes", "planned_sent_bytes")}
    found.update(interface=after - before, seconds=seconds, host=os.uname().nodename)
    with open(f"{directory}/{name}-{session.rank}.json", "w") as file:
        json.dump(found, file)
"""


def run(*command: str) -> None:
    subprocess.run(command, check=True)


@contextlib.contextmanager
def hosts(n: int) -> Iterator[list[str]]:
    """The addresses of so many hosts, which exist inside of the block."""
    names = [f"twv{k}" for k in range(1, n + 1)]
    try:
        run("ip", "netns", "add", SWITCH)
        run("ip", "-n", SWITCH, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", SWITCH, "link", "set", "br0", "up")
        for k, name in enumerate(names, 1):
            run("ip", "netns", "add", name)
            run("ip", "link", "add", f"twl{k}", "netns", SWITCH, "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "-n", SWITCH, "link", "set", f"twl{k}", "master", "br0", "up")
            run("ip", "-n", name, "addr", "add", f"{NETWORK}.{k}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
            limit = ("root", "tbf", "rate", "1gbit", "burst", "256kb", "latency", "50ms")
            run("tc", "-n", name, "qdisc", "add", "dev", "eth0", *limit)
            run("tc", "-n", SWITCH, "qdisc", "add", "dev", f"twl{k}", *limit)
        yield [f"{NETWORK}.{k}" for k in range(1, n + 1)]
    finally:
        for name in [*names, SWITCH]:
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)


def agent(directory: Path) -> Path:
    """What the launcher calls instead of ssh: it runs a command on the host with an address."""
    path = directory / "agent"
    path.write_text(
        "#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done\nk=${1##*.}; shift\n"
        'exec ip netns exec "twv$k" unshare --uts --ipc bash -c "hostname twv$k; $*"\n'
    )
    path.chmod(0o755)
    return path


def is_open_mpi(launcher: Path) -> bool:
    return "Open MPI" in subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False).stdout


def command_of(launcher: Path, addresses: list[str], agent: Path) -> list[str]:
    if is_open_mpi(launcher):
        network = ["--mca", "btl_tcp_if_include", "eth0", "--prtemca", "prte_if_include", "eth0"]
        # Without their own, hosts of one kernel would be taken for one.
        return [str(launcher), "--prtemca", "plm_ssh_agent", str(agent), "--host", ",".join(addresses), *network]
    return [str(launcher), "-launcher", "ssh", "-launcher-exec", str(agent), "-hosts", ",".join(addresses)]


def missing() -> str | None:
    if os.geteuid() != 0:
        return "not root"
    return next((f"no command {name}" for name in ("ip", "tc", "unshare") if shutil.which(name) is None), None)


def check(name: str, found: list[dict[str, float]]) -> list[str]:
    """What is wrong with what the ranks of a program have sent."""
    wrong = []
    for rank, of in enumerate(found):
        if of["sent_bytes"] != of["planned_sent_bytes"]:
            wrong.append(f"{name}: rank {rank} sent {of['sent_bytes']} bytes, planned {of['planned_sent_bytes']}")
        most = of["sent_bytes"] * HEADERS + of["received_bytes"] * (HEADERS - 1) + START
        if not of["sent_bytes"] <= of["interface"] <= most:
            wrong.append(f"{name}: the interface of rank {rank} sent {of['interface']} bytes for {of['sent_bytes']}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launcher", type=Path, default=ROOT / "target/mpich-env/bin/mpirun")
    parser.add_argument("--size", type=int, default=600)
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    options = parser.parse_args()
    if (reason := missing()) is not None:
        print(f"no virtual hosts here: {reason}")
        return 0
    wrong: list[str] = []
    settings = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with tempfile.TemporaryDirectory() as temporary, hosts(options.hosts) as addresses:
        directory = Path(temporary)
        script = directory / "script.py"
        script.write_text(SCRIPT)
        launch = command_of(options.launcher, addresses, agent(directory))
        print(f"{'program':12} {'host':6} {'planned':>12} {'sent':>12} {'interface':>12} {'seconds':>8}")
        for name in options.programs.split(","):
            of_run = [sys.executable, str(script), name, PROGRAMS[name], str(options.size), temporary]
            command = ["ip", "netns", "exec", "twv1", *launch, "-n", str(options.hosts), *of_run]
            started = time.perf_counter()
            ended = subprocess.run(command, env=settings, timeout=300, check=False)
            if ended.returncode != 0:
                wrong.append(f"{name}: the launcher ended with {ended.returncode} after {time.perf_counter() - started:.0f} s")
                continue
            found = [json.loads((directory / f"{name}-{rank}.json").read_text()) for rank in range(options.hosts)]
            for of in found:
                columns = f"{of['planned_sent_bytes']:12} {of['sent_bytes']:12} {of['interface']:12} {of['seconds']:8.3f}"
                print(f"{name:12} {of['host']:6} {columns}")
            wrong += check(name, found)
    for text in wrong:
        print(text, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
