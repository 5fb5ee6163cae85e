"""ASAP by the book: plain loops over dense arrays of one graph, slow and easy to check against the paper."""

import math

import torch


def sigma(v, slope=0.2):
    return torch.where(v > 0, v, slope * v)


def dense(edge_index, edge_weight, N, dtype=torch.float64):
    """A[i, j] = total weight of the edges j → i."""
    A = torch.zeros(N, N, dtype=dtype)
    for e, (j, i) in enumerate(edge_index.t().tolist()):
        A[i, j] += 1 if edge_weight is None else edge_weight[e]
    return A


def there(edge_index, N):
    """Whether an edge j → i exists, whatever its weight."""
    M = torch.zeros(N, N, dtype=torch.bool)
    M[edge_index[1], edge_index[0]] = True
    return M


def with_loops(A, M, loops):
    eye = torch.eye(len(A), dtype=A.dtype)
    return A + eye if loops == "add" else A + torch.diag((A.diagonal() == 0).to(A.dtype))


def gcn(A_hat, x, layer):
    d = A_hat.sum(1)
    y = (A_hat / (d[:, None] * d[None, :]).sqrt()) @ x @ layer.lin.weight.t()
    return y if layer.bias is None else y + layer.bias


def clusters(M, hops):
    reach = step = M | torch.eye(len(M), dtype=torch.bool)
    for _ in range(hops - 1):
        reach = (reach.double() @ step.double()) > 0
    return reach


def attention(pool, x, members):
    a, F, rules = pool.attention, x.size(1), pool.rules
    w1, w2, kind = a.w[:F], a.w[F:], type(a).__name__  # the dynamic attention has one w
    rows = torch.zeros(len(x), len(x), dtype=x.dtype)
    for i in range(len(x)):
        c = members[i].nonzero().view(-1).tolist()
        m = torch.stack([x[j] for j in c])
        m = m.max(0).values if getattr(a, "master", "max") == "max" else m.mean(0)
        scores = []
        for j in c:
            if kind == "DynamicAttention":
                scores.append(a.w @ sigma(a.W(m) + a.U(x[j])))
                continue
            query = None if kind == "Source2Token" else a.W(m if kind == "Master2Token" else x[i])
            token = x[j] if kind == "Master2Token" else a.W(x[j])
            if rules.sigma == "inside":
                s = w2 @ sigma(token) + (0 if query is None else w1 @ sigma(query))
            else:
                s = sigma(w2 @ token + a.c + (0 if query is None else w1 @ query)).squeeze()
            scores.append(s.reshape(()))
        for j, alpha in zip(c, torch.stack(scores).softmax(0), strict=True):
            rows[i, j] = alpha
    return rows


def fitness(pool, x, A, M, A_hat):
    rules, f = pool.rules, pool.fitness
    off = 1 - torch.eye(len(A), dtype=A.dtype)
    if type(f).__name__ == "GCN":
        ones = (M | torch.eye(len(A), dtype=torch.bool)).to(A.dtype)
        return gcn(A_hat if rules.weighted_fitness else ones, x, f).view(-1).sigmoid()
    if rules.weighted_fitness:
        B = A * off
    else:
        B = M.to(A.dtype) * off + (torch.eye(len(A), dtype=A.dtype) if rules.fitness_loops else 0)
    if type(f).__name__ == "BasicLEConv":
        W1 = W2 = W3 = f.W
        b1, b2 = f.b, 0
    else:
        W1, W2, W3, b1, b2 = f.W1, f.W2, f.W3, f.b1, f.b2
    out = []
    for i in range(len(x)):
        s = x[i] @ W1 + b1
        for j in range(len(x)):
            s = s + B[i, j] * (x[i] @ W2 + b2 - x[j] @ W3)
        out.append(s)
    return torch.stack(out).view(-1).sigmoid()


def asap(pool, x, edge_index, edge_weight=None):
    """One graph through `pool`, which gives weights and options. Returns kept, pooled x, pooled A, S rows, fitness."""
    N, rules = len(x), pool.rules
    A, M = dense(edge_index, edge_weight, N, x.dtype), there(edge_index, N)
    A_hat = with_loops(A, M, rules.loops)
    x1 = x if pool.inner is None else gcn(A_hat, x, pool.inner)
    S = attention(pool, x1, clusters(M, pool.hops))
    x_c = x if pool.aggregate == "none" else S @ x
    phi = fitness(pool, x_c if pool.aggregate == "both" else x, A, M, A_hat)
    k = pool.ratio if isinstance(pool.ratio, int) else math.ceil(round(pool.ratio * N, 6))
    kept = sorted(range(N), key=lambda i: (-phi[i].item(), i))[: min(k, N)]
    rows, x_p = S[kept], phi[kept, None] * x_c[kept]
    if pool.assign == "members":
        rows = memberships(S, M, phi, kept, clusters(M, pool.hops))
        x_p = rows @ x
    A_p = rows @ A_hat @ rows.t() if pool.soft_edges else A[kept][:, kept]
    eye = torch.eye(len(kept), dtype=A.dtype)
    if rules.diagonal == "one":
        A_p = A_p * (1 - eye) + eye
    elif rules.diagonal == "drop" and not pool.add_self_loops:
        A_p = A_p * (1 - eye)
    return kept, x_p, A_p, S, phi


def memberships(S, M, phi, kept, members):
    """Rows p of the memberships M_jp that sum to 1 for every node j: a node in no kept cluster joins the nearest."""
    N, near = len(S), M | M.t() | torch.eye(len(S), dtype=torch.bool)
    rows, distance = torch.zeros(len(kept), N, dtype=S.dtype), torch.full((N, N), N + 1)
    reach = torch.eye(N, dtype=torch.bool)
    for hops in range(N):
        distance[reach & (distance > hops)] = hops
        reach = (reach.double() @ near.double()) > 0
    for j in range(N):
        inside = [p for p, i in enumerate(kept) if members[i, j]]
        if inside:
            strength = torch.stack([phi[kept[p]] * S[kept[p], j] for p in inside])
            rows[inside, j] = strength / strength.sum()
        else:
            rows[min(range(len(kept)), key=lambda p: (distance[j, kept[p]], -phi[kept[p]], kept[p])), j] = 1
    return rows


def edge_features(S, A, E):
    """Means of the features E (N, N, D) of the edges that join two clusters, S (K, N) by cluster; 0 where none does."""
    weight = S @ A @ S.t()
    sums = torch.stack([S @ (A * E[:, :, d]) @ S.t() for d in range(E.size(2))], dim=2)
    return torch.where(weight[:, :, None] > 0, sums / weight[:, :, None], 0)
