"""JWTs, verified with a key from a file. joserfc does the cryptography; it comes with tooli[auth].

Which algorithms may be used is the key's to say, never the token's: a public key verifies
signatures and no HMAC, and nothing verifies `none`.
"""

from __future__ import annotations

from tooli.config.identity import Identity, Invalid, Unusable
from tooli.contract.jsonable import is_list, is_object
from tooli.contract.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

LEEWAY = 30
"""Seconds that clocks may differ by."""
_MOST_KEYS, _MOST_SCOPES, _LONGEST_NAME = 64, 500, 200
_SHORTEST_SECRET = 32  # bytes: as long as the shortest digest
_CURVES = {
    "P-256": ("ES256",),
    "P-384": ("ES384",),
    "P-521": ("ES512",),
    "Ed25519": ("EdDSA", "Ed25519"),
    "Ed448": ("EdDSA", "Ed448"),
}
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_HMAC = (("HS256", 32), ("HS384", 48), ("HS512", 64))


class Key(Record):
    """One key, and the algorithms that it may be used with."""

    key: Any
    algorithms: tuple[str, ...]
    registry: Any  # the library's word for them
    name: str | None = None  # its `kid`


class Keys(Record):
    """All keys of a file."""

    keys: tuple[Key, ...]


# ------------------------------------------------------------------ keys


def read_keys(data: bytes) -> Keys:
    """The keys in a file: a public key as PEM, a JWK, a JWKS, or a secret; raises Unusable."""
    import warnings

    _need_joserfc()
    text = data.strip()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of weak keys, which are refused here
        if text[:1] == b"{":
            return Keys(_from_json(text))
        if b"-----BEGIN" in text:
            return Keys((_from_pem(text),))
        return Keys((_from_secret(text),))


def _need_joserfc() -> None:
    try:
        __import__("joserfc.jwk")
    except ImportError:
        raise Unusable("JWTs need joserfc: run pip install 'tooli[auth]'") from None


def _from_json(text: bytes) -> tuple[Key, ...]:
    from json import loads

    try:
        said: Any = loads(text)
    except (ValueError, RecursionError):
        raise Unusable("it is not the JSON that it looks like") from None
    listed: Any = said.get("keys", [said])
    if not is_list(listed) or len(listed) > _MOST_KEYS:
        raise Unusable(f"its keys are no list of at most {_MOST_KEYS}")
    many = "keys" in said
    found = [key for one in listed if (key := _from_jwk(one, skip=many)) is not None]
    if not found:
        raise Unusable("it holds no key that verifies a signature")
    return tuple(found)


def _from_jwk(said: Any, *, skip: bool) -> Key | None:
    """A key from its JSON; None for one of a set that is there for something else."""
    from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

    if not is_object(said):
        raise Unusable("a key in it is no JSON object")
    kinds: dict[Any, Any] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey, "oct": OctKey}
    kind = kinds.get(said.get("kty"))
    if kind is None or said.get("use", "sig") != "sig":
        if skip:
            return None
        raise Unusable("its key is not one for signatures")
    if "d" in said:
        raise Unusable("it holds a private key; only the public one belongs here")
    try:
        key = kind.import_key(dict(said))
        known = _algorithms(key)
    except Unusable:
        if skip:
            return None
        raise
    except Exception:  # whatever the library finds wrong with it
        raise Unusable("a key in it is malformed") from None
    only = said.get("alg")
    algorithms = known if only is None else tuple([one for one in known if one == only])
    if not algorithms:
        if skip:
            return None
        raise Unusable("its key is meant for an algorithm that it cannot be used with")
    name = said.get("kid")
    return _key(key, algorithms, name if isinstance(name, str) else None)


def _from_pem(text: bytes) -> Key:
    from joserfc.jwk import ECKey, OKPKey, RSAKey

    if b"PRIVATE KEY" in text:
        raise Unusable("it holds a private key; only the public one belongs here")
    for kind in (RSAKey, ECKey, OKPKey):
        read: Any = kind
        try:
            key = read.import_key(text)
        except Exception:  # of another kind, or malformed
            continue
        return _key(key, _algorithms(key))
    raise Unusable("it is no public key in PEM")


def _from_secret(text: bytes) -> Key:
    """A secret for HMAC: one line of text, so that no key of another form is taken for one."""
    from joserfc.jwk import OctKey

    if not text.isascii() or not text.decode("ascii").isprintable() or b" " in text:
        raise Unusable("it holds no PEM, no JSON, and no secret of one word")
    if len(text) < _SHORTEST_SECRET:
        raise Unusable(f"its secret is shorter than {_SHORTEST_SECRET} bytes")
    if _is_public(text):
        raise Unusable("it holds a public key without its PEM lines")
    secret: Any = OctKey
    key = secret.import_key(text)
    return _key(key, _algorithms(key))


def _is_public(text: bytes) -> bool:
    """Whether a word is a key that everybody may know: as an HMAC secret it would guard nothing."""
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
        except Exception:  # it is none
            continue
        return True
    return False


def _algorithms(key: Any) -> tuple[str, ...]:
    """What a key may be used with, by its kind alone."""
    if key.key_type == "oct":
        size = len(key.raw_value)
        if size < _SHORTEST_SECRET:
            raise Unusable(f"its secret is shorter than {_SHORTEST_SECRET} bytes")
        return tuple([name for name, least in _HMAC if size >= least])
    if key.key_type == "RSA":
        if key.public_key.key_size < 2048:
            raise Unusable("its RSA key is shorter than 2048 bits")
        return _RSA
    curve = key.curve_name
    if curve not in _CURVES:
        raise Unusable("its key is on a curve that is not used here")
    return _CURVES[curve]


def _key(key: Any, algorithms: tuple[str, ...], name: str | None = None) -> Key:
    """A key that the library may use with these algorithms, and with none that it would add."""
    from joserfc.errors import UnsupportedAlgorithmError
    from joserfc.jws import JWSRegistry

    class Allowed(JWSRegistry):
        max_header_length = 4096

        def get_alg(self, name: str) -> Any:
            if name not in algorithms:
                raise UnsupportedAlgorithmError("not with this key")
            return self.algorithms[name]

    return Key(key, algorithms, Allowed(strict_check_header=False), name)


# ------------------------------------------------------------------ tokens

_UNFIT = "does not hold yet, or holds what it must not"


def verify(token: bytes, keys: Keys, issuer: str | None, audience: str | None) -> Identity:
    """Who a JWT was made for; raises Invalid."""
    from joserfc import jwt

    try:
        header = _header(token)
        for key in _candidates(keys, header):
            try:
                claims = jwt.decode(token, key.key, registry=key.registry).claims
            except Exception:  # another key's, or nobody's
                continue
            return _accept(claims, issuer, audience)
    except Invalid:
        raise
    except Exception:  # whatever a stranger has sent
        raise Invalid("is malformed") from None
    raise Invalid("was not signed with a key that is known here")


def _header(token: bytes) -> dict[str, Any]:
    from base64 import urlsafe_b64decode
    from json import loads

    first = token.partition(b".")[0]
    header = loads(urlsafe_b64decode(first + b"=" * (-len(first) % 4)))
    if not is_object(header):
        raise Invalid("is malformed")
    return header


def _candidates(keys: Keys, header: dict[str, Any]) -> Iterator[Key]:
    """The keys that may have signed it: by name where both have one, of the right kind."""
    name = header.get("kid")
    for key in keys.keys:
        named = key.name is None or name is None or key.name == name
        if named and header.get("alg") in key.algorithms:
            yield key


def _accept(claims: dict[str, Any], issuer: str | None, audience: str | None) -> Identity:
    """Who the claims are about, where they hold now, here, and from whom they must be."""
    from joserfc import errors
    from joserfc.jwt import JWTClaimsRegistry

    if "aud" in claims and audience is None:
        raise Invalid("is for an audience, and no token_audience is set here")
    wanted: dict[str, Any] = {"exp": {"essential": True}, "sub": {"essential": True}}
    for name, value in (("iss", issuer), ("aud", audience)):
        if value is not None:
            wanted[name] = {"essential": True, "value": value}
    _check_kinds(claims)
    try:
        JWTClaimsRegistry(leeway=LEEWAY, **wanted).validate(claims)
    except errors.ExpiredTokenError:
        raise Invalid("has expired") from None
    except errors.MissingClaimError:
        missing = sorted([name for name in wanted if claims.get(name) is None])
        raise Invalid(f"does not say its {', '.join(missing)}") from None
    except errors.JoseError:
        raise Invalid(_unfit(claims, issuer, audience)) from None
    subject = claims["sub"]
    if len(subject) > _LONGEST_NAME or not subject.isprintable():
        raise Invalid("names a subject that no name is")
    return Identity(subject, _scopes(claims))


def _check_kinds(claims: dict[str, Any]) -> None:
    """Refuse times that are none, true or without end among them, and subjects that are no text.

    Not every joserfc that there is for a Python looks at that.
    """
    for name in ("exp", "nbf", "iat"):
        value = claims.get(name)
        if value is not None and not (type(value) in (int, float) and abs(value) < 1 << 53):
            raise Invalid(_UNFIT)
    if not isinstance(claims.get("sub"), (str, type(None))):
        raise Invalid(_UNFIT)


def _unfit(claims: dict[str, Any], issuer: str | None, audience: str | None) -> str:
    """What a claim is not as it must be, without its value: that is a stranger's word."""
    heard = claims.get("aud")
    if issuer is not None and claims.get("iss") != issuer:
        return "is from another issuer"
    if audience is not None and heard != audience and not (is_list(heard) and audience in heard):
        return "is for another audience"
    return _UNFIT


def _scopes(claims: dict[str, Any]) -> frozenset[str]:
    """What a token allows, as the several makers of tokens write it."""
    found: set[str] = set()
    for name in ("scope", "scp", "scopes"):
        said: Any = claims.get(name)
        words: Any = said.split() if isinstance(said, str) else [] if said is None else said
        if not is_list(words) or not all([isinstance(word, str) for word in words]):
            raise Invalid("says its scopes in a way that nobody can read")
        found.update(words)
    if len(found) > _MOST_SCOPES:
        raise Invalid("has more scopes than anybody needs")
    return frozenset(found)
