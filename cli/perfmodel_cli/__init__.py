"""The command line: it reads options, calls one library function, and shows the record."""
