# SPDX-License-Identifier: MIT
"""Compilers, linkers and what drives them."""

from rows import Row

SOURCES = r"""
for i in 1 2 3 4 5 6; do echo "int f$i(void); int f$i(void) { return $i; }" >f$i.c; done
cat >m.c <<'END'
#include <stdio.h>
int f1(void);
int main(void) { printf("%d\n", f1()); return 0; }
END
printf "m: m.o f1.o f2.o f3.o f4.o f5.o f6.o\n\t\$(CC) -o \$@ \$^\n" >Makefile
"""

ROWS = [
    Row(
        "make", "make gcc", quick=True,
        shows="a parallel build: compiler, assembler and linker processes, a job server's pipe",
        prepare=SOURCES,
        run="make -s -j3 CC=gcc; ./m >out; touch f2.c; make -s -j3 CC=gcc",
    ),
]
