"""Prints the table of docs/live.md: size of each page of the gallery, and time of a step of its module in Node.

python docs/tables/live_speed.py [NAME ...]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from spanloop.dynamics import Dynamics
from spanloop.view.gallery.exhibits import EXHIBITS
from spanloop.view.page.live.live_motion import LiveMotion
from spanloop.view.page.live.live_page import live_text

NODE = """
const { readFileSync } = require('fs');
const { gunzipSync } = require('zlib');
const live = JSON.parse(readFileSync(process.argv[2], 'utf8'));
WebAssembly.instantiate(gunzipSync(Buffer.from(live.wasm, 'base64'))).then(({ instance }) => {
  const { memory, step } = instance.exports;
  const numbers = new Float64Array(memory.buffer);
  for (const [name, values] of Object.entries(live.start)) numbers.set(values, live.places[name]);
  let [count, status, best] = [0, 0, Infinity];
  const run = (steps) => {
    for (let k = 0; k < steps && !status; k++, count++) {
      numbers[live.places.t] = live.time + count * live.step;
      numbers[live.places.h] = live.step;
      status = step();
    }
  };
  run(500);
  for (let turn = 0; turn < 15 && !status; turn++) {
    const [begun, before] = [process.hrtime.bigint(), count];
    run(300);
    best = Math.min(best, Number(process.hrtime.bigint() - begun) / 1000 / Math.max(count - before, 1));
  }
  console.log(JSON.stringify({ best, count, status }));
});
"""


def main(names: list[str]) -> None:
    print("| mechanism | DoF | loops | contacts | page [kB] | step [ms] | time of a step [µs] | times real time |")
    print("|---|---|---|---|---|---|---|---|")
    for exhibit in EXHIBITS:
        if names and exhibit.name not in names:
            continue
        begin = exhibit.start()
        model, options = begin.model, begin.options
        size = len(live_text(model, begin.q, begin.v, title=exhibit.title, **options).encode())
        data = LiveMotion.of(Dynamics(model), begin.q, begin.v, **options).data()
        found = measured(data)
        ahead = 1e6 * data["step"] / found["best"]
        words = "" if not found["status"] else f" (stopped after {found['count']} steps)"
        counts = f"{model.nv} | {len(model.loops)} | {len(model.contacts)} | {size / 1e3:.0f}"
        print(
            f"| {exhibit.name} | {counts} | {1e3 * data['step']:g} | {found['best']:.2g}{words} | {ahead:.0f} |",
            flush=True,
        )


def measured(data: dict) -> dict:
    """Microseconds of a step in Node, the best of 15 times 300 steps, and the status of the last one."""
    with tempfile.TemporaryDirectory() as folder:
        script, file = Path(folder) / "measure.cjs", Path(folder) / "live.json"
        script.write_text(NODE)
        file.write_text(json.dumps(data))
        done = subprocess.run(["node", str(script), str(file)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
