"""The results of a run over the corpus as tables."""

from __future__ import annotations

from collections import Counter
from typing import Any

Found = dict[str, Any]
FORMATS = ("URDF", "MJCF", "SDF")


def has_problem(found: Found) -> bool:
    """Is there something about this file that a change of spanloop could mend?"""
    refused = found.get("ours") != "reads" and found.get("peer") == "reads"
    differs = found.get("compared", {}).get("verdict") == "differs"
    simulated = found.get("simulated", {})
    unnamed = bool(simulated) and simulated["outcome"] != "finished" and not simulated["named"]
    return bool(refused or differs or unnamed or is_raw(found) or "ended" in found)


def is_raw(found: Found) -> bool:
    """Did an exception come out that spanloop does not raise on purpose?"""
    return bool(found.get("raw") or found.get("compared", {}).get("raw") or found.get("simulated", {}).get("raw"))


def counted(results: list[Found]) -> dict[str, int]:
    """The counts of one format."""
    compared = Counter(r["compared"]["verdict"] for r in results if "compared" in r)
    ends = Counter(r["simulated"]["outcome"] for r in results if "simulated" in r)
    ended = [r["simulated"] for r in results if "simulated" in r and r["simulated"]["outcome"] != "finished"]
    named, other = sum(x["named"] for x in ended), len(ended)
    return {
        "distinct files": len(results),
        "files, copies counted": sum(r["copies"] for r in results),
        "the peer reads": sum(r.get("peer") == "reads" for r in results),
        "of these load here": sum(r.get("peer") == "reads" and r.get("ours") == "reads" for r in results),
        "… by plain sl.load(path)": sum(r.get("peer") == "reads" and r.get("with") == [] for r in results),
        "refused here alone": sum(r.get("peer") == "reads" and r.get("ours") == "refuses" for r in results),
        "refused by both": sum(r.get("peer") == "refuses" and r.get("ours") == "refuses" for r in results),
        "load here, refused by the peer": sum(r.get("peer") == "refuses" and r.get("ours") == "reads" for r in results),
        "load here": sum(r.get("ours") == "reads" for r in results),
        "agree": compared["agrees"],
        "of these, nothing moves": sum(r.get("compared", {}).get("why") == "nothing moves" for r in results),
        "agree without a feature that a warning names": compared["agrees without"],
        "of these two, accelerations refused as singular or nearly so": sum(
            bool(r["compared"].get("singular")) for r in results if "compared" in r
        ),
        "differ, as the peer changes an inertia of the file": compared["explained"],
        "differ": compared["differs"],
        "not compared": compared["not compared"],
        "simulated 0.5 s": ends["finished"],
        "ended by a sentence that names a part": named,
        "ended by a sentence that names none": other - named - ends["raw exception"],
        "raw exceptions": sum(map(is_raw, results)),
        "crashes": sum(str(r.get("ended", "")).startswith("crash") for r in results),
        "beyond the time limit": sum(r.get("ended") == "hang" for r in results),
    }


def summary(results: dict[str, Found], total: int) -> tuple[str, bool]:
    """The table in Markdown with a list of the problems, and whether there are none."""
    found = list(results.values())
    columns = [counted([r for r in found if r["format"] == sort]) for sort in FORMATS] + [counted(found)]
    lines = ["| | URDF | MJCF | SDF | all |", "|---|---|---|---|---|"]
    lines += [f"| {name} | " + " | ".join(str(column[name]) for column in columns) + " |" for name in columns[0]]
    if len(found) < total:
        lines.append(f"\n{total - len(found)} files were not reached.")
    problems = [r for r in found if has_problem(r)]
    lines += ["", *(f"- {r['path']}: {_problem(r)}" for r in sorted(problems, key=_problem))]
    return "\n".join(lines), not problems


def _problem(found: Found) -> str:
    """One line about what is wrong with a file."""
    if "ended" in found:
        return f"{found['ended']} at stage {found['stage']!r}"
    if found.get("ours") != "reads":
        return f"refused: {found.get('ours_says', '')}"
    compared, simulated = found.get("compared", {}), found.get("simulated", {})
    if compared.get("verdict") == "differs":
        return f"differs: {compared.get('why', '')} {compared.get('worst', '')}"
    return f"simulate, {simulated.get('outcome')}: {simulated.get('sentence')}"
