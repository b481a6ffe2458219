"""Numbers, sizes and times as a person writes them: sensible digits, a true minus sign, UTC."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

MINUS = "−"
UNKNOWN = "unknown"
# Not allowed in XML or UTF-8; data may hold them all the same.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_NAME = re.compile(r"\S*[_/\d]|\S*\w\.\w")  # a word with an underscore, a dot or a digit


def clean(text: str) -> str:
    """Return the text with characters that no page may hold made visible."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def short(text: str, length: int) -> str:
    """Return the text, cut at `length` characters."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def count(value: int) -> str:
    return f"{value:,}".replace("-", MINUS)


def plural(value: int, noun: str, many: str = "") -> str:
    """`1 row`, `2 rows`; `many` is for nouns that take no plain s."""
    return f"{count(value)} {noun if value == 1 else many or noun + 's'}"


def fixed(value: float, decimals: int) -> str:
    """Return the number with so many decimals; zero has no sign."""
    if not math.isfinite(value):
        return UNKNOWN
    text = f"{value:,.{decimals}f}"
    return (text.removeprefix("-") if float(text.replace(",", "")) == 0 else text).replace(
        "-", MINUS
    )


def signed(value: float, decimals: int) -> str:
    """As `fixed`, with a plus sign where it is positive."""
    text = fixed(value, decimals)
    return f"+{text}" if value > 0 and text.strip("0.,") else text


def number(value: float, digits: int = 3) -> str:
    """Return the number with so many significant digits."""
    if not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size < -4 or size > 9:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"{mantissa}×10{power}".replace("-", MINUS)
    return fixed(value, max(0, digits - 1 - size))


def plain(value: float, digits: int = 3) -> str:
    """As `number`, without zeros at the end: `95`, `0.0008`."""
    text = number(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text and "×" not in text else text


def decimals(low: float, high: float) -> int:
    """Decimals that show an interval's half width with two significant digits."""
    half = (high - low) / 2
    if not math.isfinite(half) or half <= 0:
        return 4
    return max(0, min(6, 1 - math.floor(math.log10(half))))


def interval(low: float, high: float) -> str:
    """`0.0012 to 0.0070`."""
    places = decimals(low, high)
    return f"{fixed(low, places)} to {fixed(high, places)}"


def percent(share: float) -> str:
    if not math.isfinite(share):
        return UNKNOWN
    value = 100 * share
    if 0 < abs(value) < 0.005:  # a few of millions are not none
        return f"{number(value, 1)} %"
    return fixed(value, 0 if value == 0 or abs(value) >= 99.95 else 1 if abs(value) >= 1 else 2) + (
        " %"
    )


def share(part: int, whole: int) -> str:
    """A part of so many as a percentage; nothing where there is no whole."""
    return percent(part / whole) if whole else ""


def measured(value: float | None, decimals: int = 3) -> str:
    """The number; a dash where nothing was measured. Tiny ones are never shown as zero."""
    if value is None:
        return "–"
    return number(value, 2) if 0 < abs(value) < 0.5 * 10**-decimals else fixed(value, decimals)


def seconds(value: float) -> str:
    """`0.4 s`, `12 s`, `3 min 12 s`, `2 h 05 min`."""
    if not math.isfinite(value):
        return UNKNOWN
    if value < 9.95:
        return f"{fixed(value, 1)} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{count(whole // 3600)} h {whole % 3600 // 60:02d} min"


def size(value: int) -> str:
    """Bytes in decimal units."""
    amount = float(value)
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(amount) < 1000:
            return f"{count(value)} bytes" if unit == "bytes" else f"{number(amount)} {unit}"
        amount /= 1000
    return f"{number(amount)} TB"


def instant(value: datetime | str | None) -> str:
    """`2013-05-01 04:12 UTC`; a midnight is a date; what is no instant stays as it is."""
    if not value:
        return UNKNOWN
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return str(value)
    value = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    midnight = (value.hour, value.minute, value.second) == (0, 0, 0)
    return value.strftime("%Y-%m-%d" if midnight else "%Y-%m-%d %H:%M UTC")


_TITLES = {
    "brier": "Brier score",
    "error": "error rate",
    "quantile_loss_10": "quantile loss at 10 %",
    "quantile_loss_90": "quantile loss at 90 %",
}
_CAPITALS = {"auc": "AUC", "ece": "ECE", "f1": "F1", "rmse": "RMSE", "r2": "R²", "roc": "ROC"}


def title(name: str) -> str:
    """A field's name as words: `input_independent` is `input independent`."""
    return _TITLES.get(name) or " ".join(_CAPITALS.get(word, word) for word in name.split("_"))


def sentence(text: str) -> str:
    """Return the text with a capital first and a full stop last.

    A first word that is a name (`row_key`, `april.parquet`) stays as it is.
    """
    text = text.strip()
    if not text:
        return ""
    first = text[0] if _NAME.match(text) else text[0].upper()
    return first + text[1:] + ("" if text[-1] in ".!?…:" else ".")
