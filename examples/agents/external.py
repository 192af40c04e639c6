"""An agent that runs on this machine and works on the sandbox:

  proctor run -p examples/tasks/hello-world -a external --ak run='python3 examples/agents/external.py'

It does without a model what the task of hello-world asks for. A real one would ask its model, whose
key comes as --ae KEY='${KEY}', where this one calls `decide`.
"""

import json
import sys


def receive():
    return json.loads(sys.stdin.readline())


def send(**message):
    print(json.dumps(message), flush=True)


def ask(**request):
    """Sends a request and returns its answer; with one at a time the answers come in order."""
    send(id=1, **request)
    return receive()


def decide(instruction, listing):
    line = next(line.strip() for line in instruction.splitlines() if line.startswith("    "))
    return {"path": "hello.txt", "content": line + "\n"}


start = receive()
listing = ask(type="exec", command="ls -la", timeout_sec=30)
print("working in", start["workdir"], "with", listing["output"], file=sys.stderr)
answer = ask(type="write", **decide(start["instruction"], listing["output"]))
if answer["type"] == "error":
    sys.exit(answer["message"])
send(type="usage", input_tokens=0, output_tokens=0)
send(type="done")
