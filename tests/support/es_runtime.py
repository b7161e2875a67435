"""Scripts that use an ES module, run by node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")


def evaluated(module: Path, expression: str, **data: Any) -> Any:
    """The value of a JavaScript expression of `api` (all that the module exports), `m` (a mechanism) and the data.

    `caught(f)` is the error that f throws, as [name, message].
    """
    assert NODE is not None
    script = f"""
import * as api from {json.dumps(module.resolve().as_uri())};
const caught = (f) => {{ try {{ f(); }} catch (e) {{ return [e.name, e.message]; }} return null; }};
const data = {json.dumps(data)};
const m = await api.load();
const found = await (async ({{ {", ".join(data)} }}) => {expression})(data);
process.stdout.write(JSON.stringify(found, (k, x) => (ArrayBuffer.isView(x) ? Array.from(x) : x)) ?? "null");
"""
    done = subprocess.run([NODE, "--input-type=module", "-e", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
