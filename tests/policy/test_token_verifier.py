"""Token verification: valid tokens, invalid tokens, and unusable files."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, OKPKey, RSAKey

from tooli import Tooli
from tooli.config.applied_settings import extract_security_rules
from tooli.config.layers import Settings, SettingValue
from tooli.errors import AuthError, DependencyError, InputError, TemporaryError
from tooli.policy.token_verifier import MAX_TOKEN_BYTES, TokenVerifier, make_verifier

RSA = RSAKey.generate_key(2048)
EC = ECKey.generate_key("P-256")
ED = OKPKey.generate_key("Ed25519")
SECRET = "correct-horse-battery-staple-of-some-length"
OCT = OctKey.import_key(SECRET)
PUBLIC = {"rsa": RSA, "ec": EC, "ed": ED}
SIGNERS = [
    *[("rsa", RSA, name) for name in ("RS256", "RS512", "PS256")],
    *[("ec", EC, "ES256"), ("ed", ED, "EdDSA"), ("ed", ED, "Ed25519")],
    *[("secret", OCT, "HS256")],
]


def make_token(key: Any, alg: str, header: dict[str, Any] | None = None, **claims: Any) -> bytes:
    """Return a JWT. Claims that are None are omitted."""
    now = int(time.time())
    payload = {"sub": "ada", "exp": now + 600, "scope": "files:read files:write", **claims}
    payload = {name: value for name, value in payload.items() if value is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # joserfc warns about the old name EdDSA
        head = {"alg": alg, **(header or {})}
        return jwt.encode(head, payload, key, algorithms=[alg]).encode()


def b64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


@pytest.fixture
def write(tmp_path: Path):
    """Return a function that writes a file and returns its path."""

    def put(name: str, content: bytes | str, mode: int = 0o600) -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(mode)
        return str(path)

    return put


@pytest.fixture
def make_verifier_for(write):
    """Return a function that makes a verifier with a key of a kind."""

    def make(kind: str, **settings: str) -> TokenVerifier:
        data = SECRET if kind == "secret" else PUBLIC[kind].as_pem(private=False)
        return TokenVerifier({"token_key": write(f"{kind}.key", data), **settings})

    return make


def rejection_of(verifier: TokenVerifier, token: bytes) -> str:
    """Return the message of a rejected token. Assert that it contains no part of the token."""
    with pytest.raises(AuthError) as caught:
        verifier.identify(token)
    error = caught.value
    assert (error.code, error.exit_code, error.http_status) == ("E2004", 30, 401)
    shown = json.dumps(error.to_dict()) + repr(error) + repr(verifier)
    for part in token.split(b"."):
        assert len(part) < 8 or part.decode("latin-1") not in shown
    return error.message


# ------------------------------------------------------------------ valid tokens


@pytest.mark.parametrize(("kind", "key", "alg"), SIGNERS)
def test_valid_signatures_are_accepted(make_verifier_for, kind: str, key: Any, alg: str) -> None:
    identity = make_verifier_for(kind).identify(make_token(key, alg))
    assert identity.principal == "ada"
    assert identity.scopes == {"files:read", "files:write"}


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({"scope": None}, set()),
        ({"scope": ""}, set()),
        ({"scope": "a  b"}, {"a", "b"}),
        ({"scope": None, "scp": ["a", "b"]}, {"a", "b"}),
        ({"scope": "a", "scp": "b", "scopes": ["c"]}, {"a", "b", "c"}),
    ],
)
def test_scopes_are_read_from_every_form_of_claim(make_verifier_for, claims, scopes) -> None:
    assert make_verifier_for("rsa").identify(make_token(RSA, "RS256", **claims)).scopes == scopes


def test_issuer_and_audience_must_match(make_verifier_for) -> None:
    verifier = make_verifier_for("ec", token_issuer="https://issuer", token_audience="files")
    claims = {"iss": "https://issuer", "aud": ["other", "files"]}
    assert verifier.identify(make_token(EC, "ES256", **claims)).principal == "ada"
    assert "another issuer" in rejection_of(
        verifier, make_token(EC, "ES256", **{**claims, "iss": "evil"})
    )
    assert "another audience" in rejection_of(
        verifier, make_token(EC, "ES256", **{**claims, "aud": "x"})
    )
    assert "has no aud, iss" in rejection_of(verifier, make_token(EC, "ES256"))


def test_token_is_verified_with_a_key_of_the_set(write) -> None:
    old, new = ECKey.generate_key("P-256"), ECKey.generate_key("P-256")
    keys = KeySet([RSA, old, new]).as_dict(private=False)
    unsupported = [{"kty": "new-kind"}, {"kty": "RSA", "use": "enc", "n": "AA", "e": "AQAB"}]
    path = write("keys.json", json.dumps({"keys": [*unsupported, *keys["keys"]]}))
    verifier = TokenVerifier({"token_key": path})
    for key in (old, new):
        for header in ({}, {"kid": key.kid}):
            assert verifier.identify(make_token(key, "ES256", header)).principal == "ada"
    assert verifier.identify(make_token(RSA, "RS256")).principal == "ada"
    rejection_of(verifier, make_token(new, "ES256", {"kid": old.kid}))
    rejection_of(verifier, make_token(ECKey.generate_key("P-256"), "ES256", {"kid": new.kid}))


def test_critical_header_is_rejected(make_verifier_for) -> None:
    """The signature is valid, but the header names an extension that must be understood."""
    parts = make_token(RSA, "RS256").split(b".")
    for header, is_valid in (({}, True), ({"crit": ["x"], "x": 1}, False)):
        head = b64(json.dumps({"alg": "RS256", **header}).encode())
        signed = head + b"." + parts[1]
        signature = RSA.private_key.sign(signed, PKCS1v15(), SHA256())
        token = signed + b"." + b64(signature)
        if is_valid:
            assert make_verifier_for("rsa").identify(token).principal == "ada"
        else:
            assert "known key" in rejection_of(make_verifier_for("rsa"), token)


def test_expiry_and_start_allow_clock_skew(make_verifier_for) -> None:
    now = int(time.time())
    assert (
        make_verifier_for("ec")
        .identify(make_token(EC, "ES256", exp=now - 5, nbf=now + 5))
        .principal
        == "ada"
    )


# ------------------------------------------------------------------ invalid tokens


def make_unsigned_token(alg: str, header: dict[str, Any] | None = None) -> bytes:
    head = json.dumps({"alg": alg, **(header or {})}).encode()
    body = json.dumps({"sub": "eve", "exp": 1 << 40, "scope": "files:write"}).encode()
    return b64(head) + b"." + b64(body) + b"."


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE", "", "HS256", "RS256"])
@pytest.mark.parametrize("kind", ["rsa", "ec", "ed", "secret"])
def test_unsigned_token_is_rejected(make_verifier_for, kind: str, alg: str) -> None:
    rejection_of(make_verifier_for(kind), make_unsigned_token(alg))


@pytest.mark.parametrize("kind", ["rsa", "ec", "ed"])
@pytest.mark.parametrize("alg", ["HS256", "HS384", "HS512"])
@pytest.mark.parametrize("form", ["pem", "stripped", "der", "jwk"])
def test_public_key_is_not_an_hmac_secret(
    make_verifier_for, kind: str, alg: str, form: str
) -> None:
    """An attacker signs with the public key as if it were an HMAC secret."""
    public = PUBLIC[kind]
    pem = public.as_pem(private=False)
    secret = {
        "pem": pem,
        "stripped": pem.strip(),
        "der": public.as_der(private=False),
        "jwk": json.dumps(public.as_dict(private=False)).encode(),
    }[form]
    signed = make_unsigned_token(alg).rstrip(b".")
    digest = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}[alg]
    mac = hmac.new(secret, signed, digest).digest()
    rejection_of(make_verifier_for(kind), signed + b"." + b64(mac))


@pytest.mark.parametrize(
    "kid",
    ["../../../../dev/null", "/dev/null", "/proc/self/environ", "' OR 1=1 --", "x" * 2000, "\0"],
)
def test_key_id_is_not_used_as_a_path(make_verifier_for, write, kid: str) -> None:
    signed = make_unsigned_token("HS256", {"kid": kid}).rstrip(b".")
    for secret in (b"", b"\0", SECRET[:8].encode()):
        token = signed + b"." + b64(hmac.new(secret, signed, hashlib.sha256).digest())
        rejection_of(make_verifier_for("secret"), token)
        rejection_of(
            TokenVerifier({"token_key": write("j", json.dumps(EC.as_dict(private=False)))}), token
        )


@pytest.mark.parametrize("name", ["jwk", "jku", "x5u", "x5c", "crit"])
def test_key_in_the_token_is_ignored(make_verifier_for, name: str) -> None:
    attacker_key = RSAKey.generate_key(2048)
    value = {
        "jwk": attacker_key.as_dict(private=False),
        "jku": "http://127.0.0.1:9/keys",
        "x5u": "http://127.0.0.1:9/cert",
        "x5c": ["MII"],
        "crit": ["exp"],
    }[name]
    head = json.dumps({"alg": "RS256", name: value}).encode()
    parts = make_token(attacker_key, "RS256").split(b".")
    rejection_of(make_verifier_for("rsa"), b".".join([b64(head), *parts[1:]]))


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": None}, "has no exp"),
        ({"sub": None}, "has no sub"),
        ({"exp": 1}, "has expired"),
        ({"exp": "never"}, "invalid claim"),
        ({"exp": True}, "invalid claim"),
        ({"exp": 1e400}, "invalid claim"),
        ({"nbf": 1 << 40}, "not valid yet"),
        ({"iat": 1 << 40}, "not valid yet"),
        ({"sub": 7}, "invalid claim"),
        ({"sub": "a\nb"}, "invalid subject"),
        ({"sub": "x" * 500}, "invalid subject"),
        ({"aud": "another-service"}, "token_audience"),
        ({"scope": 7}, "scopes"),
        ({"scp": [1]}, "scopes"),
        ({"scopes": {"a": 1}}, "scopes"),
        ({"scopes": [str(i) for i in range(600)]}, "too many scopes"),
    ],
)
def test_invalid_claims_are_rejected(make_verifier_for, claims: dict[str, Any], why: str) -> None:
    assert why in rejection_of(make_verifier_for("rsa"), make_token(RSA, "RS256", **claims))


@pytest.mark.parametrize(
    "token",
    [
        *(b"", b".", b"..", b"...", b"a.b.c", b"\xff\xfe.\xff.\xff", b"not-a-token"),
        *(b"e30.e30.", b"W10.W10.W10", b"bnVsbA.bnVsbA.", b"." * 50, b"x" * (MAX_TOKEN_BYTES + 1)),
        b64(b"[" * 9000) + b".e30.e30",
        b64(b'{"alg":' + b"[" * 6000 + b"]" * 6000 + b"}") + b".e30.",
        b64(b'{"alg":["RS256"]}') + b".e30.",
        b64(b'{"alg":{}}') + b".e30.",
        b64(b'{"alg":1,"kid":[]}') + b".e30.",
    ],
)
def test_malformed_tokens_are_rejected(make_verifier_for, token: bytes) -> None:
    for kind in ("rsa", "secret"):
        rejection_of(make_verifier_for(kind), token)


def test_changed_tokens_are_rejected(make_verifier_for) -> None:
    token, verifier = make_token(EC, "ES256"), make_verifier_for("ec")
    for i in range(0, len(token), 7):
        other = b"B" if token[i : i + 1] != b"B" else b"C"
        rejection_of(verifier, token[:i] + other + token[i + 1 :])


# ------------------------------------------------------------------ known tokens


def make_token_line(token: str, rest: str) -> str:
    return f"{hashlib.sha256(token.encode()).hexdigest()} {rest}\n"


def test_only_tokens_of_the_token_file_are_accepted(write) -> None:
    text = "# comment\n\n" + make_token_line("one", "ci files:read  # the robot")
    path = write("tokens", text + make_token_line("two", "ada").upper().replace("ADA", "ada"))
    verifier = TokenVerifier({"tokens": path})
    first, second = verifier.identify(b"one"), verifier.identify(b"two")
    assert (first.principal, first.scopes) == ("ci", {"files:read"})
    assert (second.principal, second.scopes) == ("ada", set())
    assert "unknown" in rejection_of(verifier, b"three")
    rejection_of(verifier, hashlib.sha256(b"one").hexdigest().encode())  # the digest is not a token


def test_token_file_and_key_can_be_combined(make_verifier_for, write) -> None:
    verifier = make_verifier_for("ec", tokens=write("tokens", make_token_line("one", "ci a")))
    assert verifier.identify(b"one").principal == "ci"
    assert verifier.identify(make_token(EC, "ES256")).principal == "ada"


def test_changed_file_is_read_again(write) -> None:
    path = write("tokens", make_token_line("one", "ci") + make_token_line("two", "ada"))
    verifier = TokenVerifier({"tokens": path})
    assert verifier.identify(b"one").principal == "ci"
    write("tokens", make_token_line("two", "ada"))
    rejection_of(verifier, b"one")
    write("tokens", "broken")
    for token in (b"one", b"two"):
        with pytest.raises(InputError, match="cannot be used"):
            verifier.identify(token)
    write("tokens", make_token_line("one", "ci"))
    assert verifier.identify(b"one").principal == "ci"


# ------------------------------------------------------------------ files that cannot be used


def check_error(settings: dict[str, str]) -> str:
    with pytest.raises(InputError) as caught:
        TokenVerifier(settings).check()
    error = caught.value
    assert (error.code, error.is_retryable) == ("E1011", False)
    return error.message


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "shorter than 32"),
        (b"short", "shorter than 32"),
        (b"two words that are a secret, but not of one word", "nor a secret"),
        (b"\x30\x82" + os.urandom(200), "nor a secret"),
        (b"{", "not valid JSON"),
        (b"{}", "not for signatures"),
        (b'{"keys": 1}', "not a list"),
        (b'{"keys": []}', "contains no key"),
        (b'{"keys": [1]}', "not a JSON object"),
        (b'{"kty": "RSA", "n": "AA", "e": "AQAB"}', "malformed"),
        (b'{"kty": "oct", "k": "AAAA"}', "shorter than 32"),
        (b'{"kty": "EC", "crv": "P-256"}', "malformed"),
        (b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "not a public key"),
    ],
)
def test_invalid_keys_are_rejected(write, content: bytes, why: str) -> None:
    assert why in check_error({"token_key": write("key", content)})


def test_secret_in_base64_is_not_a_public_key(write) -> None:
    secret = base64.b64encode(b"x" * 40).decode()
    verifier = TokenVerifier({"token_key": write("secret.key", secret)})
    assert verifier.identify(make_token(OctKey.import_key(secret), "HS256")).principal == "ada"


def test_insecure_keys_are_rejected(write) -> None:
    private = "private key"
    assert private in check_error({"token_key": write("k", RSA.as_pem(private=True))})
    assert private in check_error({"token_key": write("k", json.dumps(EC.as_dict(private=True)))})
    bare = b"".join(RSA.as_pem(private=False).split(b"\n")[1:-2])
    assert "without its PEM" in check_error({"token_key": write("k", bare)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weak = RSAKey.generate_key(1024)
    assert "2048" in check_error({"token_key": write("k", weak.as_pem(private=False))})
    curve = ECKey.generate_key("secp256k1")
    assert "curve" in check_error({"token_key": write("k", curve.as_pem(private=False))})
    other = OKPKey.generate_key("X25519")
    assert "curve" in check_error({"token_key": write("k", other.as_pem(private=False))})
    enc = {**RSA.as_dict(private=False), "use": "enc"}
    assert "signatures" in check_error({"token_key": write("k", json.dumps(enc))})
    wrong = {**RSA.as_dict(private=False), "alg": "HS256"}
    assert "cannot be used with" in check_error({"token_key": write("k", json.dumps(wrong))})


def test_unsupported_keys_of_a_set_are_skipped(write) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weak = RSAKey.generate_key(1024)
    unsupported = [weak, ECKey.generate_key("secp256k1"), OKPKey.generate_key("X25519")]
    jwks = [key.as_dict(private=False) for key in unsupported]
    jwks += [{"kty": "oct", "k": "AAAA"}, {**EC.as_dict(private=False), "alg": "HS256"}]
    assert "contains no key" in check_error({"token_key": write("k", json.dumps({"keys": jwks}))})
    path = write("k", json.dumps({"keys": [*jwks, RSA.as_dict(private=False)]}))
    verifier = TokenVerifier({"token_key": path})
    assert verifier.identify(make_token(RSA, "RS256")).principal == "ada"
    rejection_of(verifier, make_token(EC, "ES256"))


@pytest.mark.parametrize(
    ("jwk", "why"),
    [
        (EC.as_dict(private=True), "private key"),
        ({"kty": "EC", "crv": "P-256"}, "malformed"),
        ("text", "not a JSON object"),
    ],
)
def test_invalid_key_of_a_set_rejects_the_file(write, jwk: Any, why: str) -> None:
    keys = {"keys": [RSA.as_dict(private=False), jwk]}
    assert why in check_error({"token_key": write("k", json.dumps(keys))})


def test_key_with_an_algorithm_rejects_other_algorithms(write) -> None:
    jwk = {**RSA.as_dict(private=False), "alg": "RS256"}
    verifier = TokenVerifier({"token_key": write("k", json.dumps(jwk))})
    assert verifier.identify(make_token(RSA, "RS256")).principal == "ada"
    rejection_of(verifier, make_token(RSA, "PS256"))


@pytest.mark.parametrize(
    "content",
    [
        "word",
        "0" * 64,
        f"{'g' * 64} ada",
        f"{'0' * 63} ada",
        f"{'0' * 64} a\n{'0' * 64} b",
        b"\xff",
    ],
)
def test_invalid_token_files_are_rejected(write, content: Any) -> None:
    assert "cannot be used" in check_error({"tokens": write("tokens", content)})


@pytest.mark.parametrize("setting", ["tokens", "token_key"])
def test_insecure_or_unreadable_file_is_rejected(write, tmp_path: Path, setting: str) -> None:
    content = make_token_line("one", "ci") if setting == "tokens" else SECRET
    assert "every user may write" in check_error({setting: write("f", content, 0o666)})
    assert "No such file" in check_error({setting: str(tmp_path / "absent")})
    assert "not a regular file" in check_error({setting: str(tmp_path)})
    assert "not absolute" in check_error({setting: "relative"})
    assert "not absolute" in check_error({setting: ""})
    assert "too large" in check_error({setting: write("f", "#" * (2 << 20))})
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in check_error({setting: str(tmp_path / "pipe")})


def test_error_without_joserfc_names_the_extra_to_install(
    write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "joserfc.jwk", None)
    assert "pip install 'tooli[auth]>=7.0a1'" in check_error({"token_key": write("k", SECRET)})


def test_no_verifier_without_token_settings() -> None:
    assert make_verifier({"token_issuer": "x", "rate_limit": "1/second"}) is None


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize("name", ["TOOLI_TOKEN_KEY", "TOOLI_TOKENS", "TOOLI_RATE_LIMIT"])
@pytest.mark.parametrize("value", ["/x\x07", "relative", "/absent"])
def test_invalid_setting_prevents_the_start_of_a_server(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError) as caught:
        Tooli("served").asgi(mcp=False)
    assert caught.value.code == "E1011"


def test_invalid_rate_limit_prevents_the_start_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_RATE_LIMIT", "sixty")
    with pytest.raises(InputError, match=r"rate_limit is 'sixty'.*60/minute") as caught:
        Tooli("served").asgi(mcp=False)
    assert caught.value.suggestion is not None
    assert "TOOLI_RATE_LIMIT" in caught.value.suggestion.fix


def test_token_settings_of_higher_layers_are_ignored() -> None:
    settings = Settings()
    for name, layer in (("tokens", "environment"), ("token_key", "project")):
        settings.add(name, SettingValue(f"/{layer}", layer, layer))
    assert extract_security_rules(settings) == {"token_key": "/project"}
    settings.add("tokens", SettingValue("/system", "system", "system"))
    assert extract_security_rules(settings) == {"tokens": "/system"}
    settings.add("token_key", SettingValue("/system", "system", "system"))
    assert extract_security_rules(settings) == {"tokens": "/system", "token_key": "/system"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"token_key": "/k", "token_jwks_url": "http://127.0.0.1:9/keys"},
            "token_key and token_jwks_url are both set",
        ),
        (
            {"token_issuer": "http://127.0.0.1:9", "token_jwks_url": "http://127.0.0.1:9/keys"},
            "need an audience",
        ),
        (
            {"token_jwks_url": "http://127.0.0.1:9/keys", "token_audience": "shop"},
            "token_jwks_url needs token_issuer",
        ),
    ],
)
def test_contradictory_issuer_settings_are_rejected(settings: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make_verifier(settings)
    assert caught.value.suggestion is not None
    assert caught.value.suggestion.fix


def test_keys_of_an_issuer_need_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joserfc.jwk", None)
    settings = {
        "token_issuer": "http://127.0.0.1:9",
        "token_jwks_url": "http://127.0.0.1:9/keys",
        "resource_url": "http://127.0.0.1:8/mcp",
    }
    with pytest.raises(DependencyError, match=r"tooli\[auth\]"):
        make_verifier(settings)


def test_a_token_of_an_issuer_that_is_down_is_a_temporary_error() -> None:
    settings = {
        "token_issuer": "http://127.0.0.1:9",
        "token_jwks_url": "http://127.0.0.1:9/keys",
        "resource_url": "http://127.0.0.1:8/mcp",
    }
    verifier = make_verifier(settings)
    assert verifier is not None
    token = make_token(RSA, "RS256", aud="http://127.0.0.1:8/mcp")
    assert verifier.identify_now(token) is None  # the keys must be fetched
    with pytest.raises(TemporaryError):
        verifier.identify(token)
    assert rejection_of(verifier, b"opaque token") == "The token is malformed."
    assert rejection_of(verifier, b"opaque") == "The token is unknown."


def test_a_secret_of_the_introspection_that_cannot_be_read_is_rejected(tmp_path: Path) -> None:
    settings = {
        "introspection_url": "http://127.0.0.1:9/introspect",
        "introspection_client": "shop",
        "introspection_secret": f"@{tmp_path / 'absent'}",
        "resource_url": "http://127.0.0.1:8/mcp",
    }
    with pytest.raises(InputError, match="introspection_secret"):
        TokenVerifier(settings).check()
