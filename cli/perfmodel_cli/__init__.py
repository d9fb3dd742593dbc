"""The command line: it reads options, calls one library function, and shows the record.

It may import every room of the library, which never imports it.
"""
