"""What can be asked with an address? Query parameters of the hub's routes; a misspelt one is refused, not ignored."""

from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from hansa.federation import history

_LATEST = 253_402_300_799  # the end of the year 9999
_SELECTOR = """Which clusters are meant: `region=eu gpu>0 status=ready name~lub* metadata.tier=gold cpu_free>=4000m
state in (ready, degraded) not cordoned`. Terms are joined by spaces or commas; empty is all."""

ClusterId = Annotated[str, Path(description="The cluster's id", max_length=63)]


class StrictQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Chosen(StrictQuery):
    selector: str = Field("", max_length=2000, description=_SELECTOR)


class ChosenInventory(Chosen):
    nodes: bool = Field(False, description="Whether every cluster's nodes are in it")


class Period(StrictQuery):
    start: float | None = Field(
        None,
        alias="from",
        ge=-_LATEST,
        le=_LATEST,
        description="Seconds since 1970, or negative: so many before now; an hour ago if left out",
    )
    to: float | None = Field(None, ge=-_LATEST, le=_LATEST, description="The same; now if left out")
    points: int = Field(120, ge=1, le=history.MOST_POINTS, description="How many samples at most")


class WholePeriod(Period):
    cluster: str = Field("", max_length=63, description="Of one cluster; empty is all")
    region: str = Field("", max_length=255, description="Of one region; empty is all")


class OneCluster(StrictQuery):
    cluster: str = Field("", max_length=63, description="Only what concerns this cluster")


class ChangesPage(OneCluster):
    before: int | None = Field(None, ge=1, le=2**62, description="The last id of the page before: older ones follow")
    most: int = Field(100, ge=1, le=1000, description="How many at most")
