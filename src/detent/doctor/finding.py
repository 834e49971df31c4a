"""Something that is not as it should be, as `detent doctor` tells it."""

import msgspec

ERROR, WARNING = "error", "warning"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    invariant: str
    severity: str
    subject: str
    message: str
    way_out: str
