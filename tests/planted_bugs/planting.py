"""Ways to plant a bug: each takes a healthy task and changes one thing.

    loss = Theme("Loss")

    @loss.task(HEALTHY, "The loss has the wrong sign.", found_by=("loss_function",))
    class SignOfTheLoss(Rent):
        def loss(self, outputs, target):
            return -super().loss(outputs, target)

The bug's name is that of the class or function, in snake case.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, TypeVar

import pandas as pd
from torch import nn

from tests.planted_bugs.contract import Bug, Healthy
from training_core.task import Preprocessor, Task

Kind = TypeVar("Kind", bound=type[Any])
# DividedBy255Twice: before each capital or number that begins a word
_BETWEEN = re.compile(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z0-9])(?=[A-Z][a-z])")

Plain = TypeVar("Plain", bound=Callable[..., Any])


class Theme:
    """Bugs of one theme, in the order in which they are written down."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.bugs: list[Bug] = []

    def task(
        self, host: Healthy, what: str, *, found_by: Sequence[str], **more: Any
    ) -> Callable[[Kind], Kind]:
        """Plant a class of tasks in the place of the host's."""

        def note(kind: Kind) -> Kind:
            self._note(kind, host, what, found_by, task=kind, **more)
            return kind

        return note

    def network(
        self, host: Healthy, what: str, *, found_by: Sequence[str], **more: Any
    ) -> Callable[[Kind], Kind]:
        """Give the host's network, once it is built, the methods of another class."""

        def note(kind: Kind) -> Kind:
            def change(model: nn.Module) -> None:
                model.__class__ = kind

            self._note(kind, host, what, found_by, task=_building(host, change), **more)
            return kind

        return note

    def built(
        self, host: Healthy, what: str, *, found_by: Sequence[str], **more: Any
    ) -> Callable[[Plain], Plain]:
        """Change the host's network once it is built."""

        def note(change: Plain) -> Plain:
            self._note(change, host, what, found_by, task=_building(host, change), **more)
            return change

        return note

    def preprocessor(
        self, host: Healthy, what: str, *, found_by: Sequence[str], **more: Any
    ) -> Callable[[Kind], Kind]:
        """Give the host's preprocessor the methods of another class."""

        def note(kind: Kind) -> Kind:
            class Broken(host.task):  # type: ignore[name-defined, misc]
                def preprocessor(self) -> Preprocessor:
                    made = super().preprocessor()
                    made.__class__ = kind
                    return made

            self._note(kind, host, what, found_by, task=Broken, **more)
            return kind

        return note

    def rows(
        self, host: Healthy, what: str, *, found_by: Sequence[str], **more: Any
    ) -> Callable[[Plain], Plain]:
        """Change the host's raw rows."""

        def note(change: Plain) -> Plain:
            def rows(seed: int) -> pd.DataFrame:
                changed: pd.DataFrame = change(host.rows(seed))
                return changed

            self._note(change, host, what, found_by, rows=rows, **more)
            return change

        return note

    def settings(
        self, name: str, host: Healthy, what: str, *, found_by: Sequence[str], **more: Any
    ) -> None:
        """Change settings of the host's training: `optimiser={"lr": 10}`."""
        told = {key: more.pop(key) for key in ("seen", "warns") if key in more}
        self.bugs.append(
            Bug(
                name=name,
                what=what,
                host=host,
                found_by=frozenset(found_by),
                training=changed(host, **more),
                **told,
            )
        )

    def code(
        self,
        name: str,
        host: Healthy,
        what: str,
        *edits: tuple[Callable[..., Any], str, str],
        found_by: Sequence[str],
        **more: Any,
    ) -> None:
        """Change lines of the training's own code: (function, what is there, what is to be)."""

        def planted() -> AbstractContextManager[Any]:
            stack = ExitStack()
            for function, old, new in edits:
                stack.enter_context(edited(function, old, new))
            return stack

        self.bugs.append(
            Bug(
                name=name,
                what=what,
                host=host,
                found_by=frozenset(found_by),
                planted=planted,
                **more,
            )
        )

    def _note(
        self, named: Any, host: Healthy, what: str, found_by: Sequence[str], **more: Any
    ) -> None:
        name = _BETWEEN.sub("_", named.__name__).lower()
        self.bugs.append(Bug(name=name, what=what, host=host, found_by=frozenset(found_by), **more))


def changed(host: Healthy, **parts: Any) -> dict[str, Any]:
    """Return settings of a host's training with some changed; a part's others stay."""
    before = host.training.model_dump()
    return {
        name: {**before[name], **value} if isinstance(value, dict) else value
        for name, value in parts.items()
    }


@contextmanager
def edited(function: Callable[..., Any], old: str, new: str) -> Iterator[None]:
    """Change a line of a function wherever it is known by name; its code is put back afterwards.

    Args:
        function: Or method, without `super()`; edited once at a time.
        old: Text of its source, there exactly once; so a bug cannot be lost when the code changes.
        new: What stands there instead, indented as in a function at the margin.
    """
    plain = inspect.unwrap(getattr(function, "__func__", function))
    source = textwrap.dedent(inspect.getsource(plain))
    assert source.count(old) == 1, f"{plain.__qualname__} has {source.count(old)} times: {old}"
    tree = ast.parse(source.replace(old, new))
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    ast.increment_lineno(tree, plain.__code__.co_firstlineno - 1)  # for tracebacks
    filename = inspect.getfile(plain)
    flags = __future__.annotations.compiler_flag
    scope: dict[str, Any] = {}
    exec(compile(tree, filename, "exec", flags=flags), plain.__globals__, scope)
    before = plain.__code__
    plain.__code__ = scope[plain.__name__].__code__
    try:
        yield
    finally:
        plain.__code__ = before


def _building(host: Healthy, change: Callable[[nn.Module], Any]) -> type[Task]:
    class Broken(host.task):  # type: ignore[name-defined, misc]
        def build_model(self, preprocessor: Preprocessor) -> nn.Module:
            model: nn.Module = super().build_model(preprocessor)
            change(model)
            return model

    return Broken
