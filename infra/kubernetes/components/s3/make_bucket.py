"""Make a bucket if it is not there: python make_bucket.py NAME. Endpoint and keys: environment.

Waits for a server that is still starting; a wrong key is said at once.
"""

import sys
import time

import boto3
from botocore.exceptions import BotoCoreError, ClientError

PATIENCE = 300.0


def make(name: str, *, patience: float = PATIENCE) -> str:
    """Say what was done. Raises the client's error when `patience` seconds are over."""
    client = boto3.client("s3")
    deadline = time.monotonic() + patience
    while True:
        try:
            client.create_bucket(Bucket=name)
            return f"made the bucket {name}"
        except client.exceptions.BucketAlreadyOwnedByYou:
            return f"the bucket {name} is there"
        except ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if status < 500 or time.monotonic() > deadline:
                raise
        except BotoCoreError:
            if time.monotonic() > deadline:
                raise
        time.sleep(2)


if __name__ == "__main__":
    print(make(sys.argv[1]))
