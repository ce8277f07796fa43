"""How do certificates and roots get into TLS? Contexts for both ends; keys touch no disk on the way.

The hub accepts a certificate whose time is over: whether it may still be used is decided for every request, by the
clock that all hubs share, with an answer in words (`federation/standing.py`). Signatures, purpose and chain are
checked here, by OpenSSL.
"""

import os
import ssl

_NO_CHECK_TIME = 0x200000  # X509_V_FLAG_NO_CHECK_TIME, for which Python has no name


def for_hub(chain: str, key: str, roots: str) -> ssl.SSLContext:
    """The members' listener. A client certificate is asked for, not demanded: who joins has none yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_OPTIONAL
    context.verify_flags = ssl.VerifyFlags(context.verify_flags | _NO_CHECK_TIME)
    # A session taken up again is not verified again, and could outlive the root it was verified with.
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    context.load_verify_locations(cadata=roots)
    _load(context, chain, key)
    return context


def for_member(roots: str, chain: str = "", key: str = "") -> ssl.SSLContext:
    """A manager's calls: the hub must be vouched for by one of these roots, whatever else this machine trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=roots)
    if chain:
        _load(context, chain, key)
    return context


def for_stranger() -> ssl.SSLContext:
    """Reads public roots from a hub that is not known yet: nothing said here may be believed, or be secret."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _load(context: ssl.SSLContext, chain: str, key: str) -> None:
    """Python reads them from files only; this one is in memory and gone when it is closed."""
    file = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(file, (key.strip() + "\n" + chain).encode())
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
