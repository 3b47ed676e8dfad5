"""What docs/clusters.md shows is accepted as written."""

import re
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
import yaml
from page_study import REST

from designopt import define

PAGE = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text()


def blocks_in(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.parametrize("block", blocks_in("yaml"))
def test_every_section_shown_is_a_valid_one(block: str) -> None:
    pytest.importorskip("dask_jobqueue")
    execution = define(**REST, **yaml.safe_load(block)).definition.execution
    assert execution.cluster is not None or execution.scheduler.startswith("tls://")


def test_the_table_of_a_cluster_lists_every_key() -> None:
    from designopt.study.sections.schema import ClusterSection

    table = PAGE[PAGE.index("| `use` |") : PAGE.index("- **Retirement.**")]
    listed = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| ([^|]*) \|", table, flags=re.MULTILINE)))
    assert set(listed) == set(ClusterSection.__annotations__)


def test_the_commands_shown_make_certificates_that_fit_each_other(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    subprocess.run(["sh", "-e", "-c", blocks_in("sh certificates")[0]], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=tmp_path / "ca.pem")
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    verified = subprocess.run(["openssl", "verify", "-CAfile", "ca.pem", "cert.pem"], cwd=tmp_path, check=False)
    assert verified.returncode == 0


def test_the_settings_of_dask_shown_are_those_that_are_read() -> None:
    import dask

    pytest.importorskip("dask_jobqueue")
    jobs, tls = (yaml.safe_load(text) for text in blocks_in("yaml dask"))
    for name in jobs["jobqueue"]["slurm"]:
        dask.config.get(f"jobqueue.slurm.{name}")  # KeyError where dask-jobqueue knows no such setting
    names = ("ca-file", "client.cert", "client.key")
    files = [dask.config.get(f"distributed.comm.tls.{name}", config=tls) for name in names]
    assert [Path(file).name for file in files] == ["ca.pem", "cert.pem", "key.pem"]


def test_the_script_of_the_coordinator_is_one_that_the_shell_understands() -> None:
    subprocess.run(["bash", "-n", "-c", blocks_in("sh coordinator")[0]], check=True)
