"""Retries by the orchestrator: which attempt this is, and whether another can help.

Kubeflow starts a failed step again whatever its exit code was: its retries know none. So a step
that ended for good (codes 1 and 2) says so in its record, and the next attempt, which finds that
record, ends at once with the same code and words. A person who retries a run in the user interface
begins with attempt 0, and everything is tried anew.
"""

from __future__ import annotations

import os
import re

FOR_GOOD = (1, 2)  # exit codes after which the same attempt would end the same way
NODE_VARIABLE = "EVERTRAIN_NODE"  # name of Argo's node, from the pod's annotation
_NUMBERED = re.compile(r"\((\d+)\)$")


def attempt() -> int | None:
    """Number of this attempt at a step, from 0; None: unknown.

    Newer servers of Kubeflow Pipelines set KFP_RETRY_INDEX; Argo ends the name of a node that is
    retried in `(1)`.
    """
    told = os.environ.get("KFP_RETRY_INDEX", "")
    if told.isdecimal():
        return int(told)
    found = _NUMBERED.search(os.environ.get(NODE_VARIABLE, ""))
    return int(found.group(1)) if found else None
