"""Build spring.fmu from the C sources in this folder: ``python build.py``. Needs a C compiler and FMPy."""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from fmpy import platform, sharedLibraryExtension

HERE = Path(__file__).parent
SOURCES = ("spring.c", "spring_model.h")


def build(target: Path, compiler: str = "cc") -> None:
    """Compile the sources and write the FMU to `target`."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        library = Path(folder) / f"spring{sharedLibraryExtension}"
        subprocess.run([compiler, "-O2", "-fPIC", "-shared", "-o", library, HERE / "spring.c", "-lm"], check=True)
        archive.write(HERE / "modelDescription.xml", "modelDescription.xml")
        archive.write(library, f"binaries/{platform}/{library.name}")
        for name in SOURCES:
            archive.write(HERE / name, f"sources/{name}")


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "spring.fmu")
