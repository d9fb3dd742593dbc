"""The commands of each group, in the order of `--help`: name, place and purpose.

A purpose is the first paragraph of the docstring at that place, again: here it can be read without the command.
"""

from perfmodel_cli.on_demand import Listed

PROGRAM = {
    "recommend": Listed(
        "recommend:recommend", "Rank all ways to spread a model over some GPUs, and say why others were rejected."
    ),
    "explain": Listed(
        "explain:explain",
        "Show every collective, its ranks, link and time, the memory terms, and the equations with their numbers.",
    ),
    "trace": Listed("explain:trace", "Write the timeline of one grid's micro-step as a Chrome trace."),
    "sweep": Listed(
        "sweep:sweep", "Find the best grid for each of several counts of GPUs: time, efficiency, and what limits it."
    ),
    "job": Listed(
        "job:job",
        "Write a job script that runs the fastest grids: directives, environment, binding, a framework's flags.",
    ),
    "compare": Listed(
        "compare:compare",
        "Compare predictions with measured steps: errors of size, and of order within groups.",
    ),
    "validate": Listed(
        "compare:validate", "Compare predictions with figures printed in papers, which come with the program."
    ),
    "calibrate": Listed(
        "calibrate:calibrate",
        "Fit a few figures of a profile to measured steps, and write a profile based on it. Needs scipy.",
    ),
    "report": Listed(
        "report:report",
        "Write a recommendation and all that it is based on as one HTML page that needs no network.",
    ),
    "run": Listed(
        "run:run",
        "Train a model on grids, each in its own processes, and measure steps, memory, and collectives.",
    ),
    "dryrun": Listed(
        "dryrun:dryrun",
        "Run the launch code's step for one rank without a GPU, and count what it sends, multiplies and holds.",
    ),
}

MACHINES = {
    "list": Listed("machines:machines_list", "List the shipped machines."),
    "show": Listed("machines:machines_show", "Show a profile: every figure with its source."),
    "check": Listed("machines:machines_check", "Check a profile, and name every problem with its line."),
    "new": Listed(
        "machines:machines_new", "Write a commented profile to edit, filled with a shipped machine's figures."
    ),
    "import": Listed(
        "import_logs:machines_import", "Fill the tables of collectives of a profile from logs of benchmarks."
    ),
    "measure": Listed(
        "measure:machines_measure",
        "Measure this machine and write its profile: products, memory, issuing of kernels, and collectives of all "
        "shapes.",
    ),
}

MODELS = {
    "list": Listed("models:models_list", "List the model presets."),
    "show": Listed("models:models_show", "Show a model's layers, parameters and FLOPs."),
}

FRAMEWORKS = {
    "list": Listed("frameworks:frameworks_list", "List the frameworks whose traits are known."),
    "show": Listed("frameworks:frameworks_show", "Show what a framework does in a step: every trait with its source."),
}
