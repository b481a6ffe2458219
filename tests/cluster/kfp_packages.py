"""Pipeline packages as they are uploaded; what is asked of a pipeline and of its parameters.

After `server/util.go` and `template/v2_template.go` of kubeflow/pipelines.
"""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from email import message_from_bytes, policy
from typing import Any

import yaml
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

from tests.cluster.http_double import Request
from tests.cluster.kfp_errors import INVALID, KfpError

_LARGEST = 32 << 20
_TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "NUMBER_DOUBLE": ((int, float), "type double or integer, but the parameter value is not of number value type"),  # noqa: E501
    "NUMBER_INTEGER": ((int, float), "type double or integer, but the parameter value is not of number value type"),  # noqa: E501
    "STRING": (str, "type string, but the input parameter is not of string value type"),
    "BOOLEAN": (bool, "type bool, but the input parameter is not of bool value type"),
    "LIST": (list, "type list, but the input parameter is not of list value type"),
    "STRUCT": (dict, "type struct, but the input parameter is not of struct value type"),
}  # fmt: skip


def uploaded_file(request: Request) -> tuple[str, bytes] | None:
    """The name and content of the form's `uploadfile`; None if it has none."""
    head = f"Content-Type: {request.headers.get('content-type', '')}\r\n\r\n".encode()
    message = message_from_bytes(head + request.body, policy=policy.HTTP)
    for part in message.iter_parts() if message.is_multipart() else ():
        if part.get_param("name", header="content-disposition") == "uploadfile":
            content = part.get_payload(decode=True)
            assert isinstance(content, bytes)
            return str(part.get_filename() or ""), content
    return None


def package_text(name: str, content: bytes) -> str:
    """The YAML in a file, a zip or a gzipped tar.

    Raises:
        KfpError: It is none of these, too large, or not readable.
    """
    if len(content) > _LARGEST:
        raise KfpError(INVALID, f"File size too large. Maximum supported size: {_LARGEST}")
    try:
        if name.endswith((".yaml", ".yml")):
            return content.decode()
        if content[:2] == b"PK":
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                return archive.read(_choose(archive.namelist())).decode()
        if content[:2] == b"\x1f\x8b":
            with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as tar:
                file = tar.extractfile(_choose(tar.getnames()))
                assert file is not None
                return file.read().decode()
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise KfpError(INVALID, f"Error decompress the pipeline file: {error}") from None
    raise KfpError(INVALID, "Unexpected pipeline file format. Support .zip, .tar.gz or YAML.")


def _choose(names: list[str]) -> str:
    name = "pipeline.yaml" if "pipeline.yaml" in names else next(iter(names), "")
    if not name.endswith((".yaml", ".yml")):
        raise KfpError(INVALID, f"Expecting a pipeline.yaml file inside the archive. Got: {name}")
    return name


def spec_of(text: str) -> dict[str, Any]:
    """A package's documents as the API shows them: the spec, or both specs under their names.

    Raises:
        KfpError: It is no pipeline of version 2.
    """
    try:
        documents = [each for each in yaml.safe_load_all(text) if each is not None]
    except yaml.YAMLError as error:
        raise KfpError(INVALID, f"unknown template format: {error}") from None
    if len(documents) == 2 and "platforms" in documents[1]:
        spec = {"pipeline_spec": documents[0], "platform_spec": documents[1]}
    elif len(documents) == 1:
        spec = documents[0]
    else:
        raise KfpError(INVALID, "unknown template format: pipeline spec is invalid")
    check_spec(spec)
    return spec


def parts_of(spec: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The pipeline's and the platform's spec; the second may be empty."""
    if "pipeline_spec" in spec:
        return spec["pipeline_spec"], spec.get("platform_spec") or {}
    return spec, {}


def check_spec(spec: Any) -> None:
    if not isinstance(spec, dict) or not isinstance(parts_of(spec)[0], dict):
        raise KfpError(INVALID, "unknown template format: pipeline spec is invalid")
    pipeline, platform = parts_of(spec)
    if "pipelineInfo" not in pipeline:
        raise KfpError(INVALID, "unknown template format: pipeline spec is invalid")
    try:
        json_format.ParseDict(pipeline, pipeline_spec_pb2.PipelineSpec())
        json_format.ParseDict(platform, pipeline_spec_pb2.PlatformSpec())
    except json_format.ParseError as error:
        raise KfpError(INVALID, f"invalid v2 pipeline spec: {error}") from None
    name = pipeline["pipelineInfo"].get("name", "")
    if not name:
        raise KfpError(INVALID, "invalid v2 pipeline spec: name is empty")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,127}", name):
        raise KfpError(
            INVALID,
            "invalid v2 pipeline spec: name should consist of lower case alphanumeric characters "
            f"or '-', start with one of the former and have at most 128: {name}",
        )
    if not pipeline.get("root"):
        raise KfpError(INVALID, "invalid v2 pipeline spec: root component is empty")


def check_parameters(spec: dict[str, Any], given: dict[str, Any]) -> None:
    """Refuse what is missing, of another type, or not asked for."""
    pipeline, _ = parts_of(spec)
    asked = pipeline["root"].get("inputDefinitions", {}).get("parameters", {})
    for name, about in asked.items():
        if name not in given:
            if not about.get("isOptional") and "defaultValue" not in about:
                raise _bad_input(
                    f"parameter {name} is not optional, yet has neither default value nor "
                    "user provided value"
                )
            continue
        kinds, complaint = _TYPES.get(about.get("parameterType", ""), (object, ""))
        is_flag = isinstance(given[name], bool)
        if not isinstance(given[name], kinds) or (is_flag and kinds not in (bool, object)):
            raise _bad_input(f"input parameter {name} requires {complaint}")
    extra = [name for name in given if name not in asked]
    if extra:
        raise _bad_input(f"parameter(s) provided are not required by pipeline: {', '.join(extra)}")


def _bad_input(said: str) -> KfpError:
    return KfpError(INVALID, said, "invalid pipeline job inputs")
