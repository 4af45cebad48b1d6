"""Send requests at once, each over its own connection; print how often each status was answered.

python burst_client.py URL COUNT
"""

from __future__ import annotations

import asyncio
import resource
import sys
from collections import Counter
from urllib.parse import urlsplit

BODY = b'{"a": 1, "b": 2}'


async def main(url: str, count: int) -> None:
    """Open all connections, then send a request over each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, count + 100)), hard))
    address = urlsplit(url)
    head = f"POST /tools/add HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
    ready = asyncio.Event()
    connected = 0

    async def call() -> str:
        nonlocal connected
        try:
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
            connected += 1
            if connected == count:
                ready.set()
            await ready.wait()
            writer.write(head.encode() + BODY)
            answer = await reader.read()
            writer.close()
        except OSError as failure:
            ready.set()
            return type(failure).__name__
        return answer[9:12].decode() or "closed"

    counts = Counter(await asyncio.wait_for(asyncio.gather(*[call() for _ in range(count)]), 200))
    for status, number in counts.items():
        print(f"{status}: {number}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
