"""The one setting that says which image the steps run in."""

import os

IMAGE = os.environ.get("EVERTRAIN_IMAGE", "evertrain:0.1.0")
