"""What tells that objects came: a listing that is looked at again and again, or a queue.

`source.py` is the contract, `polling.py` and `sqs.py` keep it, `notices.py` reads what S3 writes
into a queue. `tests/infra/test_event_sources.py` is the contract as a test that each one passes.
"""
