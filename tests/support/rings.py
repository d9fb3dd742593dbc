"""An independent, slow simulator: ranks in a ring that really pass numbers on, every element sent is counted.

Nothing of perfmodel is used here. A buffer is a flat numpy array; the result is what each rank ends with.
"""

import numpy as np


class Ring:
    """Ranks 0 to p-1 of one group; `sent[i]` counts the elements that rank i has passed on to rank i + 1."""

    def __init__(self, size):
        self.size = size
        self.sent = [0] * size

    def _step(self, held, chunk_of, take):
        """Every rank passes the chunk `chunk_of(rank)` to its neighbour, all at the same moment."""
        messages = [held[rank][chunk_of(rank)].copy() for rank in range(self.size)]
        for rank, message in enumerate(messages):
            self.sent[rank] += message.size
            take(held[(rank + 1) % self.size], chunk_of(rank), message)

    def all_gather(self, parts):
        """Each rank's part travels once round the ring; parts are joined in the order of the ranks."""
        held = [{rank: part} for rank, part in enumerate(parts)]
        for step in range(self.size - 1):
            self._step(held, lambda rank, step=step: (rank - step) % self.size, dict.__setitem__)
        return [np.concatenate([chunks[rank] for rank in range(self.size)]) for chunks in held]

    def reduce_scatter(self, buffers):
        """Every chunk is added to while it travels; rank i ends with chunk i of the sum."""
        held = [dict(enumerate(np.split(buffer.astype(float), self.size))) for buffer in buffers]
        for step in range(self.size - 1):
            self._step(held, lambda rank, step=step: (rank - step - 1) % self.size, _add)
        return [held[rank][rank] for rank in range(self.size)]

    def all_reduce(self, buffers):
        """Scattered sums, then gathered; a buffer that does not divide is padded and the padding is sent too."""
        length = buffers[0].size
        padded = [np.pad(buffer, (0, -length % self.size)) for buffer in buffers]
        return [whole[:length] for whole in self.all_gather(self.reduce_scatter(padded))]


def _add(chunks, key, message):
    chunks[key] = chunks[key] + message


def over(groups, operation, buffers):
    """Run `operation` in every group (rows of ranks) on {rank: flat buffer}; returns results and elements sent."""
    results, sent = {}, {}
    for group in groups.tolist():
        ring = Ring(len(group))
        for rank, result, count in zip(
            group, getattr(ring, operation)([buffers[rank] for rank in group]), ring.sent, strict=True
        ):
            results[rank], sent[rank] = result, count
    return results, sent
