"""Settings of parallel training."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from training_core.base_settings import Settings


class ParallelSettings(Settings):
    """How processes share the work."""

    strategy: Literal["auto", "single", "ddp", "fsdp"] = Field(
        "auto", description="auto: single for one process, ddp for more."
    )
    replicas: int = Field(
        1, ge=1, description="fsdp: groups that each hold the whole model (HSDP); 1: one group."
    )
    cpu_offload: bool = Field(False, description="fsdp: keep sharded state in the CPU's memory.")
    static_graph: bool = Field(
        False, description="ddp: the same parameters take part in every step; overlaps more."
    )
