"""The command line: python -m pe_numpy list, card NAMES, copy NAMES, check FILES; for trained
models, fetch NAMES, run MODEL TEXT, embed MODEL FILE, positions MODEL FILE; for a course, plan
LESSONS FOLDER, release TOML FOLDER.
"""

from __future__ import annotations

import argparse
import dataclasses
import glob
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pe_numpy
from pe_numpy import contents
from pe_numpy.book import fetch, losses, run, vectors
from pe_numpy.book.cards import card
from pe_numpy.copy.copy import copy
from pe_numpy.homework import course, grading, release, runner
from pe_numpy.homework.registry import EXERCISES

KINDS = (".py", ".ipynb")
SHOWN = 5  # files that a message names


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0 if all is well, 1 if a check failed, 2 for a wrong call."""
    parser = argparse.ArgumentParser(prog="python -m pe_numpy", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="every function by place, with equation and chapter")
    showing = commands.add_parser(
        "card",
        help="what an engineer asks of a scheme, on a page",
        epilog="What each line means: notebooks/CARDS.md",
    )
    showing.add_argument("names", nargs="+", metavar="NAME")
    copying = commands.add_parser("copy", help="print functions, or the page `original`, as a file")
    copying.add_argument("names", nargs="+", metavar="NAME")
    form = copying.add_mutually_exclusive_group()
    form.add_argument("--plain", action="store_true", help="short, without checks of input")
    form.add_argument(
        "--stub", action="store_true", help="write the exercises of chapters, as 40, to this folder"
    )
    checking = commands.add_parser(
        "check",
        help="check the functions of your files",
        epilog="What each line of a report means: notebooks/73_exercises.ipynb",
    )
    checking.add_argument(
        "what",
        nargs="*",
        metavar="FILE or NAME",
        help="files (.py, .ipynb), folders or patterns; exercises, if not all that they define",
    )
    checking.add_argument("--json", action="store_true", help="print the reports as JSON")
    checking.add_argument("--seed", type=int, help="from which the cases are drawn; 0")
    checking.add_argument("--salt", metavar="WORD", help="other cases for each file, by its name")
    runner.add_options(checking)
    grading.add_options(checking)
    planning = commands.add_parser("plan", help="write the assignments of 4, 8 or 12 lessons")
    planning.add_argument("lessons", type=int, metavar="LESSONS")
    planning.add_argument("folder", metavar="FOLDER")
    releasing = commands.add_parser("release", help="write what students get of an assignment")
    release.add_options(releasing)
    run.add_options(commands.add_parser("run", help="let a released model write"))
    vectors.add_options(commands.add_parser("embed", help="vectors of lines, and the nearest"))
    losses.add_options(commands.add_parser("positions", help="losses under wrong positions"))
    fetch.add_options(commands.add_parser("fetch", help="fetch trained models, hundreds of MB"))
    options = parser.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):  # a terminal may lack letters
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = _run(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # `list | head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:
        print(f"python -m pe_numpy: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    if options.command == "check":
        return _check(options)
    if options.command == "release":
        release.run(options)
        return 0
    if options.command == "plan":
        files = release.in_folder(options.folder, release.plan(options.lessons))
        release.write(files)
        print("\n".join(map(str, files)))
        return 0
    others = {"run": run, "fetch": fetch, "embed": vectors, "positions": losses}
    if options.command in others:
        others[options.command].run(options)
        return 0
    if options.command == "card":
        print("\n\n".join(map(card, options.names)))
        return 0
    if options.command == "copy" and options.stub:
        files = {Path(path.name): path.read_text("utf-8") for path in map(_stub, options.names)}
        if there := [str(path) for path in files if path.exists()]:
            here = f"{' and '.join(there)} in this folder, {os.getcwd()}"
            raise ValueError(f"copy: --stub overwrites no file; move {here}, away, or go elsewhere")
        release.write(files)
        print("\n".join(map(str, files)))
        return 0
    if options.command == "copy":
        print(copy(options.names, options.plain).rstrip())
        return 0
    print("\n".join(table()))
    return 0


def _stub(chapter: str) -> Path:
    """The file of exercises of a chapter: 40, 40_rope_derived or 40_rope_derived.py."""
    for path in sorted(release.STUBS.glob("[0-9][0-9]_*.py")):
        if chapter in (path.name, path.stem, path.stem[:2]):
            return path
    raise ValueError(f"copy: --stub takes the number of a chapter with exercises; got {chapter}")


def table() -> list[str]:
    """Lines of `list`: the functions by place, then the exercises that are no function of ours."""
    lines = []
    width = max(map(len, (*pe_numpy.__all__, *EXERCISES)))
    for place, names in contents.places():
        lines += ["", place]
        for name in names:
            mark = "*" if name in EXERCISES else " "
            chapter = contents.chapter_of(name)
            lines.append(f" {mark} {name:{width}}  ch. {chapter:2}  {contents.summary_of(name)}")
    own = [e for e in EXERCISES.values() if e.name not in pe_numpy.__all__]
    if own:
        lines += ["", "exercises beside them"]
        lines += [f" * {e.name:{width}}  ch. {e.chapter:2}" for e in own]
    return [*lines[1:], "", "* can be checked: python -m pe_numpy check FILE [NAME...]"]


def _check(options: argparse.Namespace) -> int:
    assignment = grading.assignment_of(options)
    found = {word: _files(word, assignment, options.student) for word in options.what}
    files = [file for own in found.values() for file in own]
    names = [word for word, own in found.items() if not own]
    if not files:
        raise ValueError(_which_file(options.what))
    if not any(map(os.path.exists, files)):
        raise ValueError(f"check: there is no {' and no '.join(files)} here, in {os.getcwd()}")
    if assignment:
        if names:
            raise ValueError(f"check: the assignment names the exercises; got {' '.join(names)}")
        if options.seed is not None or options.salt is not None:
            raise ValueError("check: the assignment says which seed or salt; leave --seed, --salt")
        return grading.run(options, assignment, files)
    reports = runner.check_files(files, names, seed=_seed(options), **runner.settings(options))
    if options.json:
        rows = [{**dataclasses.asdict(report), "passed": report.passed} for report in reports]
        print(json.dumps(rows, indent=1))
    else:
        print("\n".join(map(str, reports)))
    return 0 if all(report.passed for report in reports) else 1


def _which_file(words: Sequence[str]) -> str:
    """Ask for a file, and name those of the current folder."""
    here = sorted(file for kind in KINDS for file in glob.glob(f"*{kind}"))
    more = f" and {len(here) - SHOWN} more" if len(here) > SHOWN else ""
    found = f"{', '.join(here[:SHOWN])}{more}" if here else "none that ends in .py or .ipynb"
    asked = f"; got {' '.join(words)}" if words else ", as `check answers.py`"
    return f"check: name a file to look at{asked}; this folder, {os.getcwd()}, has {found}"


def _files(word: str, assignment: course.Assignment | None, student: str | None) -> list[str]:
    """Files that a word of the command line names: those of a folder, or of a pattern."""
    if word in EXERCISES and not Path(word).is_file():
        return []
    if Path(word).is_dir():
        if assignment:
            return [word] if student else grading.class_in(Path(word), assignment.name)
        inside = [*map(str, grading.answers_in(Path(word)))]
        return inside or [word]  # one of a class: the others are checked all the same
    if Path(word).exists():
        return [word]
    several = sorted(glob.glob(word))  # not every shell does this
    return several or [word for _ in [0] if word.endswith(KINDS)]


def _seed(options: argparse.Namespace) -> int | Callable[[str], int]:
    if options.salt is None:
        return options.seed or 0
    if options.seed is not None:
        raise ValueError("check: give --seed or --salt, not both")
    return lambda path: course.seed_of(options.salt, course.student_of(path))


if __name__ == "__main__":
    sys.exit(main())
