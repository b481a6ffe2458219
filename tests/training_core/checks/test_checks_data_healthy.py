"""No data check finds fault with a healthy task of any kind."""

from __future__ import annotations

from typing import Any

import pytest
from check_data_samples import (
    HEALTHY,
    look,
)

from training_core.checks.data import (
    CHECKS,
)


@pytest.mark.smoke
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
@pytest.mark.parametrize("healthy", HEALTHY)
def test_no_healthy_task_is_found_fault_with(check: Any, healthy: str) -> None:
    task, rows = HEALTHY[healthy]
    finding = look(check, task(), rows)
    assert finding.verdict in ("pass", "not_applicable"), finding.message
