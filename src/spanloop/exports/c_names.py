"""Names in C: the prefix of a file's names, identifiers made of a model's names, and text that is safe in comments."""

from __future__ import annotations

import re
from collections.abc import Iterable

from spanloop.errors import InputError

_WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool complex
imaginary true false nullptr asm fortran main errno alignas alignof and and_eq bitand bitor catch class compl concept
consteval constexpr constinit const_cast co_await co_return co_yield decltype delete dynamic_cast explicit export
friend mutable namespace new noexcept not not_eq operator or or_eq private protected public reinterpret_cast requires
static_assert static_cast template this thread_local throw try typeid typename typeof using virtual wchar_t xor xor_eq
"""
_KEYWORDS = frozenset(_WORDS.split())
_LIBRARY = """
assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic stdbool
stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype
"""
_HEADERS = frozenset(_LIBRARY.split())
LONGEST = 40  # characters of a prefix


def prefix_of(name: str, option: str = "name") -> str:
    """The prefix, checked; InputError suggests another where it is no name of C, a keyword or reserved."""
    found = _fault(name)
    if found:
        shown = repr(name) if len(str(name)) <= LONGEST else repr(str(name)[: LONGEST - 10] + "...")
        raise InputError(f"export: {option} {shown} {found}. Try name={_suggestion(name)!r}")
    return name


def refuse_system_header(stem: str) -> None:
    """InputError for the name of a file whose header the compiler could take for one of its own."""
    if stem.lower() in _HEADERS:
        raise InputError(
            f"export: {stem}.h is a header of C's library, which a file of this name would hide. Choose another file "
            f"name, as {stem}_model.c"
        )


def _fault(name: object) -> str:
    if not isinstance(name, str):
        return f"is a {type(name).__name__}; expected text"
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII):
        return "is no name in C: letters of ASCII, digits and _, no digit first"
    if name in _KEYWORDS:
        return "is a word of C or C++"
    if name.startswith("_") or "__" in name or name.endswith("_"):
        return "is reserved: names of C and C++ compilers begin with _ or hold __"
    if len(name) > LONGEST:
        return f"has {len(name)} characters; expected {LONGEST} at most"
    return ""


def _suggestion(name: object) -> str:
    word = re.sub(r"_+", "_", identifier(str(name))).strip("_")[:LONGEST].strip("_")
    if not word or word[0].isdigit():
        word = f"model_{word}".strip("_")
    return f"{word}_model" if word in _KEYWORDS else word


def identifier(name: str) -> str:
    """A name with _ for all characters that C does not allow; it may begin with a digit."""
    return "".join(x if x.isascii() and x.isalnum() else "_" for x in name)


def identifiers(names: Iterable[str]) -> list[str]:
    """A distinct part of an identifier for each name, in upper case; later ones of the same letters have a number."""
    out: list[str] = []
    for name in names:
        word = identifier(name).upper()
        k, own = 1, word
        while own in out:
            k += 1
            own = f"{word}_{k}"
        out.append(own)
    return out


def comment(text: str) -> str:
    """Text for a comment: no end or begin of comments, no trigraphs, no backslashes, ASCII, one line."""
    out = "".join(x if x.isascii() and x.isprintable() and x != "\\" else f"{{U+{ord(x):04X}}}" for x in text)
    return out.replace("*/", "* /").replace("/*", "/ *").replace("//", "/ /").replace("??", "? ?")


def quoted(name: str) -> str:
    """A name of the model in a comment."""
    return f"'{comment(name)}'"
