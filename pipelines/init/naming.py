"""What a column's name tells. Names are hints: whatever follows from one is said in the project."""

from __future__ import annotations

import re

_KEYS = {"id", "ids", "uuid", "guid", "uid", "key", "pk", "hash", "token", "rowid"}
_ENTITIES = {
    *("user", "customer", "client", "account", "patient", "person", "member", "household"),
    *("device", "session", "driver", "player", "student", "employee", "subscriber", "machine"),
    *("visitor", "passenger", "borrower", "policyholder", "merchant", "card"),
}
_JOINED = re.compile(rf"^(row|order|item|product|{'|'.join(sorted(_ENTITIES))})(id|no|key)$")

# What happens when a row comes to be, and what happens to it afterwards.
_FIRST = {
    *("event", "occurred", "created", "observed", "measured", "recorded", "scheduled", "started"),
    *("start", "requested", "placed", "ordered", "booked", "opened", "logged", "snapshot"),
}
_PLAIN = {"time", "timestamp", "ts", "date", "datetime", "day", "when", "at", "hour", "on"}
_AFTERWARDS = {
    *("updated", "modified", "changed", "deleted", "closed", "end", "ended", "finished"),
    *("completed", "resolved", "delivered", "returned", "paid", "cancelled", "canceled"),
    *("expires", "expired", "expiry", "due", "until", "to", "last", "next", "loaded", "ingested"),
    *("processed", "exported", "inserted", "extracted", "synced", "arrival", "arrived", "churned"),
    *("birth", "birthday", "birthdate", "dob", "born"),
}


def words_of(name: str) -> list[str]:
    """The words of a name, in lower case: `customerId` and `customer id` are both two."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[^a-z0-9]+", parted.lower()) if word]


def names_a_thing(name: str) -> bool:
    """Whether the name is that of an id: `id`, `order_id`, `uuid`, `userid`."""
    words = words_of(name)
    if not words:
        return False
    is_key = words[-1] in _KEYS or words[0] == "id"
    return is_key or bool(_JOINED.match("".join(words)))


def names_an_entity(name: str) -> bool:
    """Whether the name is that of someone or something with several rows: `user_id`, `device`."""
    words = words_of(name)
    joined = _JOINED.match("".join(words))
    return bool(_ENTITIES & set(words)) or bool(joined and joined.group(1) in _ENTITIES)


def plausible_time(name: str) -> int:
    """How likely a time column is when its row came to be: 0 (rather afterwards) to 3."""
    words = set(words_of(name))
    if words & _AFTERWARDS:
        return 0
    if words & _FIRST or (words and words <= _PLAIN):
        return 3
    return 2 if words & _PLAIN else 1
