"""Which parameters a set of measurements determines, from the derivatives of its logarithms."""

from collections.abc import Sequence

import numpy as np

from perfmodel.units import Array

LEAST = 0.25  # standard error of the logarithm from which a parameter counts as not determined
_NOTHING = 2.0**-30  # a dependence this small is rounding


def standard_errors(jacobian: Array, sigma: float) -> Array:
    """Of each parameter, from d log(step) / d log(parameter) by [row, column]; sigma is the rows' own scatter.

    sigma sqrt(diag((J^T J)^-1)), by the singular values of J = U S V^T: sigma sqrt(sum_k (V_jk / S_k)^2); infinite
    where no row depends on the parameter, or only on a sum that includes it.

    >>> standard_errors(np.array([[1.0, 0.0], [1.0, 0.1]]), 0.01).round(3).tolist()
    [0.01, 0.141]
    """
    _, sizes, turned = np.linalg.svd(jacobian, full_matrices=False)
    lost = sizes <= _NOTHING * max(1.0, sizes.max(initial=0.0))
    gain = np.where(lost, 0.0, 1 / np.where(lost, 1.0, sizes))
    found: Array = sigma * np.sqrt(((turned * gain[:, None]) ** 2).sum(axis=0))
    seen = ((turned * ~lost[:, None]) ** 2).sum(axis=0)  # below 1: no row depends on part of the parameter
    return np.where(seen < 1 - _NOTHING, np.inf, found)


def weakest(jacobian: Array, sigma: float, names: Sequence[str]) -> tuple[int, str] | None:
    """The column that is determined least, and why; None where all are determined well enough.

    >>> weakest(np.array([[1.0, 0.0], [1.0, 0.001]]), 0.05, ["rate", "latency"])  # 0.05: rows scatter by 5 %
    (1, 'hardly any step depends on it: twice as much changes none by more than 0.1 %')
    """
    errors = standard_errors(jacobian, sigma)
    if not len(errors) or errors.max() <= LEAST:
        return None
    alone = np.array([standard_errors(jacobian[:, [place]], sigma)[0] for place in range(len(names))])
    hidden = alone > LEAST
    place = int(np.argmax(np.where(hidden, alone, 0.0) if hidden.any() else errors))
    if hidden[place]:
        most = float(np.abs(jacobian[:, place]).max()) * np.log(2.0)
        if most <= _NOTHING:
            return place, "no measured step depends on it"
        if most < min(sigma, LEAST):
            return place, f"hardly any step depends on it: twice as much changes none by more than {100 * most:.2g} %"
        return (
            place,
            f"the rows scatter by {100 * sigma:.2g} %, which leaves it uncertain by {100 * alone[place]:.2g} %",
        )
    other = _nearest(jacobian, place)
    return place, f"the rows cannot tell it from {names[other]}: what one adds, the other can take away"


def _nearest(jacobian: Array, place: int) -> int:
    """The column most similar to this one."""
    lengths = np.linalg.norm(jacobian, axis=0)
    alike = np.abs(jacobian.T @ jacobian[:, place]) / np.maximum(lengths * lengths[place], _NOTHING)
    alike[place] = -1.0
    return int(np.argmax(alike))
