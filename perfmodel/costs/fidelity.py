"""How much of a step is modelled: the three fidelities.

`paper`: exactly the published equations, communication only. `flat`: all communication, and computation at one rate,
without overlap. `full`: kernels, latency, protocols, measured tables and overlap.
"""

from typing import Literal

Fidelity = Literal["paper", "flat", "full"]
FIDELITIES: tuple[Fidelity, ...] = ("full", "flat", "paper")
