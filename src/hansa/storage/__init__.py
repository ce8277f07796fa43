"""Where do objects live, who may reach them, and who tells of uploads?

`ports.py` says what we need from an object store: `ObjectStore` (objects in buckets), `StoreUsers` (people
with keys of their own), `BucketBooks` (all that takes room in a bucket), `Loans` (keys of one run, for what its
`Reach` names; `loan_ends` sees that they end), `UploadSource` (a stream of news) and `Notifications` (stores
that call us back).
`drivers/s3` implements them for the embedded SeaweedFS, for MinIO and for plain S3.

`people` knows who has been here and their keys, `buckets` makes and shares buckets (`register` remembers them,
`erasing` empties those that go, `listings` shows what is in them, `grants` derives the store's rights, `accounting`
counts what is in them, `fullness` closes those that are full (`recounting` says when to count again), `crowding` all of
them when their disk is, `links` checks presigned links), `volumes` keeps what outlives jobs (`places` is where,
`folders` one kind of it). `records` says what of it is durable; `store` keeps it.
"""

from hansa.storage.accounting import Accounting
from hansa.storage.buckets import Buckets, BucketView
from hansa.storage.contents import MOST_COUNTED, Contents
from hansa.storage.crowding import Crowding
from hansa.storage.erasing import Erasing
from hansa.storage.errors import (
    BadBucket,
    BadLink,
    BucketBusy,
    BucketExists,
    BucketQuota,
    NoDisk,
    StoreCrowded,
    TooManyListings,
    VolumeAttached,
    VolumeExists,
    VolumeMissing,
    VolumeQuota,
)
from hansa.storage.folders import Folders
from hansa.storage.fullness import Fullness
from hansa.storage.grants import Grants
from hansa.storage.links import Link, LinkRequest, link_request
from hansa.storage.loan_ends import SureLoans
from hansa.storage.people import Claim, People, Person, granted
from hansa.storage.places import Place, Standing, VolumePlaces
from hansa.storage.ports import (
    BucketBooks,
    Closable,
    Keys,
    LoanEnds,
    Loans,
    Notifications,
    ObjectInfo,
    ObjectPage,
    ObjectStore,
    RunKeys,
    StoreAddress,
    StoreNews,
    StoreUsers,
    Upload,
    UploadSource,
)
from hansa.storage.reach import NOTHING, Reach
from hansa.storage.records import (
    Bucket,
    BucketRecords,
    OwnerOf,
    PeopleRecords,
    PersonRecord,
    Volume,
    VolumeRecords,
)
from hansa.storage.register import BucketRegister
from hansa.storage.turns import Turns
from hansa.storage.volumes import Attachment, Volumes, VolumeView

__all__ = [
    "MOST_COUNTED",
    "NOTHING",
    "Accounting",
    "Attachment",
    "BadBucket",
    "BadLink",
    "Bucket",
    "BucketBooks",
    "BucketBusy",
    "BucketExists",
    "BucketQuota",
    "BucketRecords",
    "BucketRegister",
    "BucketView",
    "Buckets",
    "Claim",
    "Closable",
    "Contents",
    "Crowding",
    "Erasing",
    "Folders",
    "Fullness",
    "Grants",
    "Keys",
    "Link",
    "LinkRequest",
    "LoanEnds",
    "Loans",
    "NoDisk",
    "Notifications",
    "ObjectInfo",
    "ObjectPage",
    "ObjectStore",
    "OwnerOf",
    "People",
    "PeopleRecords",
    "Person",
    "PersonRecord",
    "Place",
    "Reach",
    "RunKeys",
    "Standing",
    "StoreAddress",
    "StoreCrowded",
    "StoreNews",
    "StoreUsers",
    "SureLoans",
    "TooManyListings",
    "Turns",
    "Upload",
    "UploadSource",
    "Volume",
    "VolumeAttached",
    "VolumeExists",
    "VolumeMissing",
    "VolumePlaces",
    "VolumeQuota",
    "VolumeRecords",
    "VolumeView",
    "Volumes",
    "granted",
    "link_request",
]
