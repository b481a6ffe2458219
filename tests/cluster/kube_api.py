"""The REST side of the Kubernetes double: paths, verbs, and who may do what."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from dataclasses import dataclass

from tests.cluster.http_double import Reply, Request
from tests.cluster.kube_discovery import about_the_server
from tests.cluster.kube_errors import (
    Kind,
    KubeError,
    bad_request,
    forbidden,
    not_found,
    truth,
    unauthorized,
)
from tests.cluster.kube_patches import PATCHES, STRATEGIC
from tests.cluster.kube_selectors import check_fields
from tests.cluster.kube_store import KINDS, NAMESPACES, Content, Store
from tests.cluster.kube_watch import Target, watched


@dataclass(frozen=True)
class Subject:
    """Who a token belongs to; without rules, allowed everything.

    Args:
        name: Such as `system:serviceaccount:team-a:evertrain`.
        rules: As in a Role: `apiGroups`, `resources`, `verbs`; they hold in every namespace.
    """

    name: str
    rules: tuple[dict[str, list[str]], ...] | None = None

    def may(self, verb: str, kind: Kind, subresource: str) -> bool:
        if self.rules is None:
            return True
        resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
        return any(
            {"*", kind.group} & set(rule.get("apiGroups", []))
            and {"*", resource} & set(rule.get("resources", []))
            and {"*", verb} & set(rule.get("verbs", []))
            for rule in self.rules
        )


Admit = Callable[[Target, Content, Content | None], Content]


class KubeApi:
    """Answers requests from the store.

    Attributes:
        admit: Completes and checks an object before it is written (new, old or None).
        created, replaced: Told after a write by a client.
        delete: Deletes; gives what the client is answered.
        special: By `plural/subresource`, or `plural/subresource:verb`: answers itself.
    """

    def __init__(self, store: Store, closing: Callable[[float], bool]) -> None:
        self.store, self.closing = store, closing
        self.tokens: dict[str, Subject] = {}
        self.admit: Admit = lambda target, new, old: new
        self.created: Callable[[Kind, Content], None] = lambda kind, content: None
        self.replaced: Callable[[Kind, Content], None] = lambda kind, content: None
        self.delete: Callable[[Target, Content], Content] = self._remove
        self.special: dict[str, Callable[[Target, Request], Reply]] = {}

    def answer(self, request: Request) -> Reply:
        try:
            if self.tokens and self._subject(request) is None:
                raise unauthorized()
            found = about_the_server(request.path.rstrip("/"))
            if found is not None:
                return found
            target = target_of(request.path)
            if target is None:
                return Reply(404, b"404 page not found\n", {"Content-Type": "text/plain"})
            return self._resource(target, request)
        except KubeError as error:
            return error.reply()
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            return bad_request(f"the object provided is unrecognized: {error}").reply()

    def _subject(self, request: Request) -> Subject | None:
        form, _, token = request.headers.get("authorization", "").partition(" ")
        return self.tokens.get(token) if form.lower() == "bearer" else None

    def _resource(self, target: Target, request: Request) -> Reply:
        watching = truth(request.query.get("watch"))
        verb = _verb(request.method, named=bool(target.name), watching=watching)
        subject = self._subject(request)
        if subject and not subject.may(verb, target.kind, target.subresource):
            resource = "/".join(filter(None, (target.kind.plural, target.subresource)))
            where = f' in the namespace "{target.namespace}"' if target.namespace else (
                " at the cluster scope")  # fmt: skip
            raise forbidden(
                target.kind, target.name,
                f'User "{subject.name}" cannot {verb} resource "{resource}" in API group '
                f'"{target.kind.group}"{where}',
            )  # fmt: skip
        if target.subresource and target.subresource != "status":
            special = self.special.get(f"{target.kind.plural}/{target.subresource}")
            if special is None:
                raise KubeError(404, "NotFound", "the server could not find the requested resource")
            return special(target, request)
        doing: dict[str, Callable[[Target, Request], Reply]] = {
            "get": self._get, "list": self._list, "watch": self._watch, "create": self._create,
            "update": self._update, "patch": self._patch, "delete": self._delete,
            "deletecollection": self._delete_all,
        }  # fmt: skip
        return doing[verb](target, request)

    def _get(self, target: Target, request: Request) -> Reply:
        return Reply.of(self.store.get(target.kind, target.namespace, target.name))

    def _list(self, target: Target, request: Request) -> Reply:
        query = request.query
        check_fields(target.kind, query.get("fieldSelector", ""))
        with self.store.lock:
            version = self.store.version
            found = self.store.list(
                target.kind, target.namespace,
                labels=query.get("labelSelector", ""), fields=query.get("fieldSelector", ""),
            )  # fmt: skip
        meta: Content = {"resourceVersion": str(version)}
        start = json.loads(base64.b64decode(query["continue"])) if query.get("continue") else 0
        limit = int(query.get("limit") or 0)
        if limit and len(found) > start + limit:
            meta["continue"] = base64.b64encode(json.dumps(start + limit).encode()).decode()
            meta["remainingItemCount"] = len(found) - start - limit
        items = found[start : start + limit] if limit else found[start:]
        return Reply.of(
            {
                "kind": f"{target.kind.kind}List", "apiVersion": target.kind.api_version,
                "metadata": meta, "items": items,
            }
        )  # fmt: skip

    def _create(self, target: Target, request: Request) -> Reply:
        content = _body(request)
        meta = content.setdefault("metadata", {})
        kind = target.kind
        told = content.get("apiVersion", kind.api_version), content.get("kind", kind.kind)
        if told != (kind.api_version, kind.kind):
            raise bad_request(
                f"{told[1]} in version {told[0]!r} cannot be handled as a {kind.kind}: no kind "
                f'"{told[1]}" is registered for version "{told[0]}"'
            )
        if kind.namespaced:
            if meta.setdefault("namespace", target.namespace) != target.namespace:
                raise bad_request(
                    "the namespace of the provided object does not match the namespace sent on "
                    "the request"
                )
            if self.store.find(NAMESPACES, "", target.namespace) is None:
                raise not_found(NAMESPACES, target.namespace)
        with self.store.lock:
            content = self.admit(target, content, None)
            if request.query.get("dryRun"):
                return Reply.of(content, status=201)
            made = self.store.create(kind, content)
            self.created(kind, made)
            shown = self.store.find(kind, meta.get("namespace", ""), made["metadata"]["name"])
        return Reply.of(shown or made, status=201)

    def _update(self, target: Target, request: Request) -> Reply:
        return self._write(target, lambda old: _body(request))

    def _patch(self, target: Target, request: Request) -> Reply:
        form = request.headers.get("content-type", "").split(";")[0]
        custom = "." in target.kind.group
        if form not in PATCHES or (custom and form == STRATEGIC):
            supported = [each for each in PATCHES if not (custom and each == STRATEGIC)]
            raise KubeError(
                415, "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types "
                f"include: {', '.join(supported)}",
            )  # fmt: skip
        patch = request.json()
        return self._write(target, lambda old: PATCHES[form](old, patch))

    def _write(self, target: Target, how: Callable[[Content], Content]) -> Reply:
        with self.store.lock:
            old = self.store.get(target.kind, target.namespace, target.name)
            wanted = how(copy.deepcopy(old))
            status_only = target.subresource == "status"
            if not status_only:
                wanted = self.admit(target, wanted, old)
            made = self.store.replace(target.kind, wanted, status_only=status_only)
            if not status_only and made != old:
                self.replaced(target.kind, made)
            shown = self.store.find(target.kind, target.namespace, target.name)
        return Reply.of(shown or made)

    def _delete(self, target: Target, request: Request) -> Reply:
        told = request.json() if request.body else {}
        for name in ("propagationPolicy", "gracePeriodSeconds"):
            if name in request.query:
                told[name] = request.query[name]
        uid = (told.get("preconditions") or {}).get("uid")
        with self.store.lock:
            found = self.store.get(target.kind, target.namespace, target.name)
            if uid and uid != found["metadata"]["uid"]:
                raise KubeError(
                    409, "Conflict",
                    f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
                    f"{found['metadata']['uid']}",
                )  # fmt: skip
            return Reply.of(self.delete(target, told))

    def _delete_all(self, target: Target, request: Request) -> Reply:
        told = request.json() if request.body else {}
        with self.store.lock:
            found = self.store.list(
                target.kind, target.namespace,
                labels=request.query.get("labelSelector", ""),
                fields=request.query.get("fieldSelector", ""),
            )  # fmt: skip
            for each in found:
                name = each["metadata"]["name"]
                self.delete(Target(target.kind, target.namespace, name), told)
        return Reply.of(_success(target.kind, ""))

    def _remove(self, target: Target, told: Content) -> Content:
        gone = self.store.remove(target.kind, target.namespace, target.name)
        return _success(target.kind, target.name, (gone or {}).get("metadata", {}).get("uid", ""))

    def _watch(self, target: Target, request: Request) -> Reply:
        check_fields(target.kind, request.query.get("fieldSelector", ""))
        lines = watched(self.store, target, request.query, closing=self.closing)
        return Reply(200, lines, {"Content-Type": "application/json"})


def target_of(path: str) -> Target | None:
    """What a path names; None for one that no API has."""
    parts = path.strip("/").split("/")
    if parts[:2] == ["api", "v1"]:
        group, version, rest = "", "v1", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = [*rest, "", "", ""][:3]
    for kind in KINDS:
        if (kind.group, kind.version, kind.plural) == (group, version, plural):
            return Target(kind, namespace, name, subresource)
    return None


def _verb(method: str, *, named: bool, watching: bool) -> str:
    if method in ("GET", "HEAD"):
        return "watch" if watching else "get" if named else "list"
    if method == "DELETE":
        return "delete" if named else "deletecollection"
    verbs = {"POST": "create", "PUT": "update", "PATCH": "patch"}
    if method not in verbs or named == (method == "POST"):
        raise KubeError(405, "MethodNotAllowed", "the server does not allow this method")
    return verbs[method]


def _success(kind: Kind, name: str, uid: str = "") -> Content:
    details = {"name": name, "group": kind.group, "kind": kind.plural, "uid": uid}
    return {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }  # fmt: skip


def _body(request: Request) -> Content:
    content = request.json()
    if not isinstance(content, dict):
        raise bad_request("the object provided is unrecognized (must be of type object)")
    return content
