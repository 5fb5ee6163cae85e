"""Pages that open anywhere: one file each, no network, for a hierarchy and for the results of a run."""

from asapool.reports.explain_page import explain_page
from asapool.reports.writing import report_page, write_report

__all__ = ["explain_page", "report_page", "write_report"]
