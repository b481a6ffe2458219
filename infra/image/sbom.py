"""Write what is inside the image: its software bill of materials, CycloneDX 1.6 in JSON.

    /venv/bin/python infra/image/sbom.py --code /code --base /base --output sbom.cdx.json

Python distributions come from `importlib.metadata`, Debian packages from dpkg's database: what is
listed is what is there, not what was asked for. Written by hand because the usual tool for Python
(cyclonedx-py) brings a dozen packages into the build, puts the time and a random number into each
file, and sees no Debian packages; tests hold the result against CycloneDX's own schema. Libraries
that wheels bring inside (OpenBLAS in numpy's, say) are in no such list anywhere.

Run by the Dockerfile; needs `packaging` beside the standard library.
"""

from __future__ import annotations

import argparse
import json
import platform
import sysconfig
import uuid
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"
_IMAGE = "evertrain-image"


def bill(*, folders: Sequence[str], base: Path) -> dict[str, Any]:
    """Return the bill: the same for the same content, byte for byte.

    Args:
        folders: Where Python distributions are installed.
        base: Root of the base system.
    """
    found = {str(canonicalize_name(d.name)): d for d in distributions(path=list(folders))}
    python = [_python_component(name, found[name]) for name in sorted(found)]
    system = sorted(_system(base), key=lambda component: str(component["bom-ref"]))
    components = [*python, *system]
    own = found.get("evertrain")
    version = own.version if own is not None else ""
    image = {"type": "container", "bom-ref": _IMAGE, "name": "evertrain", "version": version}
    dependencies = [{"ref": _IMAGE, "dependsOn": [str(c["bom-ref"]) for c in components]}]
    for name in sorted(found):
        needed = sorted({_ref(n, found[n].version) for n in _needed(found[name]) if n in found})
        dependencies.append({"ref": _ref(name, found[name].version), "dependsOn": needed})
    content = json.dumps([components, dependencies], sort_keys=True)
    return {
        "$schema": _SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"component": image},
        "components": components,
        "dependencies": dependencies,
    }


def _ref(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version.replace('+', '%2B')}"


def _python_component(name: str, distribution: Distribution) -> dict[str, Any]:
    ref = _ref(name, distribution.version)
    component = {
        "type": "library", "bom-ref": ref, "name": distribution.name,
        "version": distribution.version, "purl": ref,
    }  # fmt: skip
    licenses = _licenses(distribution)
    return {**component, "licenses": licenses} if licenses else component


def _licenses(distribution: Distribution) -> list[dict[str, Any]]:
    """As the distribution says: an SPDX expression, else its classifiers, else its own words."""
    metadata = distribution.metadata
    for expression in metadata.get_all("License-Expression") or []:
        return [{"expression": expression}]
    said = [c.rpartition(" :: ")[2] for c in metadata.get_all("Classifier") or []
            if c.startswith("License :: ") and c != "License :: OSI Approved"]  # fmt: skip
    words = "\n".join(metadata.get_all("License") or []).strip().splitlines()
    return [{"license": {"name": name}} for name in dict.fromkeys(said or words[:1])]


def _needed(distribution: Distribution) -> Iterator[str]:
    for text in distribution.requires or []:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield str(canonicalize_name(requirement.name))


def _system(base: Path) -> Iterator[dict[str, Any]]:
    """The interpreter, the operating system, and the packages that it knows of."""
    python = f"pkg:generic/python@{platform.python_version()}"
    yield {
        "type": "application", "bom-ref": python, "name": "python",
        "version": platform.python_version(), "purl": python,
    }  # fmt: skip
    release = _fields((base / "usr/lib/os-release").read_text().replace("=", ": "))
    name, version = (release[key].strip('"') for key in ("ID", "VERSION_ID"))
    yield {
        "type": "operating-system", "bom-ref": f"{name}-{version}", "name": name, "version": version
    }  # fmt: skip
    for text in (base / "var/lib/dpkg/status").read_text().split("\n\n"):
        package = _fields(text)
        if package.get("Status", "").endswith(" installed"):
            ref = f"pkg:deb/{name}/{package['Package']}@{package['Version'].replace('+', '%2B')}"
            ref += f"?arch={package['Architecture']}&distro={name}-{version}"
            yield {
                "type": "library", "bom-ref": ref, "name": package["Package"],
                "version": package["Version"], "purl": ref,
            }  # fmt: skip


def _fields(text: str) -> dict[str, str]:
    """`Name: value` lines; those that go on below are cut short."""
    pairs = (line.split(": ", 1) for line in text.splitlines() if not line.startswith(" "))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--code", type=Path, required=True, help="root that our code lies below")
    parser.add_argument("--base", type=Path, required=True, help="root of the base system")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    site = sysconfig.get_path("purelib")
    content = bill(folders=[site, f"{given.code}{site}"], base=given.base)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
