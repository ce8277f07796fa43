"""`python -m hansa` is the command `hansa`, for those who have the interpreter at hand but not the PATH."""

from hansa.entrypoints.cli import main

if __name__ == "__main__":
    main()
