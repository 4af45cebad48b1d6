"""Verify a JWT with known keys, and read the identity of its subject from the claims.

    token ─▶ header ─▶ key with this `kid` and algorithm ─▶ signature ─▶ claims ─▶ Identity

No error contains a part of a token.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from json import loads

from tooli.core import Record
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.policy.verification_keys import VerificationKey

LEEWAY_SECONDS = 30
"""Seconds by which clocks may differ."""
_MAX_SCOPES, _MAX_SUBJECT_CHARS = 500, 200
_CLIENT_PREFIX = "client:"
_TOKEN_TYPES = (None, "at+jwt", "application/at+jwt", "jwt")
"""The accepted `typ` of tokens of an authorization server (RFC 9068), in lower case."""


class Identity(Record):
    """The subject of a token, its scopes, and the Unix time at which it expires, if known."""

    principal: str
    scopes: frozenset[str]
    expires_at: float | None = None


class TokenRejected(Exception):  # noqa: N818
    """A token is not valid.

    The message completes the sentence "The token …". It contains no part of the token.
    """


class MustWait(Exception):  # noqa: N818
    """A token cannot be verified without a request to the authorization server."""


class IssuerError(Exception):
    """The authorization server cannot be asked, or its answer cannot be used.

    The message is for the operator of the server. It contains no token and no secret.
    """


class ExpectedClaims(Record):
    """What the claims of a token must be."""

    issuer: str | None = None  # None: any
    audiences: tuple[str, ...] = ()  # one of them; empty: the token must have no audience
    is_access_token: bool = False  # True: a token of an authorization server, for this server


_INVALID_CLAIMS = "is not valid yet, or has an invalid claim"


def verify_jwt(
    token: bytes, keys: tuple[VerificationKey, ...], expected: ExpectedClaims
) -> Identity:
    """Return the identity in a JWT; raise TokenRejected if it is not valid."""
    from joserfc import jwt

    try:
        header = parse_header(token)
        if expected.is_access_token:
            _check_token_type(header)
        for key in _matching_keys(keys, header):
            try:
                claims = jwt.decode(token, key.key, registry=key.registry).claims
            except Exception:  # not signed, or signed with another key
                continue
            return identity_from_claims(claims, expected)
    except TokenRejected:
        raise
    except Exception:  # any malformed token
        raise TokenRejected("is malformed") from None
    raise TokenRejected("was not signed with a known key")


def parse_header(token: bytes) -> JsonObject:
    """Return the header of a JWT, which is not verified; raise TokenRejected if it has none."""
    first = token.partition(b".")[0]
    try:
        header = loads(urlsafe_b64decode(first + b"=" * (-len(first) % 4)))
    except (ValueError, RecursionError):
        raise TokenRejected("is malformed") from None
    if not is_object(header):
        raise TokenRejected("is malformed")
    return header


def _matching_keys(
    keys: tuple[VerificationKey, ...], header: JsonObject
) -> Iterator[VerificationKey]:
    """Yield the keys that may have signed a token: by `kid` if both have one, and by algorithm."""
    key_id = header.get("kid")
    for key in keys:
        matches_id = key.key_id is None or key_id is None or key.key_id == key_id
        if matches_id and header.get("alg") in key.algorithms:
            yield key


def _check_token_type(header: JsonObject) -> None:
    """Reject tokens that the authorization server issued for another purpose, such as a logout."""
    kind = header.get("typ")
    if (kind.lower() if isinstance(kind, str) else kind) not in _TOKEN_TYPES:
        raise TokenRejected("is not an access token")


def identity_from_claims(claims: JsonObject, expected: ExpectedClaims) -> Identity:
    """Return the identity in the claims; raise TokenRejected unless they are as expected.

    An access token without a subject belongs to its client.
    """
    from joserfc import errors, jwt

    if "aud" in claims and not expected.audiences:
        raise TokenRejected("is for an audience, but no token_audience is set")
    check_claim_types(claims)
    if expected.is_access_token:
        check_client_form(claims)
        if claims.get("cnf") is not None:  # its sender must prove that it has the key
            raise TokenRejected("is bound to a key, which this server cannot check")
        if claims.get("sub") is None:
            claims = {**claims, "sub": client_subject(claims)}
    required_claims: JsonObject = {"exp": {"essential": True}, "sub": {"essential": True}}
    if expected.issuer is not None:
        required_claims["iss"] = {"essential": True, "value": expected.issuer}
    if expected.audiences:
        required_claims["aud"] = {"essential": True, "values": list(expected.audiences)}
    try:
        jwt.JWTClaimsRegistry(leeway=LEEWAY_SECONDS, **required_claims).validate(claims)
    except errors.ExpiredTokenError:
        raise TokenRejected("has expired") from None
    except errors.MissingClaimError:
        missing = sorted([name for name in required_claims if claims.get(name) is None])
        raise TokenRejected(f"has no {', '.join(missing)}") from None
    except errors.JoseError:
        raise TokenRejected(_describe_invalid_claim(claims, expected)) from None
    subject = claims["sub"]
    if not is_valid_subject(subject):
        raise TokenRejected("has an invalid subject")
    return Identity(subject, parse_scopes(claims), claims["exp"])


def is_valid_subject(subject: str) -> bool:
    """True if a subject is printable and not too long."""
    return 0 < len(subject) <= _MAX_SUBJECT_CHARS and subject.isprintable()


def client_subject(claims: JsonObject) -> str | None:
    """Return the subject of a token that a client requested for itself."""
    client = claims.get("client_id", claims.get("azp"))
    return f"{_CLIENT_PREFIX}{client}" if isinstance(client, str) and client else None


def check_client_form(claims: JsonObject) -> None:
    """Reject a subject that looks like the one of a client, unless it is the token's own client.

    Otherwise a user whose name an authorization server does not check could act as a client.
    """
    subject = claims.get("sub")
    is_client = isinstance(subject, str) and subject.startswith(_CLIENT_PREFIX)
    if is_client and subject != client_subject(claims):
        raise TokenRejected("has a subject in the form of a client")


def check_claim_types(claims: JsonObject) -> None:
    """Reject times that are not finite numbers, and subjects that are not text.

    Some versions of joserfc do not check these types.
    """
    for claim in ("exp", "nbf", "iat"):
        value = claims.get(claim)
        if value is not None and not (type(value) in (int, float) and abs(value) < 1 << 53):
            raise TokenRejected(_INVALID_CLAIMS)
    if not isinstance(claims.get("sub"), (str, type(None))):
        raise TokenRejected(_INVALID_CLAIMS)


def _describe_invalid_claim(claims: JsonObject, expected: ExpectedClaims) -> str:
    """Return the message about an invalid claim. It does not contain the value of the claim."""
    if expected.issuer is not None and claims.get("iss") != expected.issuer:
        return "is from another issuer"
    if expected.audiences and not has_audience(claims.get("aud"), expected.audiences):
        return "is for another audience"
    return _INVALID_CLAIMS


def has_audience(audience: object, expected: Iterable[str]) -> bool:
    """True if a claim `aud`, which is a text or a list, has one of the expected audiences."""
    found = audience if is_list(audience) else [audience]
    return any([one in found for one in expected])


def parse_scopes(claims: JsonObject) -> frozenset[str]:
    """Return the scopes in the claims `scope`, `scp` and `scopes`: a text or a list."""
    found: set[str] = set()
    for claim in ("scope", "scp", "scopes"):
        value: Any = claims.get(claim)
        scopes: Any = value.split() if isinstance(value, str) else [] if value is None else value
        if not is_list(scopes) or not all([isinstance(scope, str) for scope in scopes]):
            raise TokenRejected("has scopes in an unknown form")
        found.update(scopes)
    if len(found) > _MAX_SCOPES:
        raise TokenRejected("has too many scopes")
    return frozenset(found)
