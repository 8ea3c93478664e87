# SPDX-License-Identifier: MIT
"""The table of programs. Each file here has the rows of one field, in a list ROWS."""

import importlib
import os
import pkgutil
from dataclasses import dataclass, field
from typing import Dict

# Limitations that several rows meet.
BY_DESIGN = "the program tries what must fail for reasons of its environment, which are enforced"
RACE = "calls that overlap on one file; nothing in the trace says which came first"


@dataclass
class Row:
    """One program, and how it is tried; run and prepare are scripts for `sh -e` in an empty directory."""

    name: str
    # What it needs: "COMMAND=PACKAGE ..."; =PACKAGE is left out where both have one name. py:MODULE is a module of Python.
    needs: str
    shows: str
    run: str
    prepare: str = ""  # not recorded
    quick: bool = False  # also in `make check`: 3 s for everything
    status: int = 0  # with which it exits
    timeout: int = 60  # seconds, alone
    # Why the row is not clean: a kind of trial.KINDS -> the known limitation.
    explained: Dict[str, str] = field(default_factory=dict)
    racy: bool = False  # what is explained depends on who wins a race in the recording, and may be clean

    def pairs(self):
        """(probe, package) for each need."""
        for need in self.needs.split():
            probe, _, package = need.partition("=")
            yield probe, package or probe


def read_rows():
    """All rows, by name; no name twice."""
    rows = []
    for module in sorted(pkgutil.iter_modules([os.path.dirname(__file__)])):
        rows += importlib.import_module("rows." + module.name).ROWS
    names = [row.name for row in rows]
    assert len(names) == len(set(names)), "a name is used twice"
    return rows
