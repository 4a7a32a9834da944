"""The command line; see main.py."""
