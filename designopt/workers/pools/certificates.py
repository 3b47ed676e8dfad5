"""Certificates of one run: without them, neither its scheduler nor its workers can be reached.

Dask's messages are pickles, so anyone who can connect can run code as the user of the run. A port on loopback is open
to all users of the machine.
"""

from __future__ import annotations

import datetime
from typing import Any

#: Validity of a certificate, and tolerance for clock differences.
VALID, SKEW = datetime.timedelta(days=365), datetime.timedelta(days=1)


def temporary_security() -> Any:
    """A `distributed.Security` with a new key and a self-signed certificate, in memory only.

    The key is on the curve P-256, which takes less than a millisecond (RSA of 2048 bits: 60 ms and more).
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from distributed.security import Security

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "designopt-run")])
    issue_time = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), issue_time - SKEW, issue_time + VALID
    ).add_extension(x509.SubjectAlternativeName([x509.DNSName("designopt-run")]), critical=False)
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
    plain = serialization.NoEncryption()
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()
    roles = {f"tls_{role}_{part}": text
             for role in ("client", "scheduler", "worker")
             for part, text in (("cert", certificate), ("key", secret))}  # fmt: skip
    return Security(require_encryption=True, tls_ca_file=certificate, **roles)  # type: ignore[no-untyped-call]
