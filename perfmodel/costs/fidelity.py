"""How much of a step is modelled: the three fidelities.

`paper`: the published equations to the letter, communication only. `flat`: all that is sent, and arithmetic at one
rate, nothing overlapped. `full`: kernels, latency, protocols, measured tables and overlap.
"""

from typing import Literal

Fidelity = Literal["paper", "flat", "full"]
FIDELITIES: tuple[Fidelity, ...] = ("full", "flat", "paper")
