"""Whether a program would take a command line, without running it: asked of its real parser."""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import runpy
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import typer

from pipelines.cli import app
from tests.docs.documented import ROOT

# Nothing listens there: what kubectl takes ends with a refused connection, what it does not before.
_NOWHERE = ["--server=http://127.0.0.1:1"]
# Files that a page tells its reader to write.
_WRITTEN_BY_THE_READER = {"train.py"}


def refusal(command: str, *, whole: bool, project: Path) -> str:
    """Return why a program would not take a command line; empty if it would.

    Args:
        command: As the documentation shows it.
        whole: Nothing may be missing; else a sentence names it, and leaves arguments out.
        project: What `evertrain new` writes: scripts of a project are looked for there.
    """
    words = shlex.split(re.sub(r"[\[\]]", "", command) if not whole else command)
    while "=" in words[0]:
        words = words[1:]
    program, *rest = words
    if program == "evertrain":
        return _evertrain(rest, whole=whole)
    if program == "make":
        return _make(rest)
    if program in ("python", "python3"):
        return _python(rest, whole=whole, project=project)
    if program == "kubectl":
        return _kubectl(rest, whole=whole)
    return "" if not whole else f"nobody here knows {program}"


def _evertrain(words: list[str], *, whole: bool) -> str:
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    name, *rest = words
    if name not in commands:
        return f"no command {name}"
    if not whole:
        params = commands[name].params
        known = {option for each in params for option in [*each.opts, *each.secondary_opts]}
        unknown = [word for word in rest if word.startswith("-") and word not in {*known, "--help"}]
        return f"no option {unknown}" if unknown else ""
    try:
        commands[name].make_context(name, rest)
    except Exception as error:  # noqa: BLE001 (typer has a tree of its own; each is a refusal)
        return f"{type(error).__name__}: {error}"
    return ""


def _make(words: list[str]) -> str:
    text = (ROOT / "Makefile").read_text()
    given = [word.partition("=")[0] for word in words if "=" in word]
    unknown = [name for name in given if not re.search(rf"^{name} \?=", text, re.MULTILINE)]
    if unknown:
        return f"the Makefile knows no {unknown}"
    names = [word for word in words if "=" not in word]
    missing = [name for name in names if name not in _targets()]
    return f"no target {missing}" if missing else ""


@cache
def _targets() -> frozenset[str]:
    """What make itself takes for its targets: its database, of a run that makes nothing."""
    ended = subprocess.run(
        ["make", "-C", ROOT, "-pnq", "help"], capture_output=True, text=True, env=_plain()
    )
    phony = re.search(r"^\.PHONY: (.*)$", ended.stdout, re.MULTILINE)
    assert phony is not None, ended.stderr
    return frozenset(phony.group(1).split())


class _Parsed(Exception):  # noqa: N818 (it is no error: parsing is over)
    """Carries what a script's parser made of its arguments."""


def _python(words: list[str], *, whole: bool, project: Path) -> str:
    if words[0] == "-m":
        name, *rest = words[1:]
        spec = importlib.util.find_spec(name)
        script = Path(spec.origin) if spec is not None and spec.origin else None
    else:
        name, *rest = words
        script = next((f for f in (ROOT / name, project / Path(name).name) if f.is_file()), None)
    if script is None:
        return "" if name in _WRITTEN_BY_THE_READER else f"there is no {name}"
    if not rest:
        return ""  # nothing to parse

    def parse(self: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        unknown = [w for w in rest if w.startswith("--") and w not in self._option_string_actions]
        if unknown:
            raise _Parsed(f"no option {unknown}")
        if whole:
            try:
                real(self, rest)
            except SystemExit:
                raise _Parsed("its arguments are refused") from None
        raise _Parsed("")

    # Each project has a `task` of its own, and another one may have been imported by then.
    beside = {file.stem for file in script.parent.glob("*.py")} & set(sys.modules)
    hidden = {each: sys.modules.pop(each) for each in beside}
    real, before = argparse.ArgumentParser.parse_args, set(sys.modules)
    with (
        mock.patch.object(argparse.ArgumentParser, "parse_args", parse),
        mock.patch.object(sys, "argv", [str(script), *rest]),
        mock.patch.object(sys, "path", [str(script.parent), *sys.path]),
    ):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except _Parsed as said:
            return str(said)
        finally:
            for each in set(sys.modules) - before:
                if (getattr(sys.modules[each], "__file__", None) or "").startswith(
                    f"{script.parent}/"
                ):
                    del sys.modules[each]
            sys.modules.update(hidden)
    return f"{name} parses no arguments"


def _kubectl(words: list[str], *, whole: bool) -> str:
    beside = Path(sys.executable).with_name("kubectl")
    if "-k" in words and whole:
        folder = words[words.index("-k") + 1]
        ended = _run([beside, "kustomize", folder])
        return ended.stderr if ended.returncode else ""
    if words[:1] == ["-n"] and "create" in words and whole:
        words = [*words, "--dry-run=client", "-o", "name"]
    ended = _run([beside, *_NOWHERE, *words])
    taken = ended.returncode == 0 or "connection refused" in ended.stderr
    taken = taken or "was refused - did you specify" in ended.stderr
    if whole:
        return "" if taken else ended.stderr
    return ended.stderr if "unknown" in ended.stderr else ""


def _run(words: list[Any]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, capture_output=True, text=True, cwd=ROOT, env={**_plain(), "KUBECONFIG": os.devnull}
    )


def _plain() -> dict[str, str]:
    """Without what a surrounding make would tell this one."""
    return {
        key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))
    }
