"""What the numbers were taken on."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.harness.call import ROOT


def machine() -> dict[str, Any]:
    """Processor, cores that this process may use, and memory in GB."""
    return {
        "cpu": processor(),
        "cores": cores(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
    }


def cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", listing.read_text(), re.MULTILINE)
        if found:
            return found[1].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """What computes: Python, embgeo with its commit, numpy, scipy and their BLAS."""
    found = {"Python": platform.python_version(), "embgeo": embgeo_version()}
    for name in ("numpy", "scipy", "scikit-learn", "matplotlib", "typer"):
        found[name] = metadata.version(name)
    return found | blas()


def embgeo_version() -> str:
    import embgeo

    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    commit = described.stdout.strip()
    return f"{embgeo.__version__}, commit {commit}" if commit else embgeo.__version__


def blas() -> dict[str, str]:
    """The BLAS of numpy and that of scipy, with the threads that they use."""
    import numpy.linalg  # noqa: F401
    import scipy.linalg.blas  # noqa: F401  (both bring their own)
    import threadpoolctl

    found = {}
    for library in threadpoolctl.threadpool_info():
        if library["user_api"] == "blas":
            # numpy's own library is called scipy_openblas: only the folder tells them apart.
            whose = Path(library["filepath"]).parent.name.partition(".")[0]
            kernel = library.get("architecture", "")
            found[f"BLAS of {whose}"] = (
                f"{library['internal_api']} {library['version']} {kernel}, "
                f"{library['num_threads']} threads"
            )
    return found


def peer_versions(python: Path, names: tuple[str, ...]) -> dict[str, str]:
    """Versions of what is installed there, of these packages."""
    code = (
        "import importlib.metadata as m, json, sys\n"
        "have = {d.name.lower(): d.version for d in m.distributions()}\n"
        "print(json.dumps({n: have[n.lower()] for n in sys.argv[1:] if n.lower() in have}))\n"
    )
    done = subprocess.run(
        [str(python), "-c", code, *names], capture_output=True, text=True, check=True
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found
