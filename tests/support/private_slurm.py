"""A Slurm of one's own: munged and slurmctld in a folder, and nodes that are this host or only pretended."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol")
_PATIENCE = 60.0  # seconds for a daemon to answer
_CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={munge}/munge.socket,cred_expire=10
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldLogFile={folder}/ctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
EnforcePartLimits=ALL
SlurmdParameters=config_overrides
SlurmctldParameters=idle_on_node_suspend
SchedulerParameters=sched_interval=1,batch_sched_delay=0
GresTypes=gpu
"""
# Nodes that nobody starts are only believed in where something could start them.
_PRETENDED = "SuspendProgram=/bin/true\nResumeProgram=/bin/true\nSuspendTime=3600\nResumeTimeout=3600\n"


@dataclass(frozen=True)
class Cluster:
    """A running controller; `environment` leads Slurm's commands to it."""

    folder: Path
    environment: dict

    def run(self, *command, **options):
        """One of Slurm's commands, with what it says."""
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=120, **options
        )


def installed():
    """Whether Slurm and munge are here; daemons may lie where only an administrator looks."""
    return all(map(_found, PROGRAMS))


@contextmanager
def cluster(folder, nodes, munge, *, pretended=False):
    """A controller with the lines `nodes` of its configuration, until the end of the block."""
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    configuration = folder / "slurm.conf"
    names = {"host": _host(), "port": _free_port(), "user": getpass.getuser(), "folder": folder, "munge": munge}
    configuration.write_text(_CONFIGURATION.format(**names) + (_PRETENDED if pretended else "") + nodes)
    ours = ("SLURM_", "SBATCH_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    found = Cluster(folder, {**environment, "SLURM_CONF": str(configuration)})
    command = (_found("slurmctld"), "-D", "-c", "-f", str(configuration))
    with _daemon(command, found.environment, folder / "ctld.out"):
        _wait(lambda: "UP" in found.run("scontrol", "ping").stdout, folder / "ctld.out")
        yield found


@contextmanager
def running(folder, munge, gres):
    """Two nodes, n1 and n2, that take jobs; all of their devices are files that `gres` names."""
    first, second = _free_port(), _free_port()
    shape = f"NodeHostname={_host()} NodeAddr=127.0.0.1 CPUs=64 RealMemory=10000 Gres=gpu:4 State=UNKNOWN"
    lines = [f"NodeName={name} Port={port} {shape}" for name, port in (("n1", first), ("n2", second))]
    lines.append("PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP")
    folder.mkdir()
    shutil.copy(gres, folder / "gres.conf")
    with (
        cluster(folder, "\n".join(lines) + "\n", munge) as found,
        slurmd(found, "n1"),
        slurmd(found, "n2"),
    ):
        yield found


@contextmanager
def slurmd(cluster_, name):
    """The daemon of one node; all nodes are this host."""
    (cluster_.folder / "spool" / name).mkdir(exist_ok=True)
    command = (_found("slurmd"), "-D", "-N", name, "-f", str(cluster_.folder / "slurm.conf"))
    with _daemon(command, cluster_.environment, cluster_.folder / f"{name}.out"):
        _wait(lambda: "IDLE" in cluster_.run("scontrol", "show", "node", name).stdout, cluster_.folder / "ctld.log")
        yield


@contextmanager
def munged(folder):
    """Munge, with a key that nobody else knows."""
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    options = {
        "key-file": key,
        "socket": folder / "munge.socket",
        "pid-file": folder / "munge.pid",
        "log-file": folder / "munge.log",
        "seed-file": folder / "munge.seed",
    }
    words = (_found("munged"), "--foreground", "--force", *(f"--{name}={value}" for name, value in options.items()))
    with _daemon(words, dict(os.environ), folder / "munge.out"):
        _wait((folder / "munge.socket").exists, folder / "munge.log")
        yield folder


@contextmanager
def _daemon(command, environment, log):
    with log.open("w") as file:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(ready, log):
    end = time.monotonic() + _PATIENCE
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError(log.read_text() if log.exists() else f"{log} was never written")
        time.sleep(0.1)


def _found(program):
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def _host():
    return socket.gethostname().partition(".")[0]


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
