"""Upload a dump and drop the oldest: python upload.py FILE s3://BUCKET/PREFIX KEEP.

Endpoint and keys come from the environment. An older dump goes only after the new one was read
back with its length; dumps are the objects PREFIX/*.dump, whose names are their times in UTC.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlparse

import boto3


def upload(file: Path, target: str, keep: int, *, now: datetime) -> tuple[str, list[str]]:
    """Give the key of the new dump and the keys that were deleted.

    Raises:
        SystemExit: The file is empty, or what was stored is not as long as it.
    """
    length = file.stat().st_size
    if not length:
        raise SystemExit(f"error: {file} is empty; nothing was uploaded")
    place = urlparse(target)
    bucket, prefix = place.netloc, place.path.strip("/")
    client = boto3.client("s3")
    key = f"{prefix}/{now:%Y-%m-%dT%H-%M-%SZ}.dump"
    client.upload_file(str(file), bucket, key)
    stored = client.head_object(Bucket=bucket, Key=key)["ContentLength"]
    if stored != length:
        raise SystemExit(f"error: s3://{bucket}/{key} has {stored} bytes, {file} has {length}")
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/")
    found = sorted(each["Key"] for page in pages for each in page.get("Contents", []))
    dumps = [name for name in found if name.endswith(".dump")]
    old = dumps[: max(0, len(dumps) - max(1, keep))]
    for name in old:
        client.delete_object(Bucket=bucket, Key=name)
    return key, old


if __name__ == "__main__":
    made, gone = upload(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), now=datetime.now(UTC))
    print(f"uploaded {made}; deleted {len(gone)}: {', '.join(gone) or 'none'}")
