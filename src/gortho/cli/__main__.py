"""`python -m gortho.cli`: the same as `gortho`."""

from gortho.cli import main

if __name__ == "__main__":
    main()
