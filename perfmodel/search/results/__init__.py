"""Answers as records of plain values, and the columns that JSON, CSV, tables and reports are made from.

Within the search it may import everything that lies beside it.
"""
