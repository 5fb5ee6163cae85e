"""Measured claims, and the pages made from them."""

import asapool  # before torch, as a user would: see asapool/__init__.py

__all__ = ["asapool"]
