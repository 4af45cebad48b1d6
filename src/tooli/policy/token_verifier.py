"""Verify the token of a caller, for every interface.

    token ─▶ TokenVerifier ─┬▶ tokens:     a file of digests, each with a subject and scopes
                            └▶ token_key:  a JWT, verified with the keys of a file

A changed file is read again, so that a token can be revoked while a server runs. If a file cannot
be read, every token is rejected. No error, log or repr contains a token.

joserfc (`tooli[auth]`) does the cryptography of JWTs. The key decides which algorithms are allowed,
never the token: a public key does not verify an HMAC, and no key verifies `none`.
"""

from __future__ import annotations

import os
import warnings
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from hmac import compare_digest
from json import loads
from typing import Generic, TypeVar

from tooli.core import Record
from tooli.core.held_keys import hold_key
from tooli.errors import AuthError, InputError, Suggestion
from tooli.storage.state_files import UnusableFile, read_regular_file
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tooli.core import SecuritySettings
    from tooli.core.protocols import JsonObject

T = TypeVar("T")

TOKEN_SETTINGS = ("token_key", "tokens")
"""The settings for the verification of tokens. Without them no token is accepted."""
MAX_TOKEN_BYTES = 16 << 10
"""Maximum length of a token in bytes."""
_MAX_FILE_BYTES = 1 << 20
_WORLD_WRITABLE, _GROUP_OR_WORLD_ACCESS = 0o002, 0o077
_HEX_DIGITS = frozenset("0123456789abcdef")
LEEWAY_SECONDS = 30
"""Seconds by which clocks may differ."""
_MAX_KEYS, _MAX_SCOPES, _MAX_SUBJECT_CHARS = 64, 500, 200
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


class Identity(Record):
    """The subject of a token, and its scopes."""

    principal: str
    scopes: frozenset[str]


class TokenRejected(Exception):  # noqa: N818
    """A token is not valid.

    The message completes the sentence "The token …". It contains no part of the token.
    """


class UnsupportedKey(UnusableFile):
    """A key that cannot verify signatures. It is skipped if it is part of a set of keys."""


class VerificationKey(Record):
    """A key, and the algorithms that it may be used with."""

    key: Any
    algorithms: tuple[str, ...]
    registry: Any  # joserfc's registry of the algorithms
    key_id: str | None = None  # its `kid`


def make_verifier(settings: SecuritySettings) -> TokenVerifier | None:
    """Return the verifier for the settings of an app; None if no token setting is set."""
    return TokenVerifier(settings) if any([name in settings for name in TOKEN_SETTINGS]) else None


class TokenVerifier:
    """Verifies tokens by the settings `tokens` and `token_key`."""

    def __init__(self, settings: SecuritySettings) -> None:
        self._tokens_file: _TrustedFile[list[tuple[bytes, Identity]]] | None = None
        self._keys_file: _TrustedFile[tuple[VerificationKey, ...]] | None = None
        self._issuer: str | None = settings.get("token_issuer")
        self._audience: str | None = settings.get("token_audience")
        if "tokens" in settings:
            self._tokens_file = _TrustedFile("tokens", settings["tokens"], parse_tokens)
        if "token_key" in settings:
            self._keys_file = _TrustedFile("token_key", settings["token_key"], parse_keys)

    def check(self) -> None:
        """Read the files; raise an InputError if one cannot be used."""
        for file in (self._tokens_file, self._keys_file):
            if file is not None:
                file.get()

    def identify(self, token: bytes) -> Identity:
        """Return the identity of a token; raise an AuthError if it is not valid."""
        try:
            return self._identify(token)
        except TokenRejected as invalid:
            raise AuthError(
                f"The token {invalid}.",
                code="E2004",
                suggestion=Suggestion("ask_human", "Ask for a valid token, and send it."),
            ) from None

    def _identify(self, token: bytes) -> Identity:
        if not token or len(token) > MAX_TOKEN_BYTES:
            raise TokenRejected(f"is longer than {MAX_TOKEN_BYTES} bytes" if token else "is empty")
        found = self._look_up(token) if self._tokens_file is not None else None
        if found is not None:
            return found
        if self._keys_file is None or token.count(b".") != 2:
            raise TokenRejected("is unknown")
        return verify_jwt(token, self._keys_file.get(), self._issuer, self._audience)

    def _look_up(self, token: bytes) -> Identity | None:
        assert self._tokens_file is not None
        digest, found = sha256(token).hexdigest().encode(), None
        for known, identity in self._tokens_file.get():
            if compare_digest(known, digest):  # no early exit: the time must not reveal a match
                found = identity
        return found


# ------------------------------------------------------------------ trusted files


class _TrustedFile(Generic[T]):
    """The parsed content of a file, which is read again when it changes."""

    def __init__(self, setting: str, path: str, parse: Callable[[bytes], T]) -> None:
        self._setting = setting
        self._path = os.path.expanduser(path)
        self._parse = parse
        self._loaded: tuple[tuple[int, ...], T] | None = None  # file state and parsed content

    def get(self) -> T:
        """Return the parsed content; raise an InputError if it cannot be used."""
        try:
            if not os.path.isabs(self._path):  # it would depend on the working directory
                raise UnusableFile("its path is not absolute")
            state = _file_state(os.stat(self._path))
            if self._loaded is None or state != self._loaded[0]:
                self._loaded = None
                data, mode = read_regular_file(self._path, _MAX_FILE_BYTES)
                if os.name == "posix" and mode & _WORLD_WRITABLE:
                    raise UnusableFile("every user may write to it")
                self._loaded = state, self._parse(data)
        except (UnusableFile, OSError) as failure:
            raise self._make_error(getattr(failure, "strerror", None) or str(failure)) from None
        return self._loaded[1]

    def _make_error(self, reason: str) -> InputError:
        return InputError(
            f"{self._setting}: {self._path} cannot be used: {reason}.",
            code="E1011",
            field=self._setting,
            is_retryable=False,
            suggestion=Suggestion("fix", f"Correct the file, or the setting {self._setting}."),
        )


def _file_state(found: os.stat_result) -> tuple[int, ...]:
    """Return the metadata that shows whether a file has changed."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode


def parse_tokens(data: bytes) -> list[tuple[bytes, Identity]]:
    """Parse a file of tokens: each line is `SHA256-OF-THE-TOKEN SUBJECT scope …` or a comment."""
    found: dict[bytes, Identity] = {}
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise UnusableFile("it is not text") from None
    for number, line in enumerate(lines, 1):
        fields = line.split()
        comment_start = next((i for i, field in enumerate(fields) if field[0] == "#"), len(fields))
        fields = fields[:comment_start]
        if not fields:
            continue
        digest = fields[0].lower()
        if len(digest) != 64 or not _HEX_DIGITS.issuperset(digest):
            raise UnusableFile(f"line {number} does not start with a SHA-256 in 64 hex digits")
        if len(fields) == 1:
            raise UnusableFile(f"line {number} has no subject")
        if digest.encode() in found:
            raise UnusableFile(f"line {number} repeats a token")
        found[digest.encode()] = Identity(fields[1], frozenset(fields[2:]))
    return list(found.items())


# ------------------------------------------------------------------ the caller's token file


def read_token_file(path: str) -> tuple[bytes, str | None]:
    """Return the token in a file, and a warning about the file's permissions or None.

    Raises AuthError if the file cannot be read.
    """
    try:
        data, mode = read_regular_file(path, MAX_TOKEN_BYTES)
    except (UnusableFile, OSError) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        raise AuthError(
            f"The token in TOOLI_TOKEN_FILE cannot be read: {reason}.",
            code="E2004",
            suggestion=Suggestion("fix", "Use a file that contains only a token."),
        ) from None
    is_shared = os.name == "posix" and mode & _GROUP_OR_WORLD_ACCESS
    warning = (
        "other users can read the file of TOOLI_TOKEN_FILE: run chmod 600 on it"
        if is_shared
        else None
    )
    token = data.strip()
    hold_key(token)
    return token, warning


# ------------------------------------------------------------------ keys of JWTs


def parse_keys(data: bytes) -> tuple[VerificationKey, ...]:
    """Return the keys in the content of a file: PEM, JWK, JWKS or a secret.

    Raises UnusableFile if the content is not valid.
    """
    _key_classes()  # raises UnusableFile if joserfc is not installed
    text = data.strip()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # joserfc warns about weak keys, which are rejected below
        if text[:1] == b"{":
            return _from_json(text)
        if b"-----BEGIN" in text:
            return (_from_pem(text),)
        return (_from_secret(text),)


def _key_classes() -> dict[str, Any]:
    """Return the key classes of joserfc by `kty`, as `Any`: their type hints are incomplete."""
    try:
        from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
    except ImportError:
        raise UnusableFile("JWTs need joserfc: run pip install 'tooli[auth]>=7.0a1'") from None
    return {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey, "oct": OctKey}


def _from_json(text: bytes) -> tuple[VerificationKey, ...]:
    try:
        document: Any = loads(text)
    except (ValueError, RecursionError):
        raise UnusableFile("it is not valid JSON") from None
    jwks: Any = document.get("keys", [document])
    if not is_list(jwks) or len(jwks) > _MAX_KEYS:
        raise UnusableFile(f"its keys are not a list of at most {_MAX_KEYS}")
    found: list[VerificationKey] = []
    for jwk in jwks:
        try:
            found.append(_from_jwk(jwk))
        except UnsupportedKey:
            if "keys" not in document:  # one key, not a set
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


# ------------------------------------------------------------------ JWTs

_INVALID_CLAIMS = "is not valid yet, or has an invalid claim"


def verify_jwt(
    token: bytes, keys: tuple[VerificationKey, ...], issuer: str | None, audience: str | None
) -> Identity:
    """Return the identity in a JWT; raise TokenRejected if it is not valid."""
    from joserfc import jwt

    try:
        header = _parse_header(token)
        for key in _matching_keys(keys, header):
            try:
                claims = jwt.decode(token, key.key, registry=key.registry).claims
            except Exception:  # not signed, or signed with another key
                continue
            return _identity_from_claims(claims, issuer, audience)
    except TokenRejected:
        raise
    except Exception:  # any malformed token
        raise TokenRejected("is malformed") from None
    raise TokenRejected("was not signed with a known key")


def _parse_header(token: bytes) -> JsonObject:
    first = token.partition(b".")[0]
    header = loads(urlsafe_b64decode(first + b"=" * (-len(first) % 4)))
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


def _identity_from_claims(claims: JsonObject, issuer: str | None, audience: str | None) -> Identity:
    """Return the identity in the claims, if time, audience and issuer are valid."""
    from joserfc import errors, jwt

    if "aud" in claims and audience is None:
        raise TokenRejected("is for an audience, but no token_audience is set")
    required_claims: JsonObject = {"exp": {"essential": True}, "sub": {"essential": True}}
    for claim, value in (("iss", issuer), ("aud", audience)):
        if value is not None:
            required_claims[claim] = {"essential": True, "value": value}
    _check_claim_types(claims)
    try:
        jwt.JWTClaimsRegistry(leeway=LEEWAY_SECONDS, **required_claims).validate(claims)
    except errors.ExpiredTokenError:
        raise TokenRejected("has expired") from None
    except errors.MissingClaimError:
        missing = sorted([name for name in required_claims if claims.get(name) is None])
        raise TokenRejected(f"has no {', '.join(missing)}") from None
    except errors.JoseError:
        raise TokenRejected(_describe_invalid_claim(claims, issuer, audience)) from None
    subject = claims["sub"]
    if len(subject) > _MAX_SUBJECT_CHARS or not subject.isprintable():
        raise TokenRejected("has an invalid subject")
    return Identity(subject, _parse_scopes(claims))


def _check_claim_types(claims: JsonObject) -> None:
    """Reject times that are not finite numbers, and subjects that are not text.

    Some versions of joserfc do not check these types.
    """
    for claim in ("exp", "nbf", "iat"):
        value = claims.get(claim)
        if value is not None and not (type(value) in (int, float) and abs(value) < 1 << 53):
            raise TokenRejected(_INVALID_CLAIMS)
    if not isinstance(claims.get("sub"), (str, type(None))):
        raise TokenRejected(_INVALID_CLAIMS)


def _describe_invalid_claim(claims: JsonObject, issuer: str | None, audience: str | None) -> str:
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


def _parse_scopes(claims: JsonObject) -> frozenset[str]:
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
