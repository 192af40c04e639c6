"""Runs an agent that is a Python class, inside the sandbox, as the agent's user.

usage: pythonagent.py OPTIONS, a JSON file with:

    import       "module:Class"
    dir          where the agent's code is
    instruction  a file with the instruction
    context      a file that takes what the agent reports of its work
    model        the model's name, or null
    env          the names of the agent's variables, which the process has

It exits with 0 when run() has returned, with UNUSABLE when the code gives no agent,
and with 1 for whatever the agent raises. Python 3.8 and its standard library do.
"""

import asyncio
import grp
import importlib
import inspect
import json
import logging
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import types
from pathlib import Path

# The agent's code cannot be imported, or its class not constructed.
UNUSABLE = 96

# How long a command that ran out of time has between SIGTERM and SIGKILL, in seconds.
GRACE = 5


class ExecResult:
    """What a command came to. stderr is None: it is merged into stdout."""

    def __init__(self, stdout=None, stderr=None, return_code=0):
        self.stdout = stdout
        self.stderr = stderr
        self.return_code = return_code

    def __repr__(self):
        return "ExecResult(stdout=%r, stderr=%r, return_code=%r)" % (self.stdout, self.stderr, self.return_code)


class BaseEnvironment:
    """Base of the environment that an agent is given."""


class AgentContext:
    """What an agent reports of its work, and the variables that it was given."""

    REPORTED = ("n_input_tokens", "n_cache_tokens", "n_output_tokens", "cost_usd", "metadata")

    def __init__(self, **values):
        self.rollout_details = None
        self.env = {}
        for name in self.REPORTED:
            setattr(self, name, None)
        for name, value in values.items():
            setattr(self, name, value)

    def is_empty(self):
        return all(getattr(self, name, None) is None for name in self.REPORTED + ("rollout_details",))


class BaseAgent:
    """Base of agents that are written for Harbor, where that is not installed."""

    SUPPORTS_ATIF = False
    SUPPORTS_WINDOWS = False

    def __init__(self, logs_dir=None, model_name=None, logger=None, extra_env=None, **kwargs):
        self.logs_dir = logs_dir
        self.model_name = model_name
        self.logger = logger or logging.getLogger("agent")
        self.extra_env = dict(extra_env or {})
        self.mcp_servers = kwargs.get("mcp_servers") or []
        self.skills_dir = kwargs.get("skills_dir")

    @staticmethod
    def name():
        return "python"

    def version(self):
        return None

    async def setup(self, environment):
        pass

    async def run(self, instruction, environment, context):
        raise NotImplementedError("the agent has no method run")


class Environment(BaseEnvironment):
    """The sandbox, from inside: commands are processes and transfers are copies."""

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        """Run a command as `bash -c` does and return an ExecResult.

        Raises TimeoutError when it takes longer than timeout_sec seconds, and
        PermissionError for a user that this process cannot become.
        """
        variables = dict(os.environ)
        become = None
        if user is not None:
            become = switch_to(user, variables)
        variables.update(env or {})
        # A file, not a pipe: a command is over when it has ended, even if something
        # that it has started still holds its output.
        with tempfile.TemporaryFile() as output:
            try:
                process = await asyncio.create_subprocess_exec(
                    shutil.which("bash") or "/bin/sh", "-c", command,
                    stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                    cwd=cwd, env=variables, start_new_session=True, preexec_fn=become)
            except subprocess.SubprocessError as e:
                raise PermissionError("cannot run a command as user %r: this process may not become it" % (user,)) from e
            try:
                await asyncio.wait_for(process.wait(), timeout_sec)
            except asyncio.TimeoutError:
                await end(process)
                raise TimeoutError("Command timed out after %s seconds" % (timeout_sec,)) from None
            except BaseException:  # the agent gave the command up
                send(process, signal.SIGKILL)
                raise
            output.seek(0)
            text = output.read().decode("utf-8", "replace")
        return ExecResult(stdout=text or None, stderr=None, return_code=process.returncode or 0)

    async def upload_file(self, source_path, target_path):
        os.makedirs(os.path.dirname(os.path.abspath(str(target_path))), exist_ok=True)
        shutil.copy2(str(source_path), str(target_path))

    async def download_file(self, source_path, target_path):
        await self.upload_file(source_path, target_path)

    async def upload_dir(self, source_dir, target_dir):
        shutil.copytree(str(source_dir), str(target_dir), symlinks=True, dirs_exist_ok=True)

    async def download_dir(self, source_dir, target_dir):
        await self.upload_dir(source_dir, target_dir)

    async def is_file(self, path, user=None):
        return os.path.isfile(str(path))

    async def is_dir(self, path, user=None):
        return os.path.isdir(str(path))


def send(process, number):
    """Signal the command's whole process group."""
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        pass


async def end(process):
    """Terminate a command, and kill what is left of its group after GRACE."""
    send(process, signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), GRACE)
    except asyncio.TimeoutError:
        pass
    send(process, signal.SIGKILL)
    await process.wait()


def switch_to(user, variables):
    """Return what makes a new process the user's: "name", "uid", either with ":group".

    None is returned where it is the user's already.
    """
    name, _, group = str(user).partition(":")
    try:
        entry = find(name, pwd.getpwuid, pwd.getpwnam)
        uid = int(name) if entry is None else entry.pw_uid
        gid = 0 if entry is None else entry.pw_gid  # as container engines do
        if group:
            found = find(group, grp.getgrgid, grp.getgrnam)
            gid = int(group) if found is None else found.gr_gid
    except (KeyError, ValueError):
        raise PermissionError("cannot run a command as user %r: there is no such user or group" % (user,)) from None
    if uid == os.geteuid() and (not group or gid == os.getegid()):
        return None
    if os.geteuid() != 0:
        raise PermissionError(
            "cannot run a command as user %r: the agent runs as uid %d and is not root" % (user, os.geteuid()))
    groups = [gid] if entry is None or group else os.getgrouplist(entry.pw_name, gid)
    if entry is not None:
        variables.update(HOME=entry.pw_dir, USER=entry.pw_name, LOGNAME=entry.pw_name)

    def become():
        os.setgroups(groups)
        os.setgid(gid)
        os.setuid(uid)

    return become


def find(text, by_number, by_name):
    """Look up a user or a group; None for a number that has no entry."""
    if not text.isdigit():
        return by_name(text)
    try:
        return by_number(int(text))
    except KeyError:
        return None


def stand_in():
    """Make the names that agents import from Harbor importable where it is not installed."""
    try:
        importlib.import_module("harbor")
        return
    except ImportError:
        pass
    names = {
        "harbor": {},
        "harbor.agents": {},
        "harbor.agents.base": {"BaseAgent": BaseAgent},
        "harbor.environments": {},
        "harbor.environments.base": {"BaseEnvironment": BaseEnvironment, "ExecResult": ExecResult},
        "harbor.models": {},
        "harbor.models.agent": {},
        "harbor.models.agent.context": {"AgentContext": AgentContext},
    }
    for name, content in names.items():
        module = types.ModuleType(name)
        module.__path__ = []  # a package, so that what is not in it is reported by its name
        vars(module).update(content)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


def load(path):
    """Return the class that "module:Class" names."""
    module, _, name = path.partition(":")
    found = getattr(importlib.import_module(module), name, None)
    if found is None:
        raise ImportError("module %r has no class %r" % (module, name))
    if not inspect.isclass(found):
        raise TypeError("%r is not a class but a %s" % (path, type(found).__name__))
    if not callable(getattr(found, "run", None)):
        raise TypeError("class %r has no method run(instruction, environment, context)" % (path,))
    return found


def construct(cls, offered):
    """Make the agent with those of the keyword arguments that its class takes."""
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):  # a class that is not written in Python does not say
        return cls()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return cls(**offered)
    taken = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return cls(**{name: value for name, value in offered.items() if name in taken})


def logs_dir():
    """Return the agent's log directory, or a directory of its own where that cannot be written."""
    kept = Path("/logs/agent")
    if kept.is_dir() and os.access(str(kept), os.W_OK | os.X_OK):
        return kept
    return Path(tempfile.mkdtemp(prefix="agent-logs-"))


async def work(agent, instruction, environment, context):
    """Call setup, if there is one, and run; both may be coroutines."""
    if callable(getattr(agent, "setup", None)):
        await finish(agent.setup(environment))
    await finish(agent.run(instruction, environment, context))


async def finish(result):
    if inspect.isawaitable(result):
        await result


def report(context, path):
    """Write what the context holds now. That it cannot be written ends nothing."""
    values = {name: getattr(context, name, None) for name in AgentContext.REPORTED}
    try:
        text = json.dumps(values, default=repr)
    except Exception:  # it holds itself, or its repr raises
        traceback.print_exc()
        values["metadata"] = None
        text = json.dumps(values, default=str)
    try:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    except OSError:
        traceback.print_exc()


def main(options_file):
    with open(options_file, encoding="utf-8") as f:
        options = json.load(f)
    with open(options["instruction"], encoding="utf-8", errors="replace", newline="") as f:
        instruction = f.read()
    variables = {name: os.environ[name] for name in options["env"] if name in os.environ}
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    sys.path[0] = options["dir"]
    sys.argv = [options["import"]]
    try:
        stand_in()
        agent = construct(load(options["import"]), {
            "logs_dir": logs_dir(), "model_name": options["model"],
            "logger": logging.getLogger("agent"), "extra_env": dict(variables)})
    except BaseException as e:  # also SystemExit: code that ends the process gives no agent
        traceback.print_exc()
        print("%s gives no agent: %s: %s" % (options["import"], type(e).__name__, e), file=sys.stderr, flush=True)
        return UNUSABLE
    context = AgentContext(env=dict(variables))

    def ended(*_):
        report(context, options["context"])
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, ended)  # at the deadline: what was used was used
    try:
        asyncio.run(work(agent, instruction, Environment(), context))
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        report(context, options["context"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
