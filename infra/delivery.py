"""Sends what spools hold to MLflow, in the background, for as long as it takes.

    sender = Sender(spool, uri=..., warn=...)
    ...                               # spool.metrics(step, {...}) as training goes
    sender.close(timeout=60)

Training never waits for MLflow and never fails by it. The thread does nothing in the first seconds,
because importing MLflow costs a second and a half of processor time that a short training would
feel; a training shorter than that sends everything at its end. While MLflow is away it is asked
again after growing pauses; what is not sent at the end stays in its file, and is sent by the next
training that ends in the same home, or begins with the same run key.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from infra.errors import OutsideError
from infra.spool import Message, Spool, Unsent, spooled
from infra.tracking import Tracking

_MOST = 1000  # metrics a request, MLflow's limit; forty times faster than singly
_LONGEST = 120.0  # seconds between attempts


class Sender:
    """Sends one spool while it is written, and what earlier processes left.

    Args:
        spool: What this process writes.
        uri: MLflow's.
        warn: Told, once for each kind of trouble, what is wrong.
        after: Seconds before anything is sent.
        every: Seconds between sendings.
        on_unsent: Called with the spool's file each time that MLflow could not be told.
    """

    def __init__(
        self,
        spool: Spool,
        *,
        uri: str,
        warn: Callable[[str], None],
        after: float = 20.0,
        every: float = 5.0,
        on_unsent: Callable[[Path], None] = lambda path: None,
    ) -> None:
        self._spool, self._uri, self._warn = spool, uri, warn
        self._on_unsent = on_unsent
        self._after, self._every = after, every
        self._warned: set[str] = set()
        self._delivery = Delivery(uri, warn=self._once)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="metrics", daemon=True)
        self._thread.start()

    def close(self, timeout: float) -> bool:
        """Send the rest, waiting so long at most; return whether all of this run arrived."""
        self._closing.set()
        self._thread.join(timeout)
        if self._spool.lost:
            self._once(f"{self._spool.lost} lines for MLflow could not be written to disk")
        waiting = self._spool.path.exists()
        if waiting:
            self._once(
                f"MLflow at {self._uri} has not got all metrics of this run yet; the rest is in "
                f"{self._spool.path} and is sent at the end of the next training here"
            )
        return not waiting and not self._spool.lost

    def _work(self) -> None:
        pause = self._after
        while not self._closing.wait(pause):
            sent = self._send()
            pause = self._every if sent else min(2 * max(pause, self._every), _LONGEST)
            if not sent:
                self._on_unsent(self._spool.path)
        if self._send():
            self._send_others()
        self._spool.close()

    def _send(self) -> bool:
        """Send what there is of this run, the eldest file first; return whether it arrived."""
        key = self._spool.path.name.partition(".")[0]
        mine = [p for p in spooled(self._spool.path.parent) if p.name.partition(".")[0] == key]
        return all(self._deliver(path) for path in mine if path <= self._spool.path)

    def _send_others(self) -> None:
        """Send what other runs left when MLflow was away; the first failure ends it."""
        for path in spooled(self._spool.path.parent):
            if not self._deliver(path):
                return

    def _deliver(self, path: Path) -> bool:
        own = path == self._spool.path
        try:
            unsent = Unsent(path, own=own)
        except (BlockingIOError, FileNotFoundError):
            return True  # it is another process's to send, or has been sent
        try:
            whole = self._delivery.deliver(unsent)
            if whole or not own:  # a killed process's file ends without saying so
                unsent.remove()
        except OutsideError as error:
            self._once(f"metrics are kept on disk until MLflow answers: {error.what}")
            return False
        except Exception as error:  # noqa: BLE001 (whatever MLflow raises, training goes on)
            self._once(f"metrics are kept on disk: {type(error).__name__}: {error}")
            return False
        finally:
            unsent.close()
        return True

    def _once(self, words: str) -> None:
        if words not in self._warned:
            self._warned.add(words)
            self._warn(words)


class Delivery:
    """Says a spool's messages to MLflow, in their order.

    Args:
        uri: MLflow's.
        warn: Told what MLflow refuses; the rest goes on without it.
    """

    def __init__(self, uri: str, *, warn: Callable[[str], None]) -> None:
        self._uri, self._warn = uri, warn
        self._trackings: dict[str, Tracking] = {}
        self._runs: dict[Path, str] = {}  # MLflow's ids of the runs that were opened
        self._refused: set[str] = set()  # names of metrics

    def deliver(self, unsent: Unsent) -> bool:
        """Send all there is; return whether the run has ended with it.

        Raises:
            OutsideError: MLflow cannot be reached, or failed.
        """
        about = unsent.run()
        if about is None:
            return False
        tracking = self._trackings.setdefault(
            about["experiment"], Tracking(uri=self._uri, experiment=about["experiment"])
        )
        ended = False
        while True:
            messages, end = unsent.batch(_MOST)
            if not messages:
                return ended
            if unsent.path not in self._runs:
                self._runs[unsent.path] = tracking.open_run(
                    key=about["key"], name=about["name"], tags=about["tags"]
                )
            try:
                ended = self._say(tracking, self._runs[unsent.path], messages)
            except OutsideError:
                del self._runs[unsent.path]  # it may be gone: look for it again, or make it
                raise
            unsent.confirm(end)

    def _say(self, tracking: Tracking, run: str, messages: list[Message]) -> bool:
        """Say a batch; return whether its last word is that the run has ended."""
        metrics = [m[1:] for m in messages if m[0] == "metrics"]
        self._metrics(
            tracking,
            run,
            [
                (name, value, step, instant)
                for instant, step, values in metrics
                for name, value in values.items()
            ],
        )
        for kind, *content in messages:
            if kind == "params":
                self._unless_refused(tracking.log_params, run, content[0])
            elif kind == "tags":
                self._unless_refused(tracking.set_tags, run, content[0])
            elif kind == "end":
                tracking.finish(run, content[0])
        return bool(messages[-1][0] == "end")

    def _metrics(
        self, tracking: Tracking, run: str, rows: list[tuple[str, float, int, int]]
    ) -> None:
        """A batch that is refused is said name by name: all but the refused names arrive."""
        rows = [row for row in rows if row[0] not in self._refused]
        try:
            tracking.log_metrics(run, rows)
        except ValueError:
            for name in dict.fromkeys(row[0] for row in rows):
                try:
                    tracking.log_metrics(run, [row for row in rows if row[0] == name])
                except ValueError as error:
                    self._refused.add(name)
                    self._warn(f"the metric {name!r} is left out: {error}")

    def _unless_refused(self, say: Callable[[str, Any], None], run: str, values: Any) -> None:
        try:
            say(run, values)
        except ValueError as error:
            self._warn(str(error))
