"""Data Docs: one page of what each expectation saw."""

from __future__ import annotations

import html

from components.common.data_figures import Expectation


def data_docs_page(seen: list[Expectation]) -> str:
    """One page of what each expectation saw, offline: Great Expectations' own page needs CDNs."""
    rows = "".join(
        f"<tr><td>{'✓' if e.success else '✗'}</td><td>{html.escape(e.severity)}</td>"
        f"<td>{html.escape(e.name.replace('_', ' '))}</td><td>{html.escape(e.column)}</td>"
        f"<td>{html.escape(e.expected)}</td><td>{html.escape(e.observed)}</td></tr>"
        for e in sorted(seen, key=lambda e: (e.success, e.severity))
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Validation</title>"
        "<style>body{font:14px system-ui;margin:2rem}td,th{padding:.3rem .6rem;text-align:left;"
        "border-bottom:1px solid #8884}</style><h1>"
        f"{'Passed' if all(e.success for e in seen) else 'Failed'}: {len(seen)} expectations</h1>"
        "<table><tr><th></th><th>severity</th><th>expectation</th><th>column</th>"
        f"<th>expected</th><th>observed</th></tr>{rows}</table></html>"
    )
