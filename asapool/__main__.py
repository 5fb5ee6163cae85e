"""`python -m asapool` is the command line."""

from asapool.cli.main import main

if __name__ == "__main__":
    main()
