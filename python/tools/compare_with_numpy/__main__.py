"""Compares random small programs on our arrays with the same programs on NumPy's.

    python python/tools/compare_with_numpy --count 100000 --seed 1

Every comparison is a few lines of code over random arrays: indices, masks, assignments, views, functions with ``where=`` and
``out=``, reductions, sorting, sets, statistics, linear algebra, transforms, chains of these, parts of selections, and gathers and
scatters between ragged blocks. Shapes, types, elements and classes
of exceptions must agree. It prints every kind of difference as code that shows it, then a table of functions with how often each was
compared, and ends with status 1 if anything differed. The same seed gives the same programs; ``--at`` runs one of them by its
number, ``--only`` those of functions whose name contains a text.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

if not __package__:
    # Python was given the folder, and looks for modules inside it: here they are parts of a package, and hide no module of Python's.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from compare_with_numpy.case import Case  # noqa: E402
from compare_with_numpy.comparing import describe, difference, is_exact, raised_alike, run  # noqa: E402
from compare_with_numpy.differences import DELIBERATE  # noqa: E402
from compare_with_numpy.kinds import make  # noqa: E402


def compare(case: Case) -> str | None:
    """How the results of a program differ, or None. Leaves what was deliberate in ``case.excuse``."""
    case.excuse = None
    code = compile("\n".join(case.lines), "<program>", "exec")
    expected, theirs = run(case, code, ours=False)
    found, ours = run(case, code, ours=True)
    if theirs is not None:
        alike = ours is not None and raised_alike(ours, theirs)
        text = None if alike else f"NumPy raises {describe(theirs)}; here {describe(ours)}"
    elif ours is not None:
        text = f"raises {describe(ours)}"
    else:
        text = difference(found, expected, case.loose, is_exact(case))
    if text is None:
        return None
    case.found, case.expected, case.text = ours or found, theirs or expected, text
    case.excuse = next((reason for reason, check in DELIBERATE if check(case, case.found, case.expected)), None)
    return None if case.excuse else text


def simplified(case: Case, text: str) -> str:
    """Makes a program that differs plainer as long as it still does: arrays in one block, functions called directly."""
    for change in ("chunks", "by_protocol"):
        before = getattr(case, change)
        setattr(case, change, dict.fromkeys(case.chunks) if change == "chunks" else False)
        plainer = compare(case)
        if plainer is None:
            setattr(case, change, before)
        else:
            text = plainer
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="how many programs are compared")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at", type=int, help="only the program of this number")
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--only", default="", help="only programs whose name contains this text")
    parser.add_argument("--each", type=int, default=2, help="how many examples of a kind of difference are printed")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    numbers = [options.at] if options.at is not None else range(options.first, options.first + options.count)
    compared, failed, shown, excused = Counter(), Counter(), Counter(), Counter()
    start = time.monotonic()
    for number in numbers:
        case = make(options.seed, number)
        if options.only not in case.name:
            continue
        compared[case.name] += 1
        text = compare(case)
        if case.excuse:
            excused[case.excuse] += 1
        if text is None:
            continue
        failed[case.name] += 1
        sort = (case.name, text.split(":")[0][:60])
        shown[sort] += 1
        if shown[sort] <= options.each:
            text = simplified(case, text)
            print(f"--- {case.name} (--seed {options.seed} --at {number}): {text}\n{case.code()}")
            print(f"# expected: {str(case.expected)[:400]}\n# found:    {str(case.found)[:400]}\n", flush=True)
    summary(compared, failed, excused, time.monotonic() - start)
    return bool(failed)


def summary(compared: Counter, failed: Counter, excused: Counter, seconds: float) -> None:
    print("| function | compared | differ |\n|---|---|---|")
    for name, count in sorted(compared.items()):
        print(f"| `{name}` | {count} | {failed[name]} |")
    for reason, count in excused.most_common():
        print(f"deliberate, {count} times: {reason}")
    print(
        f"{compared.total()} comparisons in {seconds:.0f} s, {len(compared)} kinds; "
        f"{excused.total()} differ on purpose, {failed.total()} otherwise"
    )


if __name__ == "__main__":
    sys.exit(main())
