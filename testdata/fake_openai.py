#!/usr/bin/env python3
"""A scripted stand-in for an OpenAI-compatible server (Python standard library only).

The same options, READY line, script, lanes, failures, log and control paths as
claude-code/fake_anthropic.py, whose docstring describes them; only the wire differs:
POST /v1/chat/completions (or /chat/completions), answered whole, never streamed.
Point the client at http://127.0.0.1:PORT/v1.

A request is matched as if it had been sent to the Messages API: `system_contains` sees
the system messages, `max_tokens_below` sees max_tokens or max_completion_tokens. The log
has the body as it came. In a reply
      "stop_reason": "max_tokens"    becomes finish_reason "length", "refusal" becomes
                                     "content_filter", anything else "stop"
      "usage": {"input_tokens": N, "cache_read_input_tokens": N, "output_tokens": N}
                                     or OpenAI's own names; null: the reply has no usage
      "disconnect": "middle"         half of the JSON, then the connection is closed
      {"error": {"status": 429, "type": "…", "code": "…", "param": "…", "message": "…"}}
      {"error": {"status": 404, "plain": "…"}}          {"error": "…"}, as Ollama has it
"""

import importlib.util
import json
import pathlib
import sys
import time

sys.dont_write_bytecode = True
_path = pathlib.Path(__file__).resolve().parent / "claude-code" / "fake_anthropic.py"
_spec = importlib.util.spec_from_file_location("fake_anthropic", _path)
fake = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fake)

PATHS = ("/v1/chat/completions", "/chat/completions")
FINISH = {"max_tokens": "length", "refusal": "content_filter"}


def as_messages_request(body):
    """The request as the script's rules know it."""
    messages = [m for m in body.get("messages") or [] if isinstance(m, dict)]
    is_system = lambda message: message.get("role") in ("system", "developer")
    return {
        **body,
        "system": "\n".join(fake.text_of(m.get("content")) for m in messages if is_system(m)),
        "messages": [m for m in messages if not is_system(m)],
        "max_tokens": body.get("max_tokens") or body.get("max_completion_tokens") or 4096,
    }


def usage_for(usage):
    if "prompt_tokens" in usage:
        return usage
    read = usage["cache_read_input_tokens"]
    prompt = usage["input_tokens"] + usage["cache_creation_input_tokens"] + read
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage["output_tokens"],
        "total_tokens": prompt + usage["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": read},
    }


def completion_for(reply, body):
    message = fake.message_for(reply, body)
    completion = {
        "id": fake.new_id("chatcmpl"),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": message["model"],
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": fake.text_of(message["content"]), "refusal": None},
            "finish_reason": FINISH.get(message["stop_reason"], "stop"),
        }],
        "usage": usage_for(message["usage"]),
    }
    if "usage" in reply and reply["usage"] is None:
        del completion["usage"]
    return completion


class Handler(fake.Handler):
    paths = PATHS

    def as_scripted(self, body):
        return as_messages_request(body)

    def error_body(self, error):
        if "plain" in error:
            return {"error": error["plain"]}
        return {"error": {
            "message": error.get("message", "scripted error"),
            "type": error.get("type", "server_error"),
            "param": error.get("param"),
            "code": error.get("code"),
        }}

    def answer(self, reply, body):
        self.send_whole(completion_for(reply, body), reply)


if __name__ == "__main__":
    fake.main(Handler, "Scripted OpenAI-compatible server on loopback.")
