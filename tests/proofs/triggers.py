"""Random sequences of events, and whether each version of the data gets one run: make prove-triggers
"""

from __future__ import annotations

import random
import sys

from tests.proofs.watch_oracle import judge
from tests.proofs.watch_sequences import simulate

if __name__ == "__main__":
    import time
    t=time.time()
    for n in range(int(sys.argv[1]), int(sys.argv[2])):
        found = simulate(random.Random(n))
        verdict = judge(found)
        print(n, found.watchers, found.deaths, len(found.kubeflow.runs), "due", verdict.due, "missed", len(verdict.missed), "doubled", len(verdict.doubled), "over", len(verdict.overlapping), "torn", verdict.torn, f"{time.time()-t:.1f}", flush=True)
        for w in [*verdict.missed, *verdict.doubled, *verdict.overlapping]: print("    ", w)
        if "-v" in sys.argv: print("\n".join(found.log))
