"""How much fits here, who may use how much, and who did?

`capacity` holds the promises against this cluster's machines, `shares` what each owner holds of them and may hold,
`admission` the line in front of both. `quotas` are the limits of each user (`limits` their arithmetic), `usage` the
figures behind `/system/metrics` over a `window` of time.
"""

from hansa.resources.admission import Admission
from hansa.resources.call_notes import CallNotes
from hansa.resources.capacity import NO_LIMIT, Ledger, Needs, Node
from hansa.resources.limits import BadQuota, Limits, QuotaChange, exact_size
from hansa.resources.quotas import Gauge, Gauges, QuotaRecords, QuotaReport, Quotas, Used, check_uid
from hansa.resources.shares import NO_SHARE, Share, Shares, beyond_rest, beyond_share, how_many
from hansa.resources.usage import (
    CLUSTER_METRICS,
    GROUPS,
    SERVICE_METRICS,
    UNKNOWN_COUNTRY,
    AskedTooMuch,
    BadMetric,
    Counts,
    Invocation,
    Line,
    Metric,
    Requests,
    Scope,
    Source,
    Summary,
    Usage,
    UsageRecords,
)
from hansa.resources.window import BadWindow, Window

__all__ = [
    "CLUSTER_METRICS",
    "GROUPS",
    "NO_LIMIT",
    "NO_SHARE",
    "SERVICE_METRICS",
    "UNKNOWN_COUNTRY",
    "Admission",
    "AskedTooMuch",
    "BadMetric",
    "BadQuota",
    "BadWindow",
    "CallNotes",
    "Counts",
    "Gauge",
    "Gauges",
    "Invocation",
    "Ledger",
    "Limits",
    "Line",
    "Metric",
    "Needs",
    "Node",
    "QuotaChange",
    "QuotaRecords",
    "QuotaReport",
    "Quotas",
    "Requests",
    "Scope",
    "Share",
    "Shares",
    "Source",
    "Summary",
    "Usage",
    "UsageRecords",
    "Used",
    "Window",
    "beyond_rest",
    "beyond_share",
    "check_uid",
    "exact_size",
    "how_many",
]
