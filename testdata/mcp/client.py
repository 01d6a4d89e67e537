"""What the official Python client sees of a server: client.py PROGRAM ID

PROGRAM is Foreword, ID something remembered; the library is on PYTHONPATH. client.mjs says
the same in JavaScript; a test compares what both print.
"""

import asyncio
import json
import sys

from mcp import ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

program, number = sys.argv[1:]


async def main():
    server = StdioServerParameters(command=program, args=["mcp"])
    async with stdio_client(server) as streams, ClientSession(*streams) as session:

        async def call(name, arguments):
            result = await session.call_tool(name, arguments)
            return [result.is_error, result.content[0].text]

        async def code(name):
            try:
                await session.call_tool(name, {})
            except MCPError as error:
                return error.error.code

        hello = await session.initialize()
        seen = {
            "server": hello.server_info.name,
            "tools": [tool.name for tool in (await session.list_tools()).tools],
            "search": await call("search", {"query": "expires", "type": "bugfix"}),
            "get_observations": await call("get_observations", {"ids": [int(number)]}),
            "wrong_type": await call("search", {"query": 7}),
            "unknown_tool": await code("erase"),
        }
    print(json.dumps(seen))


asyncio.run(main())
