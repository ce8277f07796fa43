"""How do we remember? Tables, one writer, repositories; SQLite or PostgreSQL underneath."""

from hansa.store import schema, sealed
from hansa.store.audit import AuditStore
from hansa.store.buckets import BucketStore
from hansa.store.database import Database, DatabaseDown, DatabaseFull, make_engine, sqlite_url
from hansa.store.delegations import DelegationStore, ReceiptStore
from hansa.store.facts import Facts
from hansa.store.jobs import JobStore
from hansa.store.lineages import LineageStore
from hansa.store.loan_ends import LoanEndStore
from hansa.store.operations import OperationStore
from hansa.store.people import PeopleStore
from hansa.store.quotas import QuotaStore
from hansa.store.services import ServiceStore
from hansa.store.sightings import SightingStore
from hansa.store.uploads import UploadLedger
from hansa.store.usage import UsageStore
from hansa.store.volumes import VolumeStore

__all__ = [
    "AuditStore",
    "BucketStore",
    "Database",
    "DatabaseDown",
    "DatabaseFull",
    "DelegationStore",
    "Facts",
    "JobStore",
    "LineageStore",
    "LoanEndStore",
    "OperationStore",
    "PeopleStore",
    "QuotaStore",
    "ReceiptStore",
    "ServiceStore",
    "SightingStore",
    "UploadLedger",
    "UsageStore",
    "VolumeStore",
    "make_engine",
    "schema",
    "sealed",
    "sqlite_url",
]
