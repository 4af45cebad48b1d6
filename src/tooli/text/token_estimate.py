"""Estimate how many tokens a text has for a model, without its tokenizer.

    "refund 1250" ─▶ refund │ 1250 ─▶ pieces ─▶ cost of each ─▶ sum

The estimate is meant to be too high rather than too low. It was fitted to o200k, which splits a
text in the same pieces: words, groups of three digits, punctuation, space. `tests/text` compares it
with the tokenizer: for random texts of many kinds, the real number is not above the estimate. For
English prose, it is at least 60 % of the estimate.

A common word is one token. Any other word has a token for each three letters, or for each pair of
letters that is rare in English, whichever is more. Text that is no language, such as base64, has
many of these.
"""

from __future__ import annotations

import re

_WORD_LIST = """
able about above accept access according account action actions active actual added addition
address after again against agreement allow allowed along already also although always among
amount another answer anyone anything apply area argument arguments around article asked available
away back base based because become been before began behind being believe below best better
between beyond body book both bring build building business call called calls came cannot care
case cases cause certain change changed changes check child children choose city class clear close
code come command commands comment common community company complete condition conditions contain
contains content context control copy copyright could country course cover create created current
data date days default define defined delete describe described description design detail details
developed development device different direct directly directory display distribute does done down
each early easy effect either else empty enable ending english enough entire entry error errors
even event events ever every everyone everything example examples except exist existing expect
expected express extension fact false family features field fields file files final find first
follow following food form format found four free friend from full function functions further
future general give given goes going good government great group groups half hand happen hard have
having head health hear heart held help here high hold home hour hours however human idea identify
image implementation important include included includes including increase index individual
information input inside instance instead intended interest interface internal into invalid issue
itself just keep kept kind knew know known language large last later latest least leave left less
letter level library license life light like limit limited line lines link list little live local
long longer look lost made main make makes making manage many mark matter maximum mean means
member members message messages method methods might mind minimum minute model modify moment money
month months more morning most mother move much multiple must name names national nature near
necessary need needed needs never next night none normal note nothing notice null number numbers
object objects often once only open operation option options order original other others otherwise
output outside over owner package page pages paper parameter parent part particular parts party
pass passed path pattern people perhaps period permission permissions permit person place plan
play please point points political position possible power present press previous print private
problem problems process product program programs project property provide provided provides
public purpose question quickly quite range rather reach read reading ready real really reason
received recent record records reference related release remain remember remove request require
required requirement requires research response result results return returned returns right
rights room rule rules run running same school search second section security seem seen self send
sense sent separate series serve server service services session several shall short should show
shown shows side similar simple simply since single site size small social software some someone
something sometimes soon source space special specific specified specify standard start started
state states step steps still stop story street string strong structure student study such support
sure system systems table take taken takes target tell terms test text than that their them then
there therefore these they thing things think third this those though thought three through time
times title today together told took total toward trade true turn type types under understand unit
unless until upon user users uses using usually value values variable various version very view
voice wait walk want warranties warranty water week well went were what when where whether which
while white whole whose wide will window with within without woman women word words work working
works world would write written wrong year years young your
"""
"""Frequent words of at least four letters. After a space, each of them is one token."""

_WORDS = frozenset(_WORD_LIST.split())

_PAIR_LIST = """
a:bcdfgiklmnprstuvwxy b:aceijlorsuy c:acehiklmorstuy d:adeilorsu e:abcdefgilmnopqrstvwxy
f:aefilorstuy g:aeghilmnorsu h:aeilortu i:abcdefgklmnoprstvxz j:e k:aeis l:adefilopstuy
m:abdeilmopsu n:acdefgiklnopstuvy o:abcdfgiklmnoprstuvw p:adehiloprstuy q:u r:acdefgiklmnoprstuvy
s:acefhiklmnopstuwy t:acdefhilmoprstuwy u:abcdefgilmnoprst v:aeio w:aehinors x:aceipt y:eilmnopst
z:ei
"""
"""The letters that frequently follow each letter in English words."""

_PAIRS = frozenset([row[0] + letter for row in _PAIR_LIST.split() for letter in row[2:]])

_SUFFIXES = (
    *("ation", "ition", "tion", "sion", "ement", "able", "ible", "ally", "ness", "ance", "ence"),
    *("ings", "ing", "ers", "ity", "ive", "ous", "ful", "ly", "ed", "es"),
)
"""Endings of English words. They are one token, or belong to the last token of the word."""

_PUNCTUATION_TOKENS = frozenset(
    (
        *('":"', '","', '":', '{"', '"}', '},{"', '":{"', '":[', '],"', '"},{"', '"]', '},"'),
        *("[]", "{}", "()", "[{", "}]", "://", '":["'),
    )
)
"""Punctuation of JSON that is one token."""

_CHARACTER_RANGES: tuple[tuple[int, int, float], ...] = (
    (0xC0, 0x100, 1.1),  # Latin
    (0x386, 0x3CF, 1),  # Greek
    (0x400, 0x460, 1.1),  # Cyrillic
    (0x5D0, 0x5EB, 1),  # Hebrew
    (0x620, 0x64B, 1.05),  # Arabic
    (0x904, 0x94E, 1.25),  # Devanagari
    (0xE01, 0xE3B, 1.25),  # Thai
    (0x3041, 0x3100, 1.3),  # kana
    (0x80, 0xF00, 2),
    (0x1E00, 0x1F00, 2),
    (0x2000, 0x2190, 2),
    (0x2500, 0x2600, 2),
    (0x3000, 0x3041, 2),
    (0xFF00, 0xFFF0, 2),
    (0x1F300, 0x1FB00, 3),  # emoji
)
"""Tokens per character. The first range counts; other characters have one token per byte."""

_PIECE = re.compile(
    r"[A-Z]?[a-z]+|[A-Z]+|[0-9]{1,3}"
    r"| (?=[0-9])|\n+|\r+|\t+|  +|(?<=[0-9]) "  # the space before a word belongs to its token
    r"|[!-/:-@\[-`{-~]+|[\x00-\x1f\x7f]|[^\x00-\x7f]"
)
_REPEATED = re.compile(r"(.)\1*", re.DOTALL)
_REPETITIONS_PER_TOKEN = 16
_LONG_WORD, _LONG_CAPITALS = 20, 8
"""Words above these lengths are not English: they have more tokens for each letter."""

_WORD_MARGIN = 1.05
"""Words that are not in the list differ most from the tokenizer."""

_costs: dict[str, float] = {}
_MAX_COSTS = 50_000


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has, rather too many than too few."""
    if len(_costs) > _MAX_COSTS:
        _costs.clear()
    total = 0.0
    for piece in _PIECE.findall(text):
        cost = _costs.get(piece)
        if cost is None:
            cost = _costs[piece] = _piece_cost(piece)
        total += cost
    return -int(-total // 1)


def _piece_cost(piece: str) -> float:
    first = piece[0]
    if first > "\x7f":
        return _character_cost(first)
    if first.isalpha():
        return _word_cost(piece)
    if first.isdigit() or piece in _PUNCTUATION_TOKENS:
        return 1
    return sum([1 + len(run[0]) // _REPETITIONS_PER_TOKEN for run in _REPEATED.finditer(piece)])


def _word_cost(word: str) -> float:
    lower, size = word.lower(), len(word)
    if lower in _WORDS:
        return 1
    rare = sum([lower[i : i + 2] not in _PAIRS for i in range(size - 1)])
    if size > 1 and word.isupper():
        return max(size * 0.62 if size > _LONG_CAPITALS else -(-size // 2), 1 + rare)
    if size > _LONG_WORD:
        return max(size / 1.85, 1 + rare)
    if size > 5 and not rare:
        suffix = next((len(end) for end in _SUFFIXES if lower.endswith(end)), 0)
        size -= max(suffix - 1, 0)
    tokens = max(-(-size // 3), 1 + rare)
    return tokens if tokens == 1 else tokens * _WORD_MARGIN


def _character_cost(character: str) -> float:
    code = ord(character)
    for first, end, cost in _CHARACTER_RANGES:
        if first <= code < end:
            return cost
    if _is_frequent_chinese(character):
        return 2
    return 4 if code > 0xFFFF else 3


def _is_frequent_chinese(character: str) -> bool:
    """True for the 3,755 characters in the first level of GB 2312, ordered by frequency of use."""
    try:
        return character.encode("gb2312")[0] < 0xD8
    except UnicodeEncodeError:
        return False
