"""Runs on a real SLURM of one node (Debian's slurm-wlm), started by the test, on loopback only."""

import contextlib
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from dask_processes import free_port
from run_cases import PLUGINS, Recorder, dump, listed, make_study

from designopt.run.runner import run_study
from designopt.store.result import Result
from designopt.study.study import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="SLURM runs on Linux")]

PAGE = Path(__file__).parents[2] / "docs" / "clusters.md"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")

CONFIGURATION = """\
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=5
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=2
NodeName=localhost NodeAddr=127.0.0.1 NodeHostname={host} CPUs=4 RealMemory=4000
PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP
"""

STUDY = """\
study: on_slurm
model: {{use: bowl, pause: {pause}}}
space:
  a: {{low: -100, high: 100}}
objectives:
  - {{name: height, minimize: height}}
solver: {{use: walk, size: 20, rounds: {rounds}}}
execution:
  grace: 2 s
  cluster: {{use: slurm, jobs: 2, cores: 1, memory: 600 MB, walltime: 10 min, interface: lo}}
"""


def find(program):
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def installed():
    """Whether SLURM is here, after an attempt to install it."""
    if not all(find(p) for p in PROGRAMS) and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "timeout": 600}
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}  # starts no services
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(["apt-get", "update"], env=environment, **quiet)
            command = ["apt-get", "install", "-y", "--no-install-recommends", "slurm-wlm", "munge"]
            subprocess.run(command, env=environment, **quiet)
    return all(find(p) for p in PROGRAMS)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("SLURM's daemons run jobs as root here, and this is another user")
    if not installed():
        pytest.skip("SLURM is not installed and cannot be: apt-get install slurm-wlm")
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "munge.key").touch(mode=0o600)
    (folder / "munge.key").write_bytes(os.urandom(1024))
    host = socket.gethostname().partition(".")[0]
    text = CONFIGURATION.format(folder=folder, controller=free_port(), node=free_port(), host=host)
    configuration = folder / "slurm.conf"
    configuration.write_text(text)
    files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munge.pid", "log-file": "munge.log"}
    munge = [f"--{option}={folder / name}" for option, name in (files | {"seed-file": "munge.seed"}).items()]
    commands = (
        [find("munged"), "--foreground", "--force", *munge],
        [find("slurmctld"), "-D", "-f", str(configuration)],
        [find("slurmd"), "-D", "-N", "localhost", "-f", str(configuration)],
    )
    started = []
    try:
        with pytest.MonkeyPatch.context() as patch, (folder / "daemons.log").open("w") as log:
            patch.setenv("SLURM_CONF", str(configuration))
            for command in commands:
                started.append(subprocess.Popen(command, stdout=log, stderr=log))
                time.sleep(1.0)
            deadline = time.monotonic() + 60
            while "idle" not in slurm_output("sinfo", "--noheader", "--format", "%T"):
                assert time.monotonic() < deadline, (folder / "daemons.log").read_text()[-3000:]
                time.sleep(0.5)
            yield folder
            slurm_output("scancel", "--user", "root")
            ended(30)
    finally:
        for process in reversed(started):
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def slurm_output(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout


def ended(seconds):
    """Whether no job is left within `seconds`."""
    deadline = time.monotonic() + seconds
    while slurm_output("squeue", "--noheader") and time.monotonic() < deadline:
        time.sleep(0.5)
    return not slurm_output("squeue", "--noheader")


def states():
    """How the jobs that SLURM remembers ended, by number."""
    listing = slurm_output("scontrol", "show", "job", "--oneliner")
    return {int(n): state for n, state in re.findall(r"JobId=(\d+) .*?JobState=(\w+)", listing)}


def study(values, pause, executor="dask", **changes):
    settings = {"use": "slurm", "jobs": 2, "cores": 1, "memory": 600 * 10**6, "walltime": 600.0, "interface": "lo"}
    execution = {"executor": executor} | ({"cluster": Cluster(**settings | changes)} if executor == "dask" else {})
    stages = (listed(values),)
    return make_study(settings={"pause": pause}, names=("a",), low=-100, high=100, stages=stages, execution=execution)


def serially(values, pause, path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.sleep", lambda seconds: None)
        return dump(run_study(study(values, pause, "serial"), path))


def test_two_jobs_one_of_which_is_cancelled_give_the_same_journal(slurm, tmp_path):
    values = np.linspace(-1, 1, 150)
    cancelled = []

    class Cancelling(Recorder):
        def update(self, snapshot):
            super().update(snapshot)
            if snapshot.evaluations > 30 and not cancelled:
                cancelled.append(slurm_output("squeue", "--noheader", "--format", "%i").split()[0])
                slurm_output("scancel", cancelled[0])

    result = run_study(study(values, 0.1), tmp_path / "s", progress=Cancelling())
    assert dump(result) == serially(values, 0.1, tmp_path / "serial")
    assert states()[int(cancelled[0])] == "CANCELLED"
    assert ended(30)


def test_workers_leave_before_the_wall_time_of_their_job_and_new_jobs_follow(slurm, tmp_path):
    before = max(states(), default=0)
    values = np.linspace(-1, 1, 400)
    short = study(values, 0.3, jobs=1, cores=2, memory=1200 * 10**6, walltime=60.0)
    result = run_study(short, tmp_path / "s")
    assert dump(result) == serially(values, 0.3, tmp_path / "serial")
    assert {e["kind"] for e in result.events} == {"waiting_for_jobs"}  # nobody was lost
    ours = {number: state for number, state in states().items() if number > before}
    assert len(ours) >= 2
    assert "TIMEOUT" not in ours.values()
    assert ours[before + 1] == "COMPLETED"


def command(name, *arguments, **options):
    words = [sys.executable, "-m", "designopt", name, *map(str, arguments), "--plugin", str(PLUGINS)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def evaluations(store):
    """How many the journal holds."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{store}/journal.db?mode=ro", uri=True)) as journal:
            return journal.execute("SELECT count(*) FROM evaluation").fetchone()[0]
    except sqlite3.Error:
        return 0


def serial_journal(folder, file):
    with command("run", file, "-o", "serial.study", "--executor", "serial", cwd=folder) as process:
        assert process.wait(timeout=300) == 0
    return dump(Result.open(folder / "serial.study"))


def test_a_coordinator_that_is_killed_loses_no_result_and_its_jobs_end(slurm, tmp_path):
    file = tmp_path / "study.yaml"
    file.write_text(STUDY.format(pause="0.05", rounds=20))
    with command("run", file, "-o", "s.study", cwd=tmp_path, start_new_session=True) as process:
        deadline = time.monotonic() + 120
        while evaluations(tmp_path / "s.study") < 60:
            assert time.monotonic() < deadline
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
    assert ended(90)
    recorded = evaluations(tmp_path / "s.study")
    assert 60 <= recorded < 400
    with command("resume", "s.study", cwd=tmp_path) as process:
        assert process.wait(timeout=300) == 0, process.stdout.read()
    assert dump(Result.open(tmp_path / "s.study")) == serial_journal(tmp_path, file)


def test_the_coordinator_as_a_job_goes_on_in_a_new_one_when_its_time_is_up(slurm, tmp_path):
    script = re.search(r"```sh coordinator\n(.*?)```", PAGE.read_text(), re.DOTALL).group(1)
    changes = {
        "--time=24:00:00": "--time=00:02:00",
        "TERM@300": "TERM@60",
        "--mem=4G": "--mem=800M",
        "designopt run knee.yaml": f"{sys.executable} -m designopt run knee.yaml --plugin {PLUGINS}",
        "designopt resume": f"{sys.executable} -m designopt resume --plugin {PLUGINS}",
    }
    for old, new in changes.items():
        assert old in script
        script = script.replace(old, new)
    (tmp_path / "coordinator.sh").write_text(script)
    (tmp_path / "knee.yaml").write_text(STUDY.format(pause="0.4", rounds=25))
    store = tmp_path / "results" / "knee.study"
    subprocess.run(["sbatch", "coordinator.sh"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    assert ended(420)
    reasons = [session["reason"] for session in Result.open(store).sessions]
    assert reasons[0] == "interrupted"
    assert reasons[-1] == "done"
    assert dump(Result.open(store)) == serial_journal(tmp_path, tmp_path / "knee.yaml")
