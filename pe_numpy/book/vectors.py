"""`python -m pe_numpy embed MODEL FILE`: a vector for each line, and the line that is nearest.

Equation: lines are compared by the cosine of their vectors, v . w / (|v| |w|).
Convention: empty lines are left out; a line's number is that of the file, counted from 1.
"""

from __future__ import annotations

import argparse
import io
import textwrap
from pathlib import Path

import numpy as np

from pe_numpy.book.fetch import found
from pe_numpy.files import write_whole
from pe_numpy.models.load import Encoder, load_model

NAME = "embed"
WIDTH = 60  # characters of a line that are shown


def add_options(parser: argparse.ArgumentParser) -> None:
    """Tell the command line what `embed` takes."""
    parser.add_argument("folder", metavar="MODEL", help="minilm, or a folder of that kind")
    parser.add_argument("file", metavar="FILE", help="text, a line for each vector")
    parser.add_argument("--to", metavar="TEXT", help="the lines that are nearest to this text")
    parser.add_argument("--count", type=int, default=5, help="how many of them; 5")
    parser.add_argument("--vectors", metavar="NPY", help="write the vectors, a row for each line")


def run(options: argparse.Namespace) -> None:
    """Print for each line the nearest other one, or the lines nearest to a text."""
    read = Path(options.file).read_text(encoding="utf-8").splitlines()
    lines = {n: line.strip() for n, line in enumerate(read, 1) if line.strip()}
    if len(lines) < (1 if options.to else 2):
        raise ValueError(f"{NAME}: FILE must have lines of text to compare; got {len(lines)}")
    model = load_model(found(options.folder))
    if not isinstance(model, Encoder):
        raise ValueError(
            f"{NAME}: the model must read alone, as MiniLM does; got {model.config['model_type']}"
        )
    texts = [*lines.values(), *([options.to] if options.to else [])]
    vectors = model.embed(texts)
    if options.vectors:
        data = io.BytesIO()
        np.save(data, vectors[: len(lines)])
        write_whole(options.vectors, data.getvalue())
    unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    numbers = [*lines]
    if options.to:
        cosines = unit[:-1] @ unit[-1]
        for row in np.argsort(-cosines, kind="stable")[: options.count]:
            print(f"{cosines[row]:5.2f}  line {numbers[row]}: {short(lines[numbers[row]])}")
        return
    cosines = unit @ unit.T - 2 * np.eye(len(unit))  # not itself
    for row, nearest in enumerate(cosines.argmax(axis=1)):
        print(f"line {numbers[row]}: {short(lines[numbers[row]])}")
        other = numbers[nearest]
        print(f"{cosines[row, nearest]:5.2f}  line {other}: {short(lines[other])}")


def short(line: str) -> str:
    """The beginning of a line."""
    return textwrap.shorten(line, WIDTH, placeholder=" ...")
