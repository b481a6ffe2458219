"""What the Dockerfile promises, read from its text: no engine is needed here."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "Dockerfile").read_text()
PACKAGES = (ROOT / "infra" / "image" / "packages.sh").read_text()


@dataclass
class Stage:
    base: str
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, word: str) -> list[str]:
        return [rest for step, rest in self.steps if step == word]


def instructions(text: str) -> list[tuple[str, str]]:
    """Each instruction with what follows it, comments gone and continued lines joined."""
    plain = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", plain).splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines) if word]


def read(text: str) -> tuple[dict[str, str], list[Stage]]:
    """The arguments before the first FROM, with their defaults, and the stages."""
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    for word, rest in instructions(text):
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            stages.append(Stage(base, name))
        elif stages:
            stages[-1].steps.append((word, rest))
        else:
            assert word == "ARG"
            name, _, default = rest.partition("=")
            arguments[name] = default
    return arguments, stages


ARGUMENTS, STAGES = read(TEXT)
IMAGE = STAGES[-1]
DEPENDENCIES = next(stage for stage in STAGES if stage.name == "dependencies")


def copied(stage: Stage) -> list[str]:
    """What a stage takes from the repository."""
    own = [rest.split() for rest in stage.all("COPY") if "--from=" not in rest]
    return [source for sources in own for source in sources[:-1]]


def environment(stage: Stage) -> dict[str, str]:
    return dict(re.findall(r'([A-Z_]+)=("[^"]*"|\S+)', " ".join(stage.all("ENV"))))


def test_the_image_runs_as_a_numeric_user_that_is_not_root() -> None:
    # By number, so that Kubernetes can hold runAsNonRoot without reading /etc/passwd.
    assert IMAGE.all("USER")[-1] == "10001:10001"
    last_user = max(i for i, (word, _) in enumerate(IMAGE.steps) if word == "USER")
    assert all(word == "CMD" for word, _ in IMAGE.steps[last_user + 1 :])


def test_the_base_image_is_an_argument_and_names_its_version() -> None:
    assert ARGUMENTS["BASE_IMAGE"] == "python:3.11-slim"
    bases = {stage.base for stage in STAGES}
    assert bases == {"${WHEELS}", "${BASE_IMAGE}", "dependencies", "scratch"}
    assert ARGUMENTS["WHEELS"] == "scratch"
    assert IMAGE.base == "scratch", "what was needed to build it would stay in it"


def test_torch_is_for_the_cpu_unless_cuda_is_asked_for() -> None:
    assert "TORCH=cpu" in DEPENDENCIES.all("ARG")
    assert set(re.findall(r"^(\w+)\)\s+install", PACKAGES, re.MULTILINE)) == {"cpu", "cuda"}


def test_every_package_comes_from_the_lock() -> None:
    code = next(stage for stage in STAGES if stage.name == "code")
    assert [("pip" in rest, "--no-deps" in rest) for rest in code.all("RUN")] == [(True, True)]
    others = " ".join(rest for s in STAGES if s is not code for rest in s.all("RUN"))
    assert "-m pip" not in others
    (install,) = re.findall(r"pip --python (?:.|\n)*?\n}", PACKAGES)
    assert "--constraint constraints.txt" in install


def test_a_change_of_code_leaves_the_layer_of_dependencies_alone() -> None:
    assert copied(DEPENDENCIES) == ["pyproject.toml", "constraints.txt"]
    own = [rest for word, rest in IMAGE.steps if word == "COPY"]
    assert own[-1] == "--from=code /code/ /"
    assert all(rest.startswith(("--from=root", "--from=dependencies")) for rest in own[:-1])


def test_all_that_is_written_goes_below_tmp() -> None:
    given = environment(IMAGE)
    folders = ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR"]
    for name in [*folders, "TORCHINDUCTOR_CACHE_DIR", "EVERTRAIN_HOME"]:
        assert re.match(r"/tmp(/|$)", given[name]), name
    assert given["PYTHONDONTWRITEBYTECODE"] == "1"
    assert not IMAGE.all("VOLUME")


def test_python3_is_that_of_the_virtual_environment() -> None:
    assert environment(IMAGE)["PATH"].split(":")[0] == "/venv/bin"


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name or "image")
def test_no_secret_stays_in_a_layer(stage: Stage) -> None:
    for rest in [*stage.all("ARG"), *stage.all("ENV")]:
        assert not re.search(r"(?i)token|password|passwd|secret|credential|api_?key", rest)
    for rest in [*stage.all("COPY"), *stage.all("ADD")]:
        assert not re.search(r"(?i)\.env\b|\.pem\b|\.crt\b|pip\.conf|\.netrc|id_rsa", rest)
    assert not stage.all("ADD"), "it fetches addresses and unpacks archives; COPY does neither"
    for rest in stage.all("RUN"):
        # A secret is read where it is mounted, never written down.
        assert not re.search(r"/run/secrets/\S+\s*>|(cp|cat|mv|tee)\s+\S*/run/secrets", rest)


def test_no_compiler_is_ever_installed() -> None:
    assert not re.search(r"\b(apt-get|apt|apk|dnf)\b|\bgcc\b|build-essential", TEXT)


def test_what_is_copied_exists_and_is_let_through() -> None:
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in ignore if line and not line.startswith("#")]
    assert patterns[0] == "*", "all is kept out but what is named"
    for source in [source for stage in STAGES for source in copied(stage)]:
        assert (ROOT / source).exists(), source
        assert f"!{source}" in patterns


def test_the_labels_are_those_of_open_containers() -> None:
    labels = " ".join(IMAGE.all("LABEL"))
    for name in ["title", "description", "licenses", "version", "revision"]:
        assert f"org.opencontainers.image.{name}=" in labels
