# SPDX-License-Identifier: MIT
"""Where programs are replayed: file systems in images, mounted for this process alone.

enter_namespace() gives the process mounts of its own, so that nothing stays mounted
when it ends, however that happens. Where there are no such rights, a plain directory
has to do.
"""

import os
import shutil
import subprocess
import sys

IMAGE_BYTES = 8 << 30  # sparse
MARK = "STRANGERS_IN_NAMESPACE"


def enter_namespace():
    """Starts the program again in a mount namespace of its own, if it may."""
    if MARK in os.environ or os.geteuid() != 0 or not shutil.which("unshare"):
        return
    unshare = ["unshare", "--mount", "--propagation", "private"]
    if subprocess.run(unshare + ["true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        os.environ[MARK] = "1"
        os.execvp("unshare", unshare + [sys.executable] + sys.argv)


def mount(kind, scratch):
    """A new file system of a kind; its directory, or None and why not."""
    if MARK not in os.environ:
        return None, "no right to mount"
    directory = os.path.join(scratch, kind)
    image = directory + ".image"
    os.mkdir(directory)
    if kind == "tmpfs":
        steps = [["mount", "-t", "tmpfs", "tmpfs", directory]]
    else:
        with open(image, "wb") as f:
            f.truncate(IMAGE_BYTES)
        steps = [["mkfs." + kind, "-q", image], ["mount", "-o", "loop", image, directory]]
    for step in steps:
        if not shutil.which(step[0]):
            return None, step[0] + " is not installed"
        done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            return None, done.stdout.decode(errors="replace").strip()
    return directory, None


def choose(is_long, scratch):
    """name -> directory, and what there is to say of those that could not be had."""
    remarks = []
    chosen = {}
    for kinds in ([["ext4"], ["xfs", "btrfs", "tmpfs"]] if is_long else [["tmpfs"]]):
        for kind in kinds:
            directory, why = mount(kind, scratch)
            if directory:
                chosen[kind] = directory
                break
            remarks.append("%s: %s" % (kind, why))
    if not chosen:
        chosen["directory"] = os.path.join(scratch, "directory")
        os.mkdir(chosen["directory"])
    return chosen, remarks
