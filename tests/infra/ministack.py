"""A ministack server: S3 that notifies SQS, SNS and EventBridge, on loopback and in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.infra.loopback import ACCESS_KEY, SECRET_KEY, answers, binary, free_ports, running

REGION = "eu-west-1"


@dataclass(frozen=True)
class Ministack:
    """A server.

    Attributes:
        environment: By which boto3 finds it, for S3 and all else.
    """

    endpoint: str
    environment: dict[str, str]
    _clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        """Return boto3's client of a service there: one, for it takes long to make."""
        import boto3.session

        if service not in self._clients:
            session = boto3.session.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
            made = session.client(service, endpoint_url=self.endpoint)  # type: ignore[call-overload]
            self._clients[service] = made
        return self._clients[service]

    def notified_bucket(self, name: str, *, visibility: int = 30) -> str:
        """Make a bucket, and a queue that it notifies of everything; return the queue's URL."""
        sqs, s3 = self.client("sqs"), self.client("s3")
        url = str(
            sqs.create_queue(
                QueueName=f"{name}-events", Attributes={"VisibilityTimeout": str(visibility)}
            )["QueueUrl"]
        )
        s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
        rule = {
            "QueueArn": self.arn_of(url),
            "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"],
        }
        s3.put_bucket_notification_configuration(
            Bucket=name, NotificationConfiguration={"QueueConfigurations": [rule]}
        )
        return url

    def arn_of(self, url: str) -> str:
        """Return a queue's ARN."""
        found = self.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(found["Attributes"]["QueueArn"])

    def allow(self, url: str) -> None:
        """Let everybody send to a queue, as SNS and EventBridge have to."""
        policy = {
            "Version": "2012-10-17",
            "Statement": [
                {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}
            ],
        }
        self.client("sqs").set_queue_attributes(
            QueueUrl=url, Attributes={"Policy": json.dumps(policy)}
        )


@contextmanager
def ministack_running(home: Path) -> Iterator[Ministack]:
    """Run a server until the block ends."""
    (port,) = free_ports(1)
    endpoint = f"http://127.0.0.1:{port}"
    environment = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": REGION,
    }
    own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    own |= {"GATEWAY_PORT": str(port), "BIND_HOST": "127.0.0.1", "TMPDIR": str(home)}
    own |= {"SERVICES": "s3,sqs,sns,events", "LOG_LEVEL": "WARNING"}
    own |= {"IOT_MTLS_ENABLED": "0", "SFTP_ENABLED": "0"}  # they would listen everywhere
    with running(
        [binary("ministack")], ready=lambda: answers(port), log=home / "ministack.log",
        environment=own,
    ):  # fmt: skip
        yield Ministack(endpoint, environment)
