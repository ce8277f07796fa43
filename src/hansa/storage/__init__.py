"""Where do objects live, who may reach them, and who tells of uploads?

`ports.py` says what we need from an object store: `ObjectStore` (objects in buckets), `StoreUsers` (people
with keys of their own), `UploadSource` (a stream of news) and `Notifications` (stores that call us back).
`drivers/s3` implements them for the embedded SeaweedFS, for MinIO and for plain S3.

`people` knows who has been here and their keys, `buckets` makes and shares buckets (`register` remembers them,
`grants` derives the store's rights, `accounting` counts what is in them, `links` checks presigned links),
`volumes` keeps what outlives jobs (`places` is where, `folders` one kind of it). `records` says what of it is durable;
`store` keeps it.
"""

from hansa.storage.accounting import Accounting, Contents
from hansa.storage.buckets import Buckets, BucketView
from hansa.storage.errors import (
    BadBucket,
    BadLink,
    BucketBusy,
    BucketExists,
    BucketQuota,
    VolumeAttached,
    VolumeExists,
    VolumeMissing,
    VolumeQuota,
)
from hansa.storage.folders import Folders
from hansa.storage.grants import Grants
from hansa.storage.links import Link, LinkRequest, link_request
from hansa.storage.people import Claim, People, Person, granted
from hansa.storage.places import Place, Standing, VolumePlaces
from hansa.storage.ports import (
    Keys,
    Notifications,
    ObjectInfo,
    ObjectPage,
    ObjectStore,
    StoreAddress,
    StoreNews,
    StoreUsers,
    Upload,
    UploadSource,
)
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
from hansa.storage.volumes import Attachment, Volumes, VolumeView

__all__ = [
    "Accounting",
    "Attachment",
    "BadBucket",
    "BadLink",
    "Bucket",
    "BucketBusy",
    "BucketExists",
    "BucketQuota",
    "BucketRecords",
    "BucketRegister",
    "BucketView",
    "Buckets",
    "Claim",
    "Contents",
    "Folders",
    "Grants",
    "Keys",
    "Link",
    "LinkRequest",
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
    "Standing",
    "StoreAddress",
    "StoreNews",
    "StoreUsers",
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
