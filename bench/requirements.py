"""Exit status 0 if this environment holds exactly the versions of requirements.txt."""

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def main() -> int:
    for line in Path(__file__).with_name("requirements.txt").read_text().split():
        name, wanted = line.split("==")
        try:
            found = version(name)
        except PackageNotFoundError:
            found = "none"
        if found != wanted:
            print(f"{name}: {found} installed, {wanted} wanted", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
