"""A session of the official SDK with the MCP server; prints what it saw as JSON. Run with the SDK's own interpreter.

python sdk_client.py MODE COMMAND...
"""

import asyncio
import json
import sys

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError


async def main(mode, command):
    parameters = StdioServerParameters(command=command[0], args=command[1:])
    elicited, seen = [], {}

    async def accept(*arguments):
        elicited.append(str(arguments))
        raise AssertionError("the server asks nothing")

    async def progress(done, total, message):
        seen.setdefault("progress", []).append([done, message])

    async with Client(stdio_client(parameters), mode=mode, elicitation_callback=accept) as client:
        seen["version"] = client.protocol_version
        seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        seen["hints"] = {tool.name: tool.annotations.read_only_hint for tool in (await client.list_tools()).tools}
        seen["resources"] = [str(each.uri) for each in (await client.list_resources()).resources]
        seen["templates"] = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
        seen["prompts"] = [each.name for each in (await client.list_prompts()).prompts]

        async def call(tool, **arguments):
            result = await client.call_tool(tool, arguments, progress_callback=progress)
            return {**result.structured_content, "is_error": result.is_error}

        seen["status"] = await call("status")
        seen["check"] = await call("gate_run", gate="command", phase="build")
        try:
            await client.call_tool("gate_run", {"gate": "slow", "phase": "later"}, read_timeout_seconds=2)
        except MCPError as error:
            seen["timed_out"] = str(error)
        seen["after"] = await call("why", phase="build")
        seen["finished"] = await call("finish", summary="built", phase="build")
        seen["begun"] = await call("begin", phase="release")
        seen["pending"] = await call("finish", summary="shipped", phase="release")
        try:
            await client.call_tool("approve", {})
        except MCPError as error:
            seen["unknown"] = [error.error.code, error.error.message]
        journal = await client.read_resource("detent://journal")
        seen["commits"] = len(json.loads(journal.contents[0].text)["commits"])
        seen["report"] = (await client.read_resource("detent://report")).contents[0].text[:20]
        seen["prompt"] = (await client.get_prompt("go_on")).messages[0].content.text
    seen["elicited"] = elicited
    print(json.dumps(seen))  # noqa: T201 - its answer


asyncio.run(main(sys.argv[1], sys.argv[2:]))
