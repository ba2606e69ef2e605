"""Import nbformat and nbgrader without what takes longest in them and is never used here."""

import sys

# jsonschema checks the syntax of URIs if it finds this; 39 grammars are built for that, which takes
# 0.7 s in every process. A notebook has no field of that format.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
