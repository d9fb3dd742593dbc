"""A decoder in plain torch on one process: every tensor whole, autograd for everything, no code of the launcher's.

Only the numbers that training starts from are the launcher's (`draws`), as they must be the same. Parameters are a
dictionary by name; of the joined queries, keys and values each group of heads comes as its queries, key, value, and of
a gated MLP gate and up alternate.
"""

import math

import torch
from torch.nn.functional import cross_entropy, gelu, layer_norm, silu

from perfmodel.launch.training import draws


def shapes(shape):
    """Rows, columns and deviation of every parameter; a deviation of None is a vector."""
    found = {"embedding.weight": (shape.vocabulary, shape.hidden, 0.02)}
    if shape.learned_positions:
        found["embedding.positions"] = shape.learned_positions, shape.hidden, 0.02
    if not shape.tied:
        found["head.weight"] = shape.vocabulary, shape.hidden, 0.02
    if shape.head_bias:
        found["head.bias"] = shape.vocabulary, 1, None
    for index in range(shape.layers):
        found |= _linears(shape, f"decoder.{index}")
        if shape.query_key_norm:
            scales = (f"decoder.{index}.attention.{which} norm.scale" for which in ("query", "key"))
            found |= dict.fromkeys(scales, (shape.head_width, 1, None))
    for norm in _norms(shape):
        parts = ("scale",) if shape.rms_norm else ("scale", "shift")
        found |= {f"{norm}.{part}": (shape.hidden, 1, None) for part in parts}
    return found


def _linears(shape, at):
    """Weights and biases of one block; what is added to the residual starts smaller."""
    kv_heads, added = shape.kv_heads or shape.heads, 0.02 / math.sqrt(2 * shape.layers)
    width, queries = shape.feed_forward_width, shape.heads * shape.head_width
    linears = [
        ("qkv", (shape.heads + 2 * kv_heads) * shape.head_width, shape.hidden, 0.02, shape.qkv_bias),
        ("attention output", shape.hidden, queries, added, shape.output_bias),
        ("mlp up", width * (2 if shape.gated else 1), shape.hidden, 0.02, shape.bias),
        ("mlp down", shape.hidden, width, added, shape.bias),
    ]
    found = {f"{at}.{name}.weight": (outputs, inputs, deviation) for name, outputs, inputs, deviation, _ in linears}
    for name, outputs, _, _, bias in linears:
        if shape.bias if bias is None else bias:
            found[f"{at}.{name}.bias"] = outputs, 1, None
    return found


def _norms(shape):
    """Names of the norms over the hidden width."""
    of_block = ["attention norm"]
    of_block += ["mlp norm"] if shape.norms != 1 else []
    of_block += ["attention output norm", "mlp output norm"] if shape.norms == 4 else []
    first = ["embedding norm"] if shape.embedding_norm else []
    return [*first, *(f"decoder.{index}.{norm}" for index in range(shape.layers) for norm in of_block), "final norm"]


def start(shape, dtype, *, seed=0, larger=1.0):
    """Parameters to begin with. Weights are `draws` times `larger`; vectors are drawn lest 0 and 1 hide faults."""
    found = {}
    for name, (rows, columns, deviation) in shapes(shape).items():
        flat = torch.zeros(rows * columns, dtype=torch.float64)
        index = draws.Index(columns=columns, width=columns)
        if deviation is None:
            draws.fill_normal(flat, index, draws.key(seed, f"vector {name}"), 0.2)
            flat += 1.0 if name.endswith("scale") else 0.0
        else:
            draws.fill_normal(flat, index, draws.key(seed, name), deviation)
            flat *= larger
        found[name] = flat.view(rows, columns).to(dtype)
    return found


def hidden_states(shape, parameters, tokens):
    """What the final norm gives, (sequences, positions, hidden)."""
    hidden = parameters["embedding.weight"][tokens]
    if shape.learned_positions:
        hidden = hidden + parameters["embedding.positions"][: tokens.shape[1]]
    if shape.embedding_norm:
        hidden = _norm(parameters, "embedding norm", hidden)
    for index in range(shape.layers):
        hidden = _block(shape, parameters, f"decoder.{index}", hidden)
    return _norm(parameters, "final norm", hidden)


def loss(shape, parameters, tokens, targets):
    """(mean loss of a token, what the final norm gives)."""
    hidden = hidden_states(shape, parameters, tokens)
    table = parameters["embedding.weight" if shape.tied else "head.weight"]
    logits = hidden @ table.T
    if shape.head_bias:
        logits = logits + parameters["head.bias"].T
    return cross_entropy(logits.flatten(0, 1), targets.flatten()), hidden


def gradients(shape, parameters, tokens, targets):
    """(loss, what the final norm gives, the gradient of each parameter by name)."""
    leaves = {name: one.clone().requires_grad_() for name, one in parameters.items()}
    found, hidden = loss(shape, leaves, tokens, targets)
    found.backward()
    return found.detach(), hidden.detach(), {name: one.grad for name, one in leaves.items()}


def _block(shape, parameters, at, hidden):
    normalised = _norm(parameters, f"{at}.attention norm", hidden)
    attended = _linear(parameters, f"{at}.attention output", _attention(shape, parameters, at, normalised))
    if shape.norms == 4:
        attended = _norm(parameters, f"{at}.attention output norm", attended)
    if shape.norms != 1:
        hidden, attended = hidden + attended, 0.0
        normalised = _norm(parameters, f"{at}.mlp norm", hidden)
    up = _linear(parameters, f"{at}.mlp up", normalised)
    active = silu(up[..., 0::2]) * up[..., 1::2] if shape.gated else gelu(up)
    down = _linear(parameters, f"{at}.mlp down", active)
    if shape.norms == 4:
        down = _norm(parameters, f"{at}.mlp output norm", down)
    return hidden + attended + down


def _attention(shape, parameters, at, normalised):
    """Head by head, scores written down."""
    joined = _linear(parameters, f"{at}.qkv", normalised)
    heads, kv_heads, width = shape.heads, shape.kv_heads or shape.heads, shape.head_width
    shared, positions = heads // kv_heads, joined.shape[1]
    future = torch.ones(positions, positions, dtype=torch.bool).triu(1)
    outputs = []
    for group in joined.split((shared + 2) * width, -1):
        *queries, key, value = group.split(width, -1)
        key = _place(shape, _head_norm(shape, parameters, f"{at}.attention.key norm", key))
        for one in queries:
            query = _place(shape, _head_norm(shape, parameters, f"{at}.attention.query norm", one))
            scores = (query @ key.transpose(1, 2) / math.sqrt(width)).masked_fill(future, -math.inf)
            outputs.append(scores.softmax(-1) @ value)
    return torch.cat(outputs, -1)


def _head_norm(shape, parameters, name, head):
    return _norm(parameters, name, head) if shape.query_key_norm else head


def _place(shape, head):
    """Rotary positions by complex numbers, where none are learned."""
    if shape.learned_positions:
        return head
    half = head.shape[-1] // 2
    speeds = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = torch.arange(head.shape[1], dtype=torch.float64)[:, None] * speeds
    turned = torch.complex(head[..., :half], head[..., half:]) * torch.polar(torch.ones_like(angles), angles).to(
        torch.complex128 if head.dtype == torch.float64 else torch.complex64
    )
    return torch.cat((turned.real, turned.imag), -1)


def _linear(parameters, name, inputs):
    outputs = inputs @ parameters[f"{name}.weight"].T
    bias = parameters.get(f"{name}.bias")
    return outputs if bias is None else outputs + bias[:, 0]


def _norm(parameters, name, hidden):
    scale, shift = parameters[f"{name}.scale"][:, 0], parameters.get(f"{name}.shift")
    if shift is not None:
        return layer_norm(hidden, hidden.shape[-1:], scale, shift[:, 0], 1e-5)
    return hidden / (hidden.square().mean(-1, keepdim=True) + 1e-5).sqrt() * scale
