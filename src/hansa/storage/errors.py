"""Why was a bucket or volume refused? Each says what to do next."""

from hansa.kernel.errors import Conflict, Forbidden, Invalid, Kind, Temporary


class BadBucket(Invalid):
    """The description of a bucket is not valid."""

    code = "storage.bucket-invalid"


class BucketExists(Conflict):
    """The name of the bucket is taken."""

    code = "storage.bucket-exists"


class BucketBusy(Temporary):
    """The bucket is being removed, or counted, at this moment."""

    code = "storage.bucket-busy"


class TooManyListings(Temporary):
    """The caller has too many buckets listed at the same time."""

    code, kind = "storage.too-many-listings", Kind.TOO_MANY


class BucketQuota(Forbidden):
    """The user's quota of buckets or of storage in them is used up."""

    code = "storage.bucket-quota"


class BadLink(Invalid):
    """The request for a presigned link is not valid."""

    code = "storage.link-invalid"


class VolumeExists(Conflict):
    """A volume of that name exists already."""

    code = "storage.volume-exists"


class NoDisk(Conflict):
    """The cluster's disk has no room for the volume now."""

    code = "storage.volume-no-disk"


class StoreCrowded(Temporary):
    """The cluster's disk has no room for more objects now."""

    code = "storage.no-disk"


class VolumeQuota(Invalid):
    """The user's quota does not allow such a volume."""

    # A 400 at OSCAR's door, whose clients look for the word "quota" in it.
    code = "storage.volume-quota"


class VolumeAttached(Invalid):
    """Services still use the volume."""

    code = "storage.volume-attached"


class VolumeMissing(Invalid):
    """A service names a volume that does not exist."""

    code = "storage.volume-missing"
