"""The text of a job script, which depends only on its record."""

from collections.abc import Iterator

from perfmodel.errors import UsageError
from perfmodel.jobscripts import quoting, slurm
from perfmodel.jobscripts.dialects import Dialect, dialect_of
from perfmodel.jobscripts.request import Line, Request, Run, one_device_each
from perfmodel.machines.machine import Machine
from perfmodel.machines.scheduler import EnvironmentVariable
from perfmodel.machines.scheduler_kinds import SCHEDULERS

_END = "END_OF_FILE"
_OURS = "perfmodel"
_TORCH_RANK = "RANK"  # the variable from which torch reads a rank


def script(request: Request) -> str:
    """The job as text.

    Directives and environment are the profile's. A user's text is quoted, so that it reaches the command unchanged.
    """
    dialect = dialect_of(request.machine.scheduler.kind)
    parts = (
        _head(request, dialect),
        _modules(request),
        _variables(request, dialect),
        _runs(request, dialect),
    )
    return "\n\n".join("\n".join(part) for part in map(list, parts) if part) + "\n"


def variables(request: Request, dialect: Dialect) -> Iterator[Line]:
    """The environment variables of every rank, with their reasons."""
    scheduler = request.machine.scheduler
    if dialect.first_host:
        host, why = _master(request.machine, dialect)
        yield Line(f"MASTER_ADDR={host}", why)
        yield Line("export MASTER_ADDR")
        yield Line(f"export MASTER_PORT={dialect.port}", "the port on which it listens")
    for variable in scheduler.environment:
        value = quoting.filled(_value(variable, request.nodes))
        yield Line(f"export {variable.name}={value}", f"{variable.why} [{variable.source}]")


def _head(request: Request, dialect: Dialect) -> Iterator[str]:
    kind = SCHEDULERS[request.machine.scheduler.kind]
    yield kind.shebang
    yield quoting.comment(request.title)
    yield quoting.comment(
        f"Made by perfmodel job for {kind.title}. Sources are in brackets, and listed by perfmodel machines show "
        f"{request.machine.name}."
    )
    for line in dialect.directives(request):
        yield quoting.comment(line.why[:1].upper() + line.why[1:])
        yield line.text
    if dialect.start:
        yield ""
        yield from map(_behind, dialect.start)


def _modules(request: Request) -> Iterator[str]:
    scheduler = request.machine.scheduler
    if request.setup:
        yield quoting.comment("The software, set up by --setup")
        commands = request.setup
    else:
        paths = [("module", "use", path) for path in scheduler.module_paths]
        loads = [("module", "load", *scheduler.modules)] if scheduler.modules else []
        commands = (*paths, *loads, *(quoting.words(text, "the profile's setup") for text in scheduler.setup))
        if commands:
            yield quoting.comment(f"The software, set up as in the profile [{scheduler.source}]; --setup replaces this")
    for words in commands:
        yield from _or_end(words)
    if request.activate:
        yield quoting.comment("The environment of --activate")
    for words in request.activate:
        yield from _or_end(words)
    if request.runs[0].command[0] == _OURS and not request.container:
        yield quoting.comment(
            f"Checked here rather than by all ranks: {_OURS} and torch must be installed where the job runs"
        )
        yield f"command -v {_OURS} >/dev/null || {{ echo '{_OURS} is not on the PATH: see --activate' >&2; exit 1; }}"


def _or_end(words: tuple[str, ...]) -> Iterator[str]:
    """A command that must succeed."""
    if words[0] in ("source", "."):
        yield "# shellcheck source=/dev/null # a file of that machine"
    yield f"{' '.join(quoting.command(words))} || exit 1"


def _variables(request: Request, dialect: Dialect) -> Iterator[str]:
    return map(_behind, variables(request, dialect))


def _runs(request: Request, dialect: Dialect) -> Iterator[str]:
    yield "failed=0  # if a grid fails, the others still run"
    if visible := request.machine.scheduler.visible_devices:
        told = f"{request.visible_devices} is {visible} [{request.machine.scheduler.source}]"
        yield quoting.comment(f"Set by each rank itself, since the launcher overwrites it: {told}")
    if request.array:
        yield f"case {dialect.index} in  # the number of this job in its array"
        for number, run in enumerate(request.runs, start=1):
            yield f"{number})"
            yield from _run(request, run, dialect)
            yield ";;"
        yield "esac"
    else:
        for run in request.runs:
            yield ""
            yield from _run(request, run, dialect)
    if request.closing:
        yield ""
        yield from _close(request, request.closing)
    yield 'exit "$failed"'


def _run(request: Request, run: Run, dialect: Dialect) -> Iterator[str]:
    yield quoting.comment(f"Grid {run.grid} (X, Y, Z, data): {run.title}")
    for name, text in run.files:
        yield f"cat >{quoting.argument(name)} <<'{_END}' || exit 1"
        yield from text.splitlines()
        yield _END
    for name, value, why in run.environment:
        told = f"unset {name}" if value is None else f"export {name}={quoting.argument(value)}"
        yield _behind(Line(told, why))
    ranks = _rank_wrapper(request, dialect)
    if ranks:
        yield "# shellcheck disable=SC2016 # each rank expands what is quoted"
    ended = ("timeout", str(run.seconds)) if run.seconds else ()
    words = (*ended, *dialect.launch(request), *ranks, *_contained(request), *quoting.command(run.command))
    yield from f"{quoting.lines(words)} || failed=1".split("\n")


def _rank_wrapper(request: Request, dialect: Dialect) -> tuple[str, ...]:
    """A shell that sets torch's rank variables in each rank; nothing if the launcher sets them."""
    names = SCHEDULERS[request.machine.scheduler.kind].ranks
    if names.rank == _TORCH_RANK:
        return ()
    visible = request.machine.scheduler.visible_devices
    own = one_device_each(request.machine) and not request.finds_device
    told = [
        f"RANK={dialect.rank or f'${names.rank}'}",
        f"WORLD_SIZE={request.gpus}",
        f"LOCAL_RANK={0 if own else dialect.local_rank or f'${names.local_rank[0]}'}",
        f"LOCAL_WORLD_SIZE={request.tasks_per_node}",
    ]
    if visible:
        told.append(f"{request.visible_devices}={quoting.filled(visible)}")
    return ("bash", "-c", quoting.argument(f'export {" ".join(told)}; exec "$@"'), "rank")


def _contained(request: Request, *, alone: bool = False) -> tuple[str, ...]:
    """The program that runs a command inside the image, in each rank or `alone`, if no launcher option does."""
    if not request.container:
        return ()
    kind, image = request.machine.scheduler.container, quoting.argument(request.container)
    if kind == "shifter":
        return ("shifter", f"--image={image}", "--module=gpu,nccl-plugin")
    if kind == "singularity":
        return ("singularity", "exec", image)
    return ("srun", "--nodes=1", "--ntasks=1", *slurm.container(request)) if alone else ()


def _close(request: Request, words: tuple[str, ...]) -> Iterator[str]:
    yield quoting.comment("Compare predictions with measurements")
    contained = (*_contained(request, alone=True), *quoting.command(words))
    yield from f"{quoting.lines(contained)} || failed=1".split("\n")


def _master(machine: Machine, dialect: Dialect) -> tuple[str, str]:
    """How the script finds rank 0's host, and a comment that explains it."""
    address, source = machine.scheduler.master_address, machine.scheduler.source
    if address == "hostname":
        return "$(hostname)", f"rank 0 runs on the node of this script [{source}]"
    if address == "hostname-i":
        return "$(hostname -i)", f"rank 0 runs on the node of this script, given by its address [{source}]"
    ending = address.removeprefix("first-host")
    if address.startswith("first-host"):
        added = f"; {ending} selects its address on the fast network" if ending else ""
        return f"$({dialect.first_host}){quoting.argument(ending) if ending else ''}", (
            f"rank 0 is on the first host of the job{added} [{source}]"
        )
    raise UsageError(f"{machine.name}: scheduler.master_address {address!r}: wanted hostname, hostname-i or first-host")


def _value(variable: EnvironmentVariable, nodes: int) -> str:
    return variable.one_node if variable.one_node and nodes == 1 else variable.value


def _behind(line: Line) -> str:
    return f"{line.text}  {quoting.comment(line.why)}" if line.why else line.text
