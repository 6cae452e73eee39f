"""Composite ops that are built from argsort and scatter_add."""
import torch
import torch.nn.functional as F

from common import DTYPES, INF, NAN
from composites import grads, randn, wide_grads


def orders(g):
    x = torch.tensor([[3.0, NAN, -1.0, INF, 0.0, -INF], [2.0, 5.0, -0.5, 4.0, NAN, 1.0]])
    for descending in (False, True):
        for axis in (-1, 0):
            values, indices = torch.sort(x, dim=axis, descending=descending, stable=True)
            g.case(f"sort(%x0, axis={axis}, descending={str(descending).lower()})", [x], [values, indices])
    ties = torch.tensor([[2, 1, 2, 1], [0, 0, 0, 0]])
    for dtype in ("i64", "f64", "bf16"):
        t = ties.to(DTYPES[dtype])
        g.case("sort(%x0)", [t], list(torch.sort(t, stable=True)))
        g.case("sort(%x0, descending=true)", [t], list(torch.sort(t, descending=True, stable=True)))
    y = torch.randn(3, 7)
    for k, axis, largest in ((3, -1, True), (2, 0, False), (7, 1, True), (0, 1, True)):
        values, indices = torch.topk(y, k, axis, largest, True)
        g.case(f"topk(%x0, k={k}, axis={axis}, largest={str(largest).lower()})", [y], [values, indices])
    g.case("topk(%x0, k=2)", [x], list(torch.topk(x, 2)))
    g.case("topk(%x0, k=2, largest=false)", [x], list(torch.topk(x, 2, largest=False)))


def embedding_grads(g):
    for dtype in ("f32", "f64", "bf16"):
        index = torch.tensor([[0, 3, 1], [3, 3, 0]])
        dy = randn(2, 3, 2).to(DTYPES[dtype])
        weight = randn(5, 2).to(DTYPES[dtype])
        back = wide_grads if dtype == "bf16" else grads
        g.case("embedding_backward(%x0, %x1, num_embeddings=5)", [dy, index],
               back(lambda w: F.embedding(index, w), [weight], dy), ulps=8, sums=True)
        for row in (3, -2):
            g.case(f"embedding_backward(%x0, %x1, num_embeddings=5, padding_idx={row})", [dy, index],
                   back(lambda w: F.embedding(index, w, padding_idx=row), [weight], dy), ulps=8, sums=True)


def fill(g):
    torch.manual_seed(4)
    orders(g)
    embedding_grads(g)
