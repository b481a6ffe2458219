"""Looks for secret values in text: rendered manifests, logs, files of an image.

Three nets: forms that keys and tokens are known to have, words that are too random to be words, and
in manifests variables and settings whose names say that they hold a secret.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

_FORMS = {
    "private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "AWS access key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "JSON web token": r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*",
    "token of GitHub": r"\bgh[pousr]_[A-Za-z0-9]{36,}",
    "token of Slack": r"\bxox[abprs]-[\w-]{10,}",
    "webhook of Slack": r"hooks\.slack\.com/services/\w+/\w+/\w+",
    "key of Google": r"\bAIza[\w-]{35}\b",
    "password in a URL": r"\b[a-z][a-z0-9+.-]*://[^\s/:@\"']+:[^\s/:@\"'$]+@",
}
_KINDS = (str.islower, str.isupper, str.isdigit)
_COMPILED = {name: re.compile(form) for name, form in _FORMS.items()}
_WORD = re.compile(r"[A-Za-z0-9+/_-]{20,}")
# Random by nature and public: digests.
_PUBLIC = re.compile(r"sha256[:-][0-9a-f]{64}")
# What holds a secret by its name; a name of a secret, of a key in one, or of a file is none.
_SECRETIVE = re.compile(
    r"(?i)(password|passwd|pgpass|secret|token|api_?key|access_?key|credential)"
)
# Bits a character, and changes between small, capital, digit and other a character: twenty random
# ones have 4.1 and 0.7, names in camel case with a number 3.9 and 0.3.
_BITS, _CHANGES = 3.5, 0.4


def entropy(word: str) -> float:
    """Shannon's, of the characters of a word, in bits a character."""
    counts = Counter(word).values()
    return -sum(n / len(word) * math.log2(n / len(word)) for n in counts)


def secrets_in(text: str) -> list[str]:
    """What looks like a secret: its kind, line and first characters (never the whole)."""
    found = []
    for number, line in enumerate(_PUBLIC.sub("", text).splitlines(), start=1):
        for name, form in _COMPILED.items():
            if match := form.search(line):
                found.append(f"line {number}: {name}: {match.group()[:12]}…")
        for word in _WORD.findall(line):
            if _is_random(word):
                found.append(f"line {number}: a random word: {word[:6]}…")
    return found


def values_in(document: Any, path: str = "") -> Iterator[str]:
    """Where a manifest holds a secret's value: a Secret, a variable, an entry of a ConfigMap."""
    if isinstance(document, list):
        for index, each in enumerate(document):
            yield from values_in(each, f"{path}[{index}]")
    if not isinstance(document, dict):
        return
    if document.get("kind") == "Secret" and (document.get("data") or document.get("stringData")):
        yield f"{path or 'document'}: a Secret with its values"
    if _SECRETIVE.search(str(document.get("name", ""))) and document.get("value"):
        yield f"{path}: the value of {document['name']}"
    if document.get("kind") == "ConfigMap":
        for key, text in (document.get("data") or {}).items():
            if _SECRETIVE.search(key) and text:
                yield f"{path}data.{key}: a value"
    for key, each in document.items():
        yield from values_in(each, f"{path}.{key}" if path else key)


def _is_random(word: str) -> bool:
    if re.fullmatch(r"[0-9a-f]{32,}|[0-9A-F]{32,}", word):
        return True
    kinds = [next((n for n, f in enumerate(_KINDS) if f(c)), len(_KINDS)) for c in word]
    changes = sum(before != after for before, after in pairwise(kinds)) / len(word)
    return {0, 1, 2} <= set(kinds) and entropy(word) > _BITS and changes > _CHANGES
