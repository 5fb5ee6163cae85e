"""SMILES to predictions with an ONNX file of `asapool export`: python onnx_predict.py model.onnx CCO c1ccccc1

Needs numpy, rdkit and onnxruntime, and neither asapool nor torch.
"""

import json
import sys

import numpy as np
import onnxruntime
from rdkit import Chem, rdBase

ELEMENTS, ORBITALS, ORDERS = [1, 5, 6, 7, 8, 9, 14, 15, 16, 17, 34, 35, 53], ["S", "SP", "SP2", "SP3"], [1, 2, 3, 1.5]


def one_hot(value, known, other=True):
    return [*(value == k for k in known), *([value not in known] if other else [])]


def inputs(smiles):
    with rdBase.BlockLogs():
        mol = Chem.MolFromSmiles(smiles)
    if mol is None or not mol.GetNumAtoms():
        raise SystemExit(f"{smiles!r} is not SMILES that RDKit can read")
    A = Chem.GetAdjacencyMatrix(mol).astype(np.float32)
    x = [one_hot(a.GetAtomicNum(), ELEMENTS) + one_hot(a.GetDegree(), range(5))
         + one_hot(np.clip(a.GetFormalCharge(), -2, 2), range(-2, 3), other=False)
         + one_hot(a.GetTotalNumHs(), range(3)) + one_hot(str(a.GetHybridization()), ORBITALS)
         + [a.GetIsAromatic(), a.IsInRing()] for a in mol.GetAtoms()]  # fmt: skip
    E = np.zeros((len(A), len(A), 6), np.float32)
    for b in mol.GetBonds():
        i, j, order = b.GetBeginAtomIdx(), b.GetEndAtomIdx(), b.GetBondTypeAsDouble()
        E[i, j] = E[j, i] = [*one_hot(order, ORDERS), b.IsInRing()]
    return {"x": np.array([x], np.float32), "adjacency": A[None], "sizes": np.array([len(A)]), "edge_attr": E[None]}


def answer(logits, about):
    target = about["target"]
    if target["kind"] == "regression":  # measured values in the unit of the column
        return logits * np.array(target["scale"]) + np.array(target["mean"])
    if target["kind"] == "multilabel":  # the probability of yes in every task
        return 1 / (1 + np.exp(-logits))
    p = np.exp(logits - logits.max())
    return p / p.sum()


if __name__ == "__main__":
    session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
    about = json.loads(session.get_modelmeta().custom_metadata_map["asapool"])
    for smiles in sys.argv[2:]:
        given = inputs(smiles)
        (logits,) = session.run(["logits"], {i.name: given[i.name] for i in session.get_inputs()})[0]
        print(
            smiles, {name: round(float(v), 6) for name, v in zip(about["classes"], answer(logits, about), strict=True)}
        )
