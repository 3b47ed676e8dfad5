"""FMUs for tests, compiled from C sources: FMI 2.0 from studies/spring_fmu, FMI 3.0 from spring3.c."""

import importlib.util
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "designopt_external" / "data"
SOURCES = Path(__file__).parents[1] / "studies" / "spring_fmu"

#: Marks tests that need FMPy and a C compiler.
needs_fmus = pytest.mark.skipif(
    importlib.util.find_spec("fmpy") is None or shutil.which("cc") is None,
    reason="needs FMPy (pip install 'designopt[fmu]') and a C compiler",
)
#: Marks tests that need MuJoCo.
needs_mujoco = pytest.mark.skipif(
    importlib.util.find_spec("mujoco") is None, reason="needs MuJoCo (pip install 'designopt[mujoco]')"
)


def fmu(
    target: Path,
    version: int = 2,
    *,
    code: tuple[str, str] = ("", ""),
    description: tuple[str, str] = ("", ""),
    platform: str = "",
) -> Path:
    """Write the FMU to `target`, with a replaced part of its code or description, or for another platform."""
    import fmpy

    source = (SOURCES / "spring.c" if version == 2 else HERE / "spring3.c").read_text()
    xml = (SOURCES / "modelDescription.xml" if version == 2 else HERE / "spring3.xml").read_text()
    assert code[0] in source
    assert description[0] in xml
    folder = target.parent / f"{target.stem}_build"
    folder.mkdir()
    text = source.replace(*code, 1) if code[0] else source
    (folder / "spring.c").write_text(text + ("" if version == 2 else _absent(text)))
    library = folder / "spring.so"
    command = ["cc", "-O2", "-fPIC", "-shared", "-I", str(SOURCES), "-o", str(library), str(folder / "spring.c"), "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    platform = platform or (fmpy.platform if version == 2 else fmpy.platform_tuple)
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("modelDescription.xml", xml.replace(*description, 1) if description[0] else xml)
        archive.write(library, f"binaries/{platform}/spring{fmpy.sharedLibraryExtension}")
    shutil.rmtree(folder)
    return target


def _absent(source: str) -> str:
    """Functions of FMI 3.0 for capabilities that the description does not claim."""
    from fmpy import fmi3

    names = {n for kind in (fmi3.FMU3Model, fmi3.FMU3Slave) for n in dir(kind) if n.startswith("fmi3")}
    return "".join(f"Status {name}(void) {{ return ERROR; }}\n" for name in sorted(names) if f" {name}(" not in source)
