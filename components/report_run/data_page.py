"""The data of a run on a page of its own: the same section as in the report, verdict first.

page, judgement = render_data(run=run, records=read_records(store, run_id))
"""

from __future__ import annotations

from components.common.records import StepRecord
from components.common.run_record import RunRecord
from components.report_run.data_section import data_section
from components.report_run.seen import read
from components.report_run.templates import fitted
from components.report_run.verdicts import Judgement


def render_data(*, run: RunRecord, records: dict[str, StepRecord]) -> tuple[str, Judgement]:
    """Return the page and its verdict; never fail on a record that is missing or strange.

    Args:
        run: The composed run.
        records: What the steps left; steps that were not reached are absent.
    """
    seen = read(records)
    section = data_section(run, records, seen)
    return fitted("template_data_page.html", section), section["judgement"]
