"""What the Dockerfile and its scripts promise, read from their text: no engine is needed here.

`tests/containers/` looks at the image itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "Dockerfile").read_text()


@dataclass
class Stage:
    base: str
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, word: str) -> list[str]:
        return [rest for step, rest in self.steps if step == word]

    @property
    def runs(self) -> list[str]:
        """What is run, scripts written out."""
        return [rest + "".join(scripts(rest)) for rest in self.all("RUN")]


def scripts(run: str) -> list[str]:
    """The scripts that a RUN mounts, without comments, each command on one line."""
    found = [(ROOT / name).read_text() for name in re.findall(r"source=(infra/\S+?\.sh)", run)]
    plain = [re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE) for text in found]
    return ["; " + re.sub(r"\\\n\s*", "", text).replace("\n", "; ") for text in plain]


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
    bases = {"${WHEELS}", "${BASE_IMAGE}", "dependencies", "scratch"}
    assert {stage.base for stage in STAGES} == bases
    assert ARGUMENTS["WHEELS"] == "scratch"
    assert IMAGE.base == "scratch", "what was needed to build it would stay in it"


def test_torch_is_for_the_cpu_unless_cuda_is_asked_for() -> None:
    assert "TORCH=cpu" in DEPENDENCIES.all("ARG")
    (run,) = [text for text in DEPENDENCIES.runs if "pip --python" in text]
    assert set(re.findall(r"(\w+)\);?\s+install", run)) == {"cpu", "cuda"}


def test_every_package_comes_from_the_lock() -> None:
    installs = [
        part
        for stage in STAGES
        for text in stage.runs
        for part in text.split(";")
        if re.search(r"pip\b.*\binstall\b", part)
    ]
    assert len(installs) == 2
    for install in installs:
        assert "--constraint constraints.txt" in install or "--no-deps" in install


def test_a_change_of_code_leaves_the_layer_of_dependencies_alone() -> None:
    assert copied(DEPENDENCIES) == ["pyproject.toml", "constraints.txt"]
    own = [rest for word, rest in IMAGE.steps if word == "COPY"]
    assert own == [
        "--from=root /image/ /",
        "--from=dependencies /layers/torch/ /",
        "--from=dependencies /layers/rest/ /",
        "--from=code /code/ /",
    ]


def test_no_layer_of_the_image_is_made_by_a_command() -> None:
    """What a RUN leaves carries the time it was run: layers are copies, whose times were set."""
    assert not IMAGE.all("RUN")
    for stage in (stage for stage in STAGES if stage.name in ("root", "dependencies", "code")):
        (last,) = [text for text in stage.runs if "touch -h" in text]
        assert "SOURCE_DATE_EPOCH=946684800" in stage.all("ARG")
        assert 'touch -h -d "@$SOURCE_DATE_EPOCH"' in last
    for text in (text for stage in STAGES for text in stage.runs if "compileall" in text):
        assert "python3 -B -S -E -m compileall" in text
        assert "PYTHONHASHSEED=0" in text
        assert "--invalidation-mode checked-hash" in text


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
    for rest in stage.runs:
        # A secret is read where it is mounted, never written down.
        assert not re.search(r"/run/secrets/\S+\s*>|(cp|cat|mv|tee)\s+\S*/run/secrets", rest)


def test_no_compiler_is_ever_installed() -> None:
    for text in (TEXT, *(text for stage in STAGES for text in stage.runs)):
        assert not re.search(r"\b(apt-get|apt|apk|dnf) |\bgcc\b|build-essential", text)


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
