"""The base of every settings class."""

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """Base of every settings class: unknown keys are refused, values cannot change."""

    model_config = ConfigDict(extra="forbid", frozen=True)
