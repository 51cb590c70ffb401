"""The command line: python -m pe_numpy list, card NAMES, copy NAMES, check FILES, run FOLDER."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pe_numpy
from pe_numpy.cards import card
from pe_numpy.homework import contents, runner
from pe_numpy.homework.copy import copy
from pe_numpy.homework.registry import EXERCISES
from pe_numpy.models import run


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
    copying = commands.add_parser("copy", help="print functions as a file that stands alone")
    copying.add_argument("names", nargs="+", metavar="NAME")
    checking = commands.add_parser("check", help="check the functions of your files")
    checking.add_argument("what", nargs="+", metavar="FILE or NAME")
    checking.add_argument("--json", action="store_true", help="print the reports as JSON")
    checking.add_argument("--junit", metavar="XML", help="write the reports as JUnit's XML")
    checking.add_argument("--seconds", type=float, default=runner.SECONDS, help="for one file")
    checking.add_argument("--megabytes", type=int, default=runner.MEGABYTES, help="of memory")
    run.add_options(commands.add_parser("run", help="let a released model write"))
    options = parser.parse_args(arguments)
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
    if options.command == "run":
        run.run(options)
        return 0
    if options.command == "card":
        print("\n\n".join(map(card, options.names)))
        return 0
    print("\n".join(table()) if options.command == "list" else copy(options.names).rstrip())
    return 0


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
    files = [word for word in options.what if word.endswith(".py") or Path(word).exists()]
    names = [word for word in options.what if word not in files]
    if not files:
        raise ValueError(f"check: name a file to look at; got {' '.join(options.what)}")
    reports = [runner.check_file(file, names, options.seconds, options.megabytes) for file in files]
    if options.json:
        rows = [{**dataclasses.asdict(report), "passed": report.passed} for report in reports]
        print(json.dumps(rows, indent=1))
    else:
        print("\n".join(map(str, reports)))
    if options.junit:
        Path(options.junit).write_bytes(_junit(reports))
    return 0 if all(report.passed for report in reports) else 1


def _junit(reports: Sequence[runner.Report]) -> bytes:
    suites = ElementTree.Element("testsuites")
    for report in reports:
        verdicts = report.verdicts or [
            runner.Verdict("file", not report.problem, 0, report.problem)
        ]
        failures = sum(not verdict.passed for verdict in verdicts)
        suite = ElementTree.SubElement(
            suites, "testsuite", name=report.path, tests=str(len(verdicts)), failures=str(failures)
        )
        for verdict in verdicts:
            test = ElementTree.SubElement(
                suite, "testcase", classname=Path(report.path).stem, name=verdict.name
            )
            if not verdict.passed:
                failure = ElementTree.SubElement(
                    test, "failure", message=verdict.mistake or verdict.problem
                )
                failure.text = str(verdict)
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)


if __name__ == "__main__":
    sys.exit(main())
