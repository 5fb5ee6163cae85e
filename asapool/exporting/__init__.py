"""A trained model as a file that runs elsewhere: ONNX for any runtime, .pt2 for torch alone."""

from asapool.exporting.exported import Exported, export

__all__ = ["Exported", "export"]
