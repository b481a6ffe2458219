"""JSON Schemas of the custom resources that we ship or make, strict: unknown keys are refused.

Each covers the part of its CRD that we use; what is not in it is refused, so a new field has to be
looked up and added. Parts that are core Kubernetes types (containers, pod specs, security contexts)
are checked as pods by `schemas.py`.

- Trainer's: derived from the models of `kubeflow_trainer_api`, which are generated from the CRDs.
- PrometheusRule, ServiceMonitor: prometheus-operator 0.82 and 0.84,
  example/prometheus-operator-crd/monitoring.coreos.com_*.yaml
- EventBus, EventSource, Sensor: Argo Events 1.9, pkg/apis/*/v1alpha1 (the CRDs take anything)
"""

from __future__ import annotations

from functools import cache
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
COUNT: Schema = {"type": "integer", "minimum": 0}
TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
# A core type: checked as part of a pod.
CORE: Schema = {"type": "object"}
DURATION: Schema = {
    "type": "string",
    "pattern": r"^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?"
    r"(([0-9]+)ms)?)$",
    "minLength": 1,
}


def closed(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": sorted(required),
        "additionalProperties": False,
    }


def some(items: Schema) -> Schema:
    return {"type": "array", "minItems": 1, "items": items}


def by_name(items: Schema) -> Schema:
    return {"type": "object", "minProperties": 1, "additionalProperties": items}


METADATA = closed({"name": TEXT}, {"namespace": TEXT, "labels": TEXTS, "annotations": TEXTS})
POD_METADATA = closed({}, {"labels": TEXTS, "annotations": TEXTS})
KEY_OF_SECRET = closed({"name": TEXT, "key": TEXT}, {"optional": {"type": "boolean"}})
SELECTOR = closed({}, {"matchLabels": TEXTS, "matchExpressions": some(CORE)})


def resource(api_version: str, kind: str, spec: Schema) -> Schema:
    fixed = {"apiVersion": {"const": api_version}, "kind": {"const": kind}}
    return closed({**fixed, "metadata": METADATA, "spec": spec})


RULE = closed({"expr": TEXT}, {"for": DURATION, "keep_firing_for": DURATION, "labels": TEXTS})
ALERT = {
    **RULE,
    "properties": {**RULE["properties"], "alert": TEXT, "annotations": TEXTS},
    "required": ["alert", "expr"],
}
RECORD = {
    **RULE,
    "properties": {"expr": TEXT, "labels": TEXTS, "record": TEXT},
    "required": ["expr", "record"],
}
PROMETHEUS_RULE = resource(
    "monitoring.coreos.com/v1",
    "PrometheusRule",
    closed(
        {
            "groups": some(
                closed(
                    {"name": TEXT, "rules": some({"oneOf": [ALERT, RECORD]})},
                    {"interval": DURATION, "labels": TEXTS, "limit": COUNT},
                )
            )
        }
    ),
)
SERVICE_MONITOR = resource(
    "monitoring.coreos.com/v1",
    "ServiceMonitor",
    closed(
        {
            "selector": SELECTOR,
            "endpoints": some(
                closed(
                    {"port": TEXT},
                    {
                        "path": TEXT,
                        "interval": DURATION,
                        "scrapeTimeout": DURATION,
                        "scheme": {"enum": ["http", "https"]},
                        "honorLabels": {"type": "boolean"},
                    },
                )
            ),
        },
        {
            "namespaceSelector": closed({}, {"any": {"type": "boolean"}, "matchNames": some(TEXT)}),
            "jobLabel": TEXT,
            "targetLabels": some(TEXT),
            "podTargetLabels": some(TEXT),
        },
    ),
)

_CONTAINER = closed({}, {"resources": CORE, "securityContext": CORE, "imagePullPolicy": TEXT})
EVENT_BUS = resource(
    "argoproj.io/v1alpha1",
    "EventBus",
    closed(
        {
            "jetstream": closed(
                {"version": TEXT, "replicas": {"enum": [1, 3, 5]}},
                {
                    "containerTemplate": _CONTAINER,
                    "reloaderContainerTemplate": _CONTAINER,
                    "metricsContainerTemplate": _CONTAINER,
                    "securityContext": CORE,
                    "metadata": POD_METADATA,
                    "serviceAccountName": TEXT,
                    "streamConfig": TEXT,
                    "settings": TEXT,
                    "maxPayload": TEXT,
                    "nodeSelector": TEXTS,
                    "persistence": closed(
                        {"accessMode": TEXT, "volumeSize": TEXT}, {"storageClassName": TEXT}
                    ),
                },
            )
        }
    ),
)
_TEMPLATE = closed(
    {"serviceAccountName": TEXT},
    {
        "metadata": POD_METADATA,
        "container": CORE,
        "securityContext": CORE,
        "volumes": some(CORE),
        "nodeSelector": TEXTS,
        "tolerations": some(CORE),
        "imagePullSecrets": some(CORE),
        "priorityClassName": TEXT,
    },
)
_SQS = closed(
    {"region": TEXT, "queue": TEXT, "waitTimeSeconds": {"type": "integer", "maximum": 20}},
    {
        "accessKey": KEY_OF_SECRET,
        "secretKey": KEY_OF_SECRET,
        "sessionToken": KEY_OF_SECRET,
        "roleARN": TEXT,
        "jsonBody": {"type": "boolean"},
        "queueAccountId": TEXT,
        "dlq": {"type": "boolean"},
        "endpoint": TEXT,
        "metadata": TEXTS,
    },
)
_MINIO = closed(
    {"endpoint": TEXT, "bucket": closed({"name": TEXT}, {"key": TEXT}), "events": some(TEXT)},
    {
        "accessKey": KEY_OF_SECRET,
        "secretKey": KEY_OF_SECRET,
        "insecure": {"type": "boolean"},
        "region": TEXT,
        "filter": closed({"prefix": {"type": "string"}, "suffix": {"type": "string"}}),
        "metadata": TEXTS,
    },
)
_WEBHOOK = closed(
    {"endpoint": TEXT, "method": TEXT, "port": TEXT},
    {
        "url": TEXT,
        "authSecret": KEY_OF_SECRET,
        "maxPayloadSize": COUNT,
        "serverCertSecret": KEY_OF_SECRET,
        "serverKeySecret": KEY_OF_SECRET,
        "metadata": TEXTS,
    },
)
EVENT_SOURCE = resource(
    "argoproj.io/v1alpha1",
    "EventSource",
    closed(
        {"template": _TEMPLATE},
        {
            "eventBusName": TEXT,
            "replicas": COUNT,
            "service": closed({"ports": some(CORE)}, {"metadata": POD_METADATA, "clusterIP": TEXT}),
            "sqs": by_name(_SQS),
            "minio": by_name(_MINIO),
            "webhook": by_name(_WEBHOOK),
        },
    ),
)
_BACKOFF = closed(
    {"steps": COUNT}, {"duration": TEXT, "factor": {"type": "number"}, "jitter": {"type": "number"}}
)
_K8S_TRIGGER = closed(
    {"operation": {"enum": ["create"]}, "source": closed({"resource": CORE})},
    {"parameters": some(CORE)},
)
SENSOR = resource(
    "argoproj.io/v1alpha1",
    "Sensor",
    closed(
        {
            "template": _TEMPLATE,
            "dependencies": some(
                closed({"name": TEXT, "eventSourceName": TEXT, "eventName": TEXT})
            ),
            "triggers": some(
                closed(
                    {"template": closed({"name": TEXT, "k8s": _K8S_TRIGGER})},
                    {
                        "atLeastOnce": {"type": "boolean"},
                        "retryStrategy": _BACKOFF,
                        "rateLimit": closed(
                            {"unit": {"enum": ["Second", "Minute", "Hour"]}},
                            {"requestsPerUnit": {"type": "integer", "minimum": 1}},
                        ),
                    },
                )
            ),
        },
        {"eventBusName": TEXT, "replicas": COUNT, "errorOnFailedRound": {"type": "boolean"}},
    ),
)


@cache
def of(api_version: str, kind: str) -> Schema | None:
    """The schema of a custom resource; None where we know none."""
    ours = (PROMETHEUS_RULE, SERVICE_MONITOR, EVENT_BUS, EVENT_SOURCE, SENSOR)
    for schema in ours:
        fixed = schema["properties"]
        if (fixed["apiVersion"]["const"], fixed["kind"]["const"]) == (api_version, kind):
            return schema
    if api_version == "trainer.kubeflow.org/v1alpha1":
        return _of_trainer(kind)
    return None


def _of_trainer(kind: str) -> Schema | None:
    from kubeflow_trainer_api import models

    model = getattr(models, f"TrainerV1alpha1{kind}", None)
    if model is None:
        return None
    schema: Schema = model.model_json_schema(by_alias=True)
    definitions = schema["$defs"]
    # Pydantic's form of these is the generator's machinery, not what goes over the wire.
    definitions["IoK8sApimachineryPkgUtilIntstrIntOrString"] = {"type": ["integer", "string"]}
    definitions["IoK8sApimachineryPkgApiResourceQuantity"] = {"type": ["number", "string"]}
    for each in (schema, *definitions.values()):
        if each.get("type") == "object" and "properties" in each:
            each["additionalProperties"] = False
            each["properties"] = {key: _no_null(given) for key, given in each["properties"].items()}
    needed = {"apiVersion", "kind", "metadata", "spec"}
    return {**schema, "required": sorted(needed & set(schema["properties"]))}


def _no_null(given: Schema) -> Schema:
    """Without pydantic's "or null": Kubernetes leaves out what is not given."""
    kinds = [each for each in given.get("anyOf", []) if each != {"type": "null"}]
    return kinds[0] if len(kinds) == 1 else given
