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
    Row(
        "cmake", "cmake make gcc",
        shows="configuration by many small compilations, then a parallel build",
        prepare=SOURCES + "rm Makefile; printf 'cmake_minimum_required(VERSION 3.0)\nproject(x C)\nadd_library(f STATIC f1.c f2.c f3.c)\nadd_executable(m m.c)\ntarget_link_libraries(m f)\n' >CMakeLists.txt",
        run="cmake -S . -B b >/dev/null; make -s -j2 -C b >/dev/null; b/m >out",
        timeout=120,
    ),
    Row(
        "meson", "meson ninja=ninja-build gcc",
        shows="configuration by Python, a build by ninja with its log and dependency files",
        prepare=SOURCES + "echo \"project('x', 'c')\nexecutable('m', 'm.c', 'f1.c', 'f2.c')\" >meson.build",
        run="meson setup b >/dev/null; ninja -C b >/dev/null; touch f2.c; ninja -C b >/dev/null; b/m >out",
        timeout=120,
    ),
    Row(
        "ccache", "ccache gcc",
        shows="a cache with lock files, statistics and links; misses, then hits",
        prepare=SOURCES,
        run="export CCACHE_DIR=$PWD/c CCACHE_HARDLINK=1; for round in 1 2; do for i in 1 2 3 4; do ccache gcc -c f$i.c & done; wait; done; ccache -c >/dev/null; ccache -s >stat",
    ),
    Row(
        "linkers", "ld.gold=binutils ld.lld=lld mold gcc",
        shows="three linkers that write their output through a map, two of them by threads",
        prepare=SOURCES,
        run="for l in gold lld mold; do gcc -fuse-ld=$l -o m.$l m.c f1.c f2.c f3.c; ./m.$l >out.$l; done",
    ),
    Row(
        "binutils", "ar=binutils strip=binutils gcc",
        shows="archives and objects, rewritten in place and through temporary files",
        prepare=SOURCES + "for i in 1 2 3 4 5 6; do gcc -g -c f$i.c; done; gcc -g -o m m.c f1.c",
        run="ar rc lib.a f1.o f2.o f3.o; ar rs lib.a f4.o; ar d lib.a f2.o; ranlib lib.a; objcopy --only-keep-debug m m.debug; strip m; objcopy --add-gnu-debuglink=m.debug m; ld -r -o all.o f5.o f6.o; nm lib.a >names; objcopy -O binary m bin",
    ),
    Row(
        "cargo", "cargo rustc gcc",
        shows="a build of two crates: job server, fingerprints, incremental compilation, hard links",
        prepare=r"""cargo init -q --vcs none --name x x; cargo init -q --vcs none --lib --name y x/y; echo 'y = { path = "y" }' >>x/Cargo.toml
echo 'fn main() { println!("{}", y::add(1, 2)); }' >x/src/main.rs; grep -q 'fn add' x/y/src/lib.rs || echo 'pub fn add(a: i32, b: i32) -> i32 { a + b }' >x/y/src/lib.rs""",
        run="cd x; cargo build -q --offline; echo '// more' >>src/main.rs; cargo build -q --offline; cargo clean -q -p x --offline",
        timeout=120,
    ),
    Row(
        "go", "go=golang-go",
        shows="a compiler in Go, with many threads and a build cache of content-addressed files",
        prepare=r"""mkdir m; cd m; printf 'module m\ngo 1.19\n' >go.mod; printf 'package main\nimport "os"\nfunc main() { os.WriteFile("out", []byte("x"), 0644) }\n' >m.go""",
        run="export GOCACHE=$PWD/cache GOPATH=$PWD/path CGO_ENABLED=0 GOFLAGS=-p=2 GOTELEMETRY=off; cd m; go vet .; go build -o m; ./m",
        timeout=180,
    ),
    Row(
        "javac", "javac=default-jdk-headless",
        shows="the Java machine compiles and runs: mapped class data, many threads, a jar file",
        prepare=r"""cat >M.java <<'END'
import java.nio.file.*; import java.util.concurrent.*;
public class M { public static void main(String[] a) throws Exception {
ExecutorService e = Executors.newFixedThreadPool(4);
for (int n = 0; n < 4; n++) { final int k = n; e.submit(() -> { for (int i = 0; i < 20; i++) Files.write(Path.of("f" + k + "_" + i % 5), new byte[i * 10]); return 0; }); }
e.shutdown(); e.awaitTermination(60, TimeUnit.SECONDS); } }
END""",
        run="o='-J-Xmx64m -J-XX:-UsePerfData'; javac $o M.java; jar $o -cfe m.jar M M.class; java -Xmx64m -XX:-UsePerfData -jar m.jar",
        timeout=120,
    ),
    Row(
        "npm", "npm node=nodejs",
        shows="installs a package from an archive without a network: cache, renames, links",
        prepare=r"""mkdir p a; echo '{"name":"p","version":"1.0.0","bin":{"p":"p.js"}}' >p/package.json; printf '#!/usr/bin/env node\n' >p/p.js; (cd p; tar -czf ../p.tgz --transform 's,^\.,package,' .); echo '{"name":"a","version":"1.0.0"}' >a/package.json""",
        run="export npm_config_update_notifier=false npm_config_audit=false npm_config_fund=false; cd a; npm install --offline --silent ../p.tgz; npm ls --silent >out; npm pack --silent >name; npm uninstall --silent p",
        timeout=120,
    ),
    Row(
        "gfortran", "gfortran",
        shows="module files, and a program that writes direct-access and scratch files",
        prepare=r"""cat >m.f90 <<'END'
module k
integer :: n = 5
end module
program m
use k
integer :: i
open(10, file='direct', access='direct', recl=40, form='unformatted')
do i = n, 1, -1
write(10, rec=i) i, i * i
end do
open(11, status='scratch'); write(11, *) n; rewind(11); read(11, *) i
open(12, file='text'); write(12, *) i; endfile(12); close(12)
end program
END""",
        run="gfortran -o m m.f90; ./m",
    ),
]
