"""What a script does with the result of a call: it passes it on, or looks into it."""

from __future__ import annotations

import pytest

from tooli.orchestrate.result_uses import find_unused_results

PASSED_ON = [
    "await drop('a')",
    "x = await drop('a')\nx",
    "return await drop('a')",
    "x = await drop('a')\nawait label(id=x)",
    "x = await drop('a')\nawait label(x, y=[x, {'k': x}])",
    "x = y = await drop('a')\n[x, y]",
    "x: object = await drop('a')\n(x,)",
    "{'a': await drop('a'), **{'b': await drop('b')}}",
    "[await drop(n) for n in names]",
    "{n: await drop(n) for n in names}",
    "rs = []\nfor n in names:\n    rs.append(await drop(n))\nlen(rs)",
    "rs = []\nrs += [await drop('a')]\nrs = rs + rs\nif rs:\n    print(rs)\nrs[0]",
    "rs = []\nrs.extend([await drop('a')])\nfor r in rs:\n    await label(r)",
    "d = {}\nd['a'] = await drop('a')\nfor k, v in d.items():\n    await label(v, name=k.upper())",
    "d = {}\nd['a'] = await drop('a')\n[*d.values(), *d.copy().keys()]",
    "rs = await asyncio.gather(*[drop(n) for n in names])\nf'{len(rs)} dropped'",
    "import asyncio\nrs = await asyncio.gather(drop('a'), price('b'))\nrs[:1]",
    "from asyncio import gather\na, b = await gather(drop('a'), drop('b'))\n[a, *[b]]",
    "tasks = [drop(n) for n in names]\nlist(await asyncio.gather(*tasks))",
    "rs = await asyncio.gather(*[drop(n) for n in names])\n"
    "{n.upper(): r for n, r in zip(names, rs)}",
    "rs = [await drop('a')]\nfor i, r in enumerate(rs):\n    await label(r, i + 1)",
    "rs = [await drop('a')]\nfor pair in zip(rs, rs):\n    await label(pair[0])",
    "async def remove(n):\n    return await drop(n)\nawait remove('a')",
    "async def rm(n):\n    return await drop(n)\nawait asyncio.gather(*[rm(n) for n in names])",
    "x = await drop('a') if n else None\nx",
    "y = (x := await drop('a'))\n[x, y]",
    "t = drop('a')\nawait t",
    "first, *rest = [await drop('a'), await drop('b')]\nfor r in rest:\n    await label(r)",
    "try:\n    await drop('a')\nfinally:\n    pass",
    "x = 'ä'; await drop('ö')",
]
LOOKED_INTO = [
    "x = await drop('a')\nx['k']",
    "x = await drop('a')\nx.k",
    "(await drop('a'))[0]",
    "x = await drop('a')\nif x:\n    pass",
    "if await drop('a') == 'done':\n    pass",
    "x = await drop('a')\nx is None",
    "x = await drop('a')\nnot x",
    "x = await drop('a')\nx or 1",
    "x = await drop('a')\nf'{x}'",
    "f'{await drop(1)}'",
    "f'{len([await drop(1)])}'",
    "x = await drop('a')\nstr(x)",
    "x = await drop('a')\nlen(x)",
    "x = await drop('a')\nlist(x)",
    "x = await drop('a')\n[*x]",
    "x = await drop('a')\n{**x}",
    "x = await drop('a')\nawait label(*x)",
    "x = await drop('a')\nx + [1]",
    "x = await drop('a')\n1 if x else 2",
    "x = await drop('a')\nwhile x:\n    pass",
    "x = await drop('a')\nfor i in x:\n    pass",
    "a, b = await drop('a')",
    "x = await drop('a')\n{x: 1}",
    "x = await drop('a')\n{x}",
    "x = await drop('a')\nd[x]",
    "{await drop(n): 1 for n in names}",
    "[1 for n in names if await drop(n)]",
    "x = await drop('a')\nmatch x:\n    case 1:\n        pass",
    "x = await drop('a')\nassert x",
    "x = await drop('a')\nraise ValueError(x)",
    "x = await drop('a')\nisinstance(x, str)",
    "x = await drop('a')\njson.dumps(x)",
    "x = [await drop('a')]\nstr(x)",
    "x = [await drop('a')]\nx == []",
    "x = [await drop('a')]\nsorted(x)",
    "x = [await drop('a')]\nx.index(1)",
    "x = [await drop('a')]\nany(x)",
    "x = [await drop('a')]\nif x[0]:\n    pass",
    "x = [await drop('a')]\n[r for r in x if r]",
    "x = [await drop('a')]\nfor a, b in x:\n    pass",
    "x = {}\nx.setdefault('a', await drop('a'))",
    "def f(v):\n    return v\nf(await drop('a'))",
    "async def f():\n    return await drop('a')\nx = await f()\nif x:\n    pass",
    "async def f():\n    return await drop('a')\nlist(map(f, names))",
    "@wraps\nasync def f():\n    return await drop('a')\nawait f()",
    "class A:\n    async def f(self):\n        return await drop('a')\nawait A().f()",
    "class A:\n    def append(self, v):\n        bool(v)\na = A()\na.append(await drop('a'))",
    "class A:\n    pass\na = A()\na.x = await drop('a')",
    "x = await drop('a')\nf = lambda: x == 1\nf()",
    "def len(v):\n    return bool(v)\nlen([await drop('a')])",
    "from other import gather\nawait gather(drop('a'))",
    "import other as zip\nzip([await drop('a')])",
    "def f(print):\n    print(1)\nprint(await drop('a'))",
    "x = await drop('a')\nlocals()['x']",
    "x = [await drop('a')]\nx = [x]\nx[0][0][0]",
    "with await drop('a'):\n    pass",
    "x.y.append(await drop('a'))",
    "rs = [await drop('a')]\nzip(*rs)",
    "rs = [await drop('a')]\nfor (a, *b), c in zip(rs, rs):\n    pass",
    "await drop('a')\r\n",
    "await drop('a'",
    "fs = [lambda: 1]\nreturn (await drop('a')).x",
]
TOOLS = ("drop", "label", "price")


@pytest.mark.parametrize("source", PASSED_ON)
def test_results_that_are_passed_on(source: str) -> None:
    found = find_unused_results(source, TOOLS)
    data = source.encode()
    positions = [i for i in range(len(data)) if data.startswith(b"drop(", i)]
    assert positions
    assert set(positions) <= found


@pytest.mark.parametrize("source", LOOKED_INTO)
def test_results_that_are_looked_into(source: str) -> None:
    assert find_unused_results(source, ("drop",)) == frozenset()


def test_deep_sources() -> None:
    assert find_unused_results("(" * 100_000, TOOLS) == frozenset()
    nested = "x = await drop('a')\n" + "x = [x]\n" * 3 + "x"
    assert find_unused_results(nested, TOOLS) == frozenset()  # the depth has no end
