# SPDX-License-Identifier: MIT
"""What a storage of the bench is: a modelled device, the file system on it, and the kernel's settings."""
import os
import re
import shutil

MODELS = {"H": "hdd-queue", "R": "raid0", "S": "ssd", "F": "hdd", "D": "hdd-real", "T": "throttle"}
# The first of them that can be made here stands for "another file system".
OTHER_FS = ["xfs", "btrfs", "ext3", "ext2"]


def other_fs():
    return next((fs for fs in OTHER_FS if shutil.which("mkfs." + fs)), None)


def fs_is_there(fs):
    return shutil.which("mkfs." + fs) is not None


def short_name(text):
    """How tables call a storage: by its name, if it has one."""
    named = re.search(r":name=([^:]*)", text)
    return f"{text[0]} {named.group(1)}" if named else text


class Storage:
    """A letter for the model, then settings, such as S:fs=xfs:cache=24M:read-ahead=0:scheduler=bfq:timeout_sync=1."""

    def __init__(self, text):
        self.text = text
        letter, *settings = text.split(":")
        if letter not in MODELS:
            raise ValueError(f"no storage '{letter}'; there are {', '.join(MODELS)}")
        self.model = MODELS[letter]
        self.fs, self.scheduler, self.read_ahead_kib, self.cache_bytes = "ext4", "none", 128, None
        self.queue_settings = {}
        for setting in settings:
            self._set(*setting.partition("=")[::2])

    def _set(self, key, value):
        if key == "fs" and value:
            self.fs = value
        elif key == "scheduler" and value:
            self.scheduler = value
        elif key == "name" and re.fullmatch(r"[a-z0-9 ]+", value):
            pass  # for tables: see short_name()
        elif key == "read-ahead" and value.isdigit():
            self.read_ahead_kib = int(value)
        elif key == "cache" and re.fullmatch(r"[1-9][0-9]*M", value):
            self.cache_bytes = int(value[:-1]) << 20
        elif key != "cache" and re.fullmatch(r"[a-z_]+", key) and value.isdigit():
            self.queue_settings[key] = int(value)
        else:
            raise ValueError(f"'{self.text}': no setting '{key}={value}'")

    def attach(self, name):
        """Gives it the name under which bench/storage made it."""
        self.directory = os.environ[name + "_DIR"]
        self.queue = "/sys/block/" + os.path.basename(os.environ[name + "_DEV"]) + "/queue"
        self.apply()

    def apply(self):
        if "rotational" in self.queue_settings:  # bfq asks for it when it begins
            self.set_queue("scheduler", "none")
            self.set_queue("rotational", self.queue_settings["rotational"])
            self.set_queue("scheduler", self.scheduler)
        for key, value in self.queue_settings.items():
            self.set_queue(key, value)

    def set_queue(self, key, value):
        """Of the device's queue, or of its scheduler; the loop device forgets both."""
        path = f"{self.queue}/{key}"
        with open(path if os.path.exists(path) else f"{self.queue}/iosched/{key}", "w") as f:
            f.write(str(value))

    def settings(self):
        return {"model": self.model, "fs": self.fs, "scheduler": self.scheduler, "queue_settings": self.queue_settings,
                "read_ahead_kib": self.read_ahead_kib, "cache_bytes": self.cache_bytes}
