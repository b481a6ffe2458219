"""When a column's distance is an alarm, and when it stops the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from components.common.data_settings import DriftSettings

# Of rows beyond all that the reference has; the most in a clean month of flights was 9 % (April's
# temperatures after a winter).
_STRANGE = 0.2
Alarm = Literal["steady", "warn", "block"]


@dataclass(frozen=True)
class Shift:
    """A column's distance from the reference, and what is usual.

    Attributes:
        far: Population stability index against the whole reference, and its limit.
        sudden: The same of the batch's first days against the reference's last ones; None: the
            past has no two such windows, or no order.
        outside: Share of rows where the reference has none: beyond its range, or unseen; and the
            largest such share of a window of the past.
    """

    far: tuple[float, float]
    sudden: tuple[float, float] | None
    outside: tuple[float, float]

    def level(self, settings: DriftSettings, *, ordered: bool) -> Alarm:
        """Steady, worth a warning, or too far to go on."""
        far = self.far[0] / self.far[1]
        sudden = far if self.sudden is None else self.sudden[0] / self.sudden[1]
        strange = self.outside[0] - self.outside[1]
        alarm = (
            (far > 1 and sudden > 1)
            or far > settings.block_factor
            or sudden > settings.sudden_factor
            or strange > _STRANGE
        )
        if not alarm or self.far[0] <= settings.least_psi:
            return "steady"
        explained = self.sudden is None and ordered  # a season cannot be told from a fault
        both = min(far, sudden) > settings.block_factor and not explained
        if self.far[0] > settings.block_psi and sudden > 1 and (both or strange > 0.5):
            return "block"
        return "warn"
