"""Parts that signatures of all kinds have: the text that a proof holds, and the flags of an authenticator."""

import base64
import binascii

from detent.errors import Invalid

MAX_SIGNATURE = 64 * 1024
#: Flags of an authenticator: the person was present; the person was verified by a PIN or a fingerprint.
PRESENT, VERIFIED = 0x01, 0x04


def decoded(text: str, *, urlsafe: bool = False) -> bytes:
    if len(text) > MAX_SIGNATURE:
        raise Invalid(f"a signature may have {MAX_SIGNATURE} characters and this one has {len(text)}")
    try:
        if urlsafe:
            return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Invalid("the signature is not base64") from error
