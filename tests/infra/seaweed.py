"""A SeaweedFS server: S3 on loopback, in a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.infra.loopback import (
    ACCESS_KEY,
    BUCKET,
    SECRET_KEY,
    S3Server,
    answers,
    binary,
    free_ports,
    running,
)


@contextmanager
def s3_running(home: Path) -> Iterator[S3Server]:
    """Run a server with one bucket and one identity until the block ends."""
    import boto3.session

    weed = binary("weed")
    key = {"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}
    actions = ["Admin", "Read", "List", "Write", "Tagging"]
    identity = {"name": "tester", "credentials": [key], "actions": actions}
    (home / "s3.json").write_text(json.dumps({"identities": [identity]}))
    master, master_grpc, volume, volume_grpc, filer, filer_grpc, s3, s3_grpc = free_ports(8)
    command = [weed, "-logtostderr=true", "server", f"-dir={home}"]
    command += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"]
    command += [f"-master.port={master}", f"-master.port.grpc={master_grpc}"]
    command += [f"-volume.port={volume}", f"-volume.port.grpc={volume_grpc}"]
    command += [f"-filer.port={filer}", f"-filer.port.grpc={filer_grpc}"]
    command += [f"-s3.port={s3}", f"-s3.port.grpc={s3_grpc}", f"-s3.config={home}/s3.json"]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.autoCreateBucket=false"]
    command += [f"-filer.localSocket={home}/filer.sock", f"-s3.localSocket={home}/s3.sock"]
    command += ["-master.volumeSizeLimitMB=256", "-volume.max=100", "-volume.preStopSeconds=0"]
    endpoint = f"http://127.0.0.1:{s3}"
    environment = {
        "AWS_ENDPOINT_URL_S3": endpoint,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    client = boto3.session.Session(ACCESS_KEY, SECRET_KEY, region_name="us-east-1").client(
        "s3", endpoint_url=endpoint
    )

    def ready() -> bool:
        from botocore.exceptions import BotoCoreError, ClientError

        if not answers(s3):
            return False
        try:
            if all(each["Name"] != BUCKET for each in client.list_buckets()["Buckets"]):
                client.create_bucket(Bucket=BUCKET)
            # the first write waits for a volume, and fails until there is one
            client.put_object(Bucket=BUCKET, Key="ready", Body=b"ready")
        except (BotoCoreError, ClientError):
            return False
        return True

    with running(command, ready=ready, log=home / "log", environment=dict(os.environ)):
        yield S3Server(endpoint, environment)
