"""Pooling by the formulas, with dense matrices of one small graph, to check the theory's operators."""

from itertools import combinations

import networkx as nx
import numpy as np

from asapool.theory.graphs import distances, neighbours


def matrix(graph):
    nb = neighbours(graph)
    A = np.zeros((len(nb), len(nb)))
    for i, around in enumerate(nb):
        A[i, around] = 1
    return A


def pooled(graph, kept, method, h):
    """TopK: rows and columns of the h-th power of A + I; ASAP: Sᵀ (A + I) S with even membership in h-hop clusters."""
    kept = list(kept)
    hat = matrix(graph) + np.eye(len(matrix(graph)))
    near = (np.linalg.matrix_power(hat, h) > 0).astype(float)
    if method == "topk":
        P = near[np.ix_(kept, kept)]
        return P - np.diag(np.diag(P))
    S = (near / near.sum(axis=1, keepdims=True))[kept].T  # column p: who belongs to the cluster of kept[p]
    return S.T @ hat @ S


def brute_optimum(graph, h):
    """n*_h by trying every set of nodes, largest first."""
    D = distances(graph)
    N = len(D)
    apart = (h <= D) | (D == N)  # N means that there is no path
    for K in range(N, 0, -1):
        for chosen in combinations(range(N), K):
            if all(apart[a, b] for a, b in combinations(chosen, 2)):
                return K
    return 0


def random_tree(N, rng):
    if N < 3:
        return neighbours(nx.path_graph(N))
    return neighbours(nx.from_prufer_sequence([rng.randrange(N) for _ in range(N - 2)]))


def random_graph(N, p, rng):
    return neighbours(nx.gnp_random_graph(N, p, seed=rng.randrange(10**9)))
