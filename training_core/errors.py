"""What can go wrong, for people: one small tree.

    EvertrainError          exit code 1: a retry will not help
    ├── ConfigurationError  exit code 2: wrong usage or configuration
    ├── StoppedByGate       exit code 1: bad data or broken training code was kept out
    └── TrainingFailed      exit code 1: training diverged or left nothing usable
        └── PeerFailed      exit code 1: another rank failed; its own failure says more

Faults of the world outside are `infra.errors.OutsideError` (exit code 3: a retry may help); it
has the same shape, so whoever prints one can print the other.
"""


class EvertrainError(Exception):
    """A failure that a person can act on.

    Args:
        what: What was wrong, with the value and where it came from.
        hint: What to do next, ideally a command that can be run.
    """

    exit_code = 1

    def __init__(self, what: str, *, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.what}\n\nhint: {self.hint}" if self.hint else self.what


class ConfigurationError(EvertrainError):
    """The user's configuration or command line is wrong."""

    exit_code = 2


class StoppedByGate(EvertrainError):  # noqa: N818 (an outcome, named for people)
    """A gate kept bad data or broken training code out."""


class TrainingFailed(EvertrainError):  # noqa: N818 (an outcome, named for people)
    """Training diverged, or left nothing that can be used."""


class PeerFailed(TrainingFailed):
    """Another rank failed; what it failed with itself is the cause."""
