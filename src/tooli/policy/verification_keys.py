"""The keys that verify JWTs: from a file, or from the JWKS of an authorization server.

    file: PEM, JWK, JWKS or a secret ──▶ parse_keys ─┐
    JWKS of a server: public keys only ▶ parse_jwks ─┴▶ VerificationKey, with its algorithms

joserfc (`tooli[auth]`) does the cryptography. The key decides which algorithms are allowed, never
the token: a public key does not verify an HMAC, and no key verifies `none`.
"""

from __future__ import annotations

import warnings
from base64 import b64decode, urlsafe_b64encode
from json import loads

from tooli.core import Record
from tooli.core.held_keys import hold_key
from tooli.storage.state_files import UnusableFile
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

MAX_KEYS = 64
"""Maximum number of keys in a set."""
_MIN_SECRET_BYTES = 32  # the digest length of HS256
_CURVE_ALGORITHMS = {
    "P-256": ("ES256",),
    "P-384": ("ES384",),
    "P-521": ("ES512",),
    "Ed25519": ("EdDSA", "Ed25519"),
    "Ed448": ("EdDSA", "Ed448"),
}
_RSA_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_HMAC_ALGORITHMS = (("HS256", 32), ("HS384", 48), ("HS512", 64))


class UnsupportedKey(UnusableFile):
    """A key that cannot verify signatures. It is skipped if it is part of a set of keys."""


class VerificationKey(Record):
    """A key, and the algorithms that it may be used with."""

    key: Any
    algorithms: tuple[str, ...]
    registry: Any  # joserfc's registry of the algorithms
    key_id: str | None = None  # its `kid`


def parse_keys(data: bytes) -> tuple[VerificationKey, ...]:
    """Return the keys in the content of a file: PEM, JWK, JWKS or a secret.

    Raises UnusableFile if the content is not valid.
    """
    require_joserfc()
    text = data.strip()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # joserfc warns about weak keys, which are rejected below
        if text[:1] == b"{":
            return _from_json(text)
        if b"-----BEGIN" in text:
            return (_from_pem(text),)
        return (_from_secret(text),)


def parse_jwks(data: bytes) -> tuple[VerificationKey, ...]:
    """Return the keys in the JWKS of an authorization server, which everyone can read.

    Keys that are secret, malformed or not for signatures are skipped. Raises UnusableFile if no key
    is left.
    """
    require_joserfc()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _from_json(data, is_public=True)


def require_joserfc() -> None:
    """Raise UnusableFile unless joserfc is installed."""
    _key_classes()


def _key_classes() -> dict[str, Any]:
    """Return the key classes of joserfc by `kty`, as `Any`: their type hints are incomplete."""
    try:
        from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
    except ImportError:
        raise UnusableFile("JWTs need joserfc: run pip install 'tooli[auth]>=7.0a1'") from None
    return {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey, "oct": OctKey}


def _from_json(text: bytes, *, is_public: bool = False) -> tuple[VerificationKey, ...]:
    """Return the keys of a JWK or JWKS. With `is_public`, it is a JWKS that everyone can read."""
    try:
        document: Any = loads(text)
    except (ValueError, RecursionError):
        raise UnusableFile("it is not valid JSON") from None
    if is_public and not (is_object(document) and "keys" in document):
        raise UnusableFile("it is not a JWKS")
    jwks: Any = document.get("keys", [document])
    if not is_list(jwks) or len(jwks) > MAX_KEYS:
        raise UnusableFile(f"its keys are not a list of at most {MAX_KEYS}")
    found: list[VerificationKey] = []
    for jwk in jwks:
        try:
            if is_public and is_object(jwk) and jwk.get("kty") == "oct":
                continue  # everyone can read it, so it is not a secret
            found.append(_from_jwk(jwk))
        except UnsupportedKey:
            if "keys" not in document:  # one key, not a set
                raise
        except UnusableFile:
            if not is_public:
                raise
    if not found:
        raise UnusableFile("it contains no key that verifies a signature")
    return tuple(found)


def _from_jwk(jwk: object) -> VerificationKey:
    if not is_object(jwk):
        raise UnusableFile("a key in it is not a JSON object")
    kind = _key_classes().get(str(jwk.get("kty")))
    if kind is None or jwk.get("use", "sig") != "sig":
        raise UnsupportedKey("its key is not for signatures")
    if "d" in jwk:
        raise UnusableFile("it contains a private key; use the public one")
    try:
        if jwk["kty"] == "oct":
            hold_key(str(jwk.get("k", "")))
        key = kind.import_key(dict(jwk))
        if jwk["kty"] == "oct":
            _hold_secret(key.raw_value)
        supported = _allowed_algorithms(key)
    except UnsupportedKey:
        raise
    except Exception:  # any problem that joserfc finds
        raise UnusableFile("a key in it is malformed") from None
    algorithm = jwk.get("alg")
    algorithms = (
        supported if algorithm is None else tuple([one for one in supported if one == algorithm])
    )
    if not algorithms:
        raise UnsupportedKey("its key names an algorithm that it cannot be used with")
    key_id = jwk.get("kid")
    return _make_key(key, algorithms, key_id if isinstance(key_id, str) else None)


def _from_pem(text: bytes) -> VerificationKey:
    if b"PRIVATE KEY" in text:
        raise UnusableFile("it contains a private key; use the public one")
    for kind in ("RSA", "EC", "OKP"):
        try:
            key = _key_classes()[kind].import_key(text)
        except Exception:  # another type, or malformed
            continue
        return _make_key(key, _allowed_algorithms(key))
    raise UnusableFile("it is not a public key in PEM format")


def _from_secret(text: bytes) -> VerificationKey:
    """Return the key for an HMAC secret.

    The secret must be one line of text, so that a key of another kind is not used as a secret.
    """
    if not text.isascii() or not text.decode("ascii").isprintable() or b" " in text:
        raise UnusableFile("it contains neither PEM, nor JSON, nor a secret without spaces")
    if len(text) < _MIN_SECRET_BYTES:
        raise UnusableFile(f"its secret is shorter than {_MIN_SECRET_BYTES} bytes")
    if _is_public_key(text):
        raise UnusableFile("it contains a public key without its PEM lines")
    _hold_secret(text)
    key = _key_classes()["oct"].import_key(text)
    return _make_key(key, _allowed_algorithms(key))


def _hold_secret(secret: bytes) -> None:
    """Add a secret to the keys that a sandboxed process overwrites, with its form in a JWK."""
    hold_key(secret)
    hold_key(urlsafe_b64encode(secret).rstrip(b"="))


def _is_public_key(text: bytes) -> bool:
    """True if a text is a public key, which must not be used as an HMAC secret."""
    from cryptography.hazmat.primitives.serialization import load_der_public_key
    from cryptography.x509 import load_der_x509_certificate

    try:
        data = b64decode(text, validate=True)
    except ValueError:
        return False
    for load in (load_der_public_key, load_der_x509_certificate):
        try:
            load(data)
        except Exception:  # not a key
            continue
        return True
    return False


def _allowed_algorithms(key: Any) -> tuple[str, ...]:
    """Return the algorithms that a key may be used with, by its type, size or curve."""
    if key.key_type == "oct":
        size = len(key.raw_value)
        if size < _MIN_SECRET_BYTES:
            raise UnsupportedKey(f"its secret is shorter than {_MIN_SECRET_BYTES} bytes")
        return tuple([name for name, min_size in _HMAC_ALGORITHMS if size >= min_size])
    if key.key_type == "RSA":
        if key.public_key.key_size < 2048:
            raise UnsupportedKey("its RSA key is shorter than 2048 bits")
        return _RSA_ALGORITHMS
    curve = key.curve_name
    if curve not in _CURVE_ALGORITHMS:
        raise UnsupportedKey("the curve of its key is not supported")
    return _CURVE_ALGORITHMS[curve]


def _make_key(
    key: object, algorithms: tuple[str, ...], key_id: str | None = None
) -> VerificationKey:
    """Return a key that joserfc uses with these algorithms only."""
    from joserfc import errors, jws

    class KeyRegistry(jws.JWSRegistry):
        max_header_length = 4096

        def get_alg(self, name: str) -> Any:
            if name not in algorithms:
                raise errors.UnsupportedAlgorithmError("the key does not allow this algorithm")
            return self.algorithms[name]

    return VerificationKey(key, algorithms, KeyRegistry(strict_check_header=False), key_id)
