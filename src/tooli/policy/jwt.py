"""Verify JWTs with the keys of a file. joserfc does the cryptography (`tooli[auth]`).

The key decides which algorithms are allowed, never the token: a public key does not verify an
HMAC, and no key verifies `none`.
"""

from __future__ import annotations

from tooli.core.record import Record
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

LEEWAY_SECONDS = 30
"""Seconds by which clocks may differ."""
_MAX_KEYS, _MAX_SCOPES, _MAX_SUBJECT_CHARS = 64, 500, 200
_MIN_SECRET_BYTES = 32  # the length of the shortest digest
_CURVE_ALGORITHMS = {
    "P-256": ("ES256",),
    "P-384": ("ES384",),
    "P-521": ("ES512",),
    "Ed25519": ("EdDSA", "Ed25519"),
    "Ed448": ("EdDSA", "Ed448"),
}
_RSA_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_HMAC_ALGORITHMS = (("HS256", 32), ("HS384", 48), ("HS512", 64))


class Identity(Record):
    """The subject of a token, and its scopes."""

    principal: str
    scopes: frozenset[str]


class TokenRejected(Exception):  # noqa: N818
    """A token is not valid. The message is the rest of "The token …" and quotes no part of it."""


class UnusableFile(Exception):  # noqa: N818
    """A file cannot be used. The message says why."""


class VerificationKey(Record):
    """A key, and the algorithms that it may be used with."""

    key: Any
    algorithms: tuple[str, ...]
    registry: Any  # joserfc's registry of the algorithms
    key_id: str | None = None  # its `kid`


class VerificationKeySet(Record):
    """The keys of a file."""

    keys: tuple[VerificationKey, ...]


# ------------------------------------------------------------------ keys


def parse_keys(data: bytes) -> VerificationKeySet:
    """Return the keys of a file: PEM, JWK, JWKS or a secret. Raises UnusableFile."""
    import warnings

    _require_joserfc()
    text = data.strip()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about weak keys, which are rejected below
        if text[:1] == b"{":
            return VerificationKeySet(_from_json(text))
        if b"-----BEGIN" in text:
            return VerificationKeySet((_from_pem(text),))
        return VerificationKeySet((_from_secret(text),))


def _require_joserfc() -> None:
    try:
        __import__("joserfc.jwk")
    except ImportError:
        raise UnusableFile("JWTs need joserfc: run pip install 'tooli[auth]'") from None


def _from_json(text: bytes) -> tuple[VerificationKey, ...]:
    from json import loads

    try:
        document: Any = loads(text)
    except (ValueError, RecursionError):
        raise UnusableFile("it is not valid JSON") from None
    jwks: Any = document.get("keys", [document])
    if not is_list(jwks) or len(jwks) > _MAX_KEYS:
        raise UnusableFile(f"its keys are not a list of at most {_MAX_KEYS}")
    is_set = "keys" in document
    found = [key for one in jwks if (key := _from_jwk(one, skip_unsupported=is_set)) is not None]
    if not found:
        raise UnusableFile("it contains no key that verifies a signature")
    return tuple(found)


def _from_jwk(jwk: Any, *, skip_unsupported: bool) -> VerificationKey | None:
    """Return the key of a JWK. With `skip_unsupported`, return None if it cannot be used."""
    from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

    if not is_object(jwk):
        raise UnusableFile("a key in it is not a JSON object")
    kinds: dict[Any, Any] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey, "oct": OctKey}
    kind = kinds.get(jwk.get("kty"))
    if kind is None or jwk.get("use", "sig") != "sig":
        if skip_unsupported:
            return None
        raise UnusableFile("its key is not for signatures")
    if "d" in jwk:
        raise UnusableFile("it contains a private key; use the public one")
    try:
        key = kind.import_key(dict(jwk))
        supported = _allowed_algorithms(key)
    except UnusableFile:
        if skip_unsupported:
            return None
        raise
    except Exception:  # any problem that joserfc finds
        raise UnusableFile("a key in it is malformed") from None
    algorithm = jwk.get("alg")
    algorithms = (
        supported if algorithm is None else tuple([one for one in supported if one == algorithm])
    )
    if not algorithms:
        if skip_unsupported:
            return None
        raise UnusableFile("its key names an algorithm that it cannot be used with")
    key_id = jwk.get("kid")
    return _make_key(key, algorithms, key_id if isinstance(key_id, str) else None)


def _from_pem(text: bytes) -> VerificationKey:
    from joserfc.jwk import ECKey, OKPKey, RSAKey

    if b"PRIVATE KEY" in text:
        raise UnusableFile("it contains a private key; use the public one")
    for kind in (RSAKey, ECKey, OKPKey):
        read: Any = kind
        try:
            key = read.import_key(text)
        except Exception:  # another type, or malformed
            continue
        return _make_key(key, _allowed_algorithms(key))
    raise UnusableFile("it is no public key in PEM")


def _from_secret(text: bytes) -> VerificationKey:
    """Return an HMAC secret.

    It must be one line of text, so that a key of another kind is not used as a secret.
    """
    from joserfc.jwk import OctKey

    if not text.isascii() or not text.decode("ascii").isprintable() or b" " in text:
        raise UnusableFile("it contains neither PEM, nor JSON, nor a secret without spaces")
    if len(text) < _MIN_SECRET_BYTES:
        raise UnusableFile(f"its secret is shorter than {_MIN_SECRET_BYTES} bytes")
    if _is_public_key(text):
        raise UnusableFile("it contains a public key without its PEM lines")
    secret: Any = OctKey
    key = secret.import_key(text)
    return _make_key(key, _allowed_algorithms(key))


def _is_public_key(text: bytes) -> bool:
    """True if a text is a public key, which must not be used as an HMAC secret."""
    from base64 import b64decode

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
            raise UnusableFile(f"its secret is shorter than {_MIN_SECRET_BYTES} bytes")
        return tuple([name for name, least in _HMAC_ALGORITHMS if size >= least])
    if key.key_type == "RSA":
        if key.public_key.key_size < 2048:
            raise UnusableFile("its RSA key is shorter than 2048 bits")
        return _RSA_ALGORITHMS
    curve = key.curve_name
    if curve not in _CURVE_ALGORITHMS:
        raise UnusableFile("the curve of its key is not supported")
    return _CURVE_ALGORITHMS[curve]


def _make_key(key: Any, algorithms: tuple[str, ...], key_id: str | None = None) -> VerificationKey:
    """Return a key that joserfc uses with these algorithms only."""
    from joserfc.errors import UnsupportedAlgorithmError
    from joserfc.jws import JWSRegistry

    class Allowed(JWSRegistry):
        max_header_length = 4096

        def get_alg(self, name: str) -> Any:
            if name not in algorithms:
                raise UnsupportedAlgorithmError("not with this key")
            return self.algorithms[name]

    return VerificationKey(key, algorithms, Allowed(strict_check_header=False), key_id)


# ------------------------------------------------------------------ tokens

_INVALID_CLAIMS = "is not valid yet, or has an invalid claim"


def verify_jwt(
    token: bytes, keys: VerificationKeySet, issuer: str | None, audience: str | None
) -> Identity:
    """Return the identity in a JWT; raise TokenRejected if it is not valid."""
    from joserfc import jwt

    try:
        header = _parse_header(token)
        for key in _matching_keys(keys, header):
            try:
                claims = jwt.decode(token, key.key, registry=key.registry).claims
            except Exception:  # signed with another key, or with none
                continue
            return _identity_from_claims(claims, issuer, audience)
    except TokenRejected:
        raise
    except Exception:  # any malformed token
        raise TokenRejected("is malformed") from None
    raise TokenRejected("was not signed with a known key")


def _parse_header(token: bytes) -> dict[str, Any]:
    from base64 import urlsafe_b64decode
    from json import loads

    first = token.partition(b".")[0]
    header = loads(urlsafe_b64decode(first + b"=" * (-len(first) % 4)))
    if not is_object(header):
        raise TokenRejected("is malformed")
    return header


def _matching_keys(keys: VerificationKeySet, header: dict[str, Any]) -> Iterator[VerificationKey]:
    """Yield the keys that may have signed a token: by `kid` if both have one, and by algorithm."""
    key_id = header.get("kid")
    for key in keys.keys:
        matches_id = key.key_id is None or key_id is None or key.key_id == key_id
        if matches_id and header.get("alg") in key.algorithms:
            yield key


def _identity_from_claims(
    claims: dict[str, Any], issuer: str | None, audience: str | None
) -> Identity:
    """Return the identity in the claims, if time, audience and issuer are valid."""
    from joserfc import errors
    from joserfc.jwt import JWTClaimsRegistry

    if "aud" in claims and audience is None:
        raise TokenRejected("is for an audience, but no token_audience is set")
    wanted: dict[str, Any] = {"exp": {"essential": True}, "sub": {"essential": True}}
    for key_id, value in (("iss", issuer), ("aud", audience)):
        if value is not None:
            wanted[key_id] = {"essential": True, "value": value}
    _check_claim_types(claims)
    try:
        JWTClaimsRegistry(leeway=LEEWAY_SECONDS, **wanted).validate(claims)
    except errors.ExpiredTokenError:
        raise TokenRejected("has expired") from None
    except errors.MissingClaimError:
        missing = sorted([name for name in wanted if claims.get(name) is None])
        raise TokenRejected(f"has no {', '.join(missing)}") from None
    except errors.JoseError:
        raise TokenRejected(_describe_invalid_claim(claims, issuer, audience)) from None
    subject = claims["sub"]
    if len(subject) > _MAX_SUBJECT_CHARS or not subject.isprintable():
        raise TokenRejected("has an invalid subject")
    return Identity(subject, _parse_scopes(claims))


def _check_claim_types(claims: dict[str, Any]) -> None:
    """Reject times that are not finite numbers, and subjects that are not text.

    Some versions of joserfc do not check these types.
    """
    for key_id in ("exp", "nbf", "iat"):
        value = claims.get(key_id)
        if value is not None and not (type(value) in (int, float) and abs(value) < 1 << 53):
            raise TokenRejected(_INVALID_CLAIMS)
    if not isinstance(claims.get("sub"), (str, type(None))):
        raise TokenRejected(_INVALID_CLAIMS)


def _describe_invalid_claim(
    claims: dict[str, Any], issuer: str | None, audience: str | None
) -> str:
    """Return the message about an invalid claim. It does not contain the value of the claim."""
    audiences = claims.get("aud")
    if issuer is not None and claims.get("iss") != issuer:
        return "is from another issuer"
    if (
        audience is not None
        and audiences != audience
        and not (is_list(audiences) and audience in audiences)
    ):
        return "is for another audience"
    return _INVALID_CLAIMS


def _parse_scopes(claims: dict[str, Any]) -> frozenset[str]:
    """Return the scopes of a token, in any of the usual forms."""
    found: set[str] = set()
    for key_id in ("scope", "scp", "scopes"):
        value: Any = claims.get(key_id)
        scopes: Any = value.split() if isinstance(value, str) else [] if value is None else value
        if not is_list(scopes) or not all([isinstance(scope, str) for scope in scopes]):
            raise TokenRejected("has scopes in an unknown form")
        found.update(scopes)
    if len(found) > _MAX_SCOPES:
        raise TokenRejected("has too many scopes")
    return frozenset(found)
