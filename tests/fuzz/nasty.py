"""Values that programs forget: numbers, texts and names, each a defect somewhere once."""

from __future__ import annotations

from hypothesis import strategies as st

NUMBERS = (0, -1, 1, 2, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30, 0.0, -0.0, 0.5, 1e-320, 1e308, -1.5)
SPECIAL = (float("inf"), float("-inf"), float("nan"))
LONG_INTEGER = "9" * 5000
"""More digits than Python turns into a number without being asked."""

TEXTS = (
    "", " ", "a", "0", "-", "--", "nan", "true", "None", "..", ".", "../x", "a/b", "/", "x" * 300, "a" * 5000,
    "new\nline", "tab\there", "\x1b[31mred\x1b[0m", "bell\x07", "back\x08", "\x7f", "\x85", "\u2028", "\u202eleft",
    "\u00e9t\u00e9", "\U0001f600", "\ufeff", "{foo}", "%s%n", "$(x)", "`x`", "a;b", "a'b", 'a"b', "[bold]x[/bold]",
    "[/]", "=1+1", "@x", "fedavg", "synthetic", "gin", "*", "a" * 256 + ".toml", "\\", "a,b", "1,2,3", "1e999", "NUL",
    "\n[case\n", "\n= 1\n", "\n[[where]]\n", "\n[a.b.c]\n",
)  # fmt: skip

numbers = st.sampled_from(NUMBERS + SPECIAL)
texts = st.sampled_from(TEXTS) | st.text(max_size=12)
plain = st.none() | st.booleans() | st.sampled_from(NUMBERS) | st.sampled_from(TEXTS)


def deep(depth: int, inside: object = 0) -> object:
    """Return lists in lists."""
    value = inside
    for _ in range(depth):
        value = [value]
    return value


json_values = st.one_of(
    plain,
    numbers,
    st.lists(plain, max_size=3),
    st.dictionaries(st.sampled_from(("name", "event", "round", "data", "x", "")), plain, max_size=3),
    st.builds(deep, st.sampled_from((5, 900, 3000))),
)
"""What a stranger's JSON may hold in place of what belongs there."""
