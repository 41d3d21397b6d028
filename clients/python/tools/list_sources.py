"""Lists the C++ sources of a folder, one per line."""

import pathlib
import sys

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.cpp")):
    print(path.resolve())
