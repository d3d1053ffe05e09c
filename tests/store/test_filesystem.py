"""Where a store must not be: found in the list of mounts that Linux gives."""

from __future__ import annotations

import pytest

from scrapy_simdup.store import filesystem
from scrapy_simdup.store.filesystem import NETWORK_FUSE, NETWORK_TYPES, network_type, warning_of

MOUNTS = r"""
27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
22 27 0:21 / /proc rw,relatime - proc proc rw
40 27 0:40 / /home rw,relatime shared:20 master:3 - nfs4 server:/export/home rw,vers=4.2
41 40 8:2 / /home/scratch rw - xfs /dev/sdb1 rw
42 27 0:42 / /mnt/with\040space rw - cifs //server/share rw
43 27 0:43 / /mnt/ssh rw,nosuid - fuse.sshfs me@host: rw,user_id=0
44 27 0:44 / /mnt/ntfs rw - fuseblk /dev/sdc1 rw
45 27 0:45 / /mnt/twice rw - 9p share rw
46 27 0:46 / /mnt/twice rw - tmpfs tmpfs rw
47 27 0:47 / /mnt/odd propagate:2 rw - fuse.portal portal rw
48 27 0:48 / /mnt/back\134slash\011tab rw - lustre 10.0.0.1@tcp:/fs rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", None),
        ("/var/store", None),
        ("/home", "nfs4"),
        ("/home/me/project/.scrapy/simdup/spider", "nfs4"),
        ("/homes/me", None),
        ("/home/scratch/store", None),
        ("/home/scratched/store", "nfs4"),
        ("/mnt/with space/store", "cifs"),
        ("/mnt/ssh/store", "fuse.sshfs"),
        ("/mnt/ntfs/store", None),
        ("/mnt/twice/store", None),
        ("/mnt/odd", None),
        ("/mnt/back\\slash\ttab/x", "lustre"),
    ],
)
def test_the_type_of_the_nearest_mount_that_was_mounted_last(path: str, kind: str | None) -> None:
    assert network_type(path, MOUNTS) == kind


@pytest.mark.parametrize("kind", sorted(NETWORK_TYPES | {f"fuse.{name}" for name in NETWORK_FUSE}))
def test_every_type_that_is_known(kind: str) -> None:
    assert network_type("/a/b", f"40 27 0:40 / /a rw - {kind} somewhere rw\n") == kind


@pytest.mark.parametrize(
    "kind", ["ext4", "btrfs", "zfs", "overlay", "tmpfs", "fuse", "nfsd", "sshfs"]
)
def test_local_ones_are_none(kind: str) -> None:
    assert network_type("/a/b", f"40 27 0:40 / /a rw - {kind} /dev/sda rw\n") is None


@pytest.mark.parametrize("text", ["", "\n", " - nfs", "1 2 3 4 /a", "1 2 3 4 /a rw - ", "\0" * 99])
def test_what_is_no_list_of_mounts_says_nothing(text: str) -> None:
    assert network_type("/a/b", text) is None


def test_the_warning_names_the_place_and_the_way_out(tmp_path, monkeypatch) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"40 27 0:40 / {tmp_path} rw - nfs server:/x rw\n", "utf-8")
    monkeypatch.setattr(filesystem, "_MOUNTINFO", str(mounts))
    assert warning_of(tmp_path / "not" / "there") == (
        f"the store '{tmp_path}/not/there' is on a network file system (nfs); LMDB does not work "
        "there, and sooner or later the store is damaged: put it on a local disk (SIMDUP_STORE, "
        "--store), and copy it when no crawl is using it"
    )
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert "network" in str(warning_of(tmp_path / "link" / "store"))


@pytest.mark.parametrize("path", ["store", "/", "a\0b", "~nobody-of-that-name/x"])
def test_where_the_system_does_not_say_there_is_none(path: str, monkeypatch) -> None:
    monkeypatch.setattr(filesystem, "_MOUNTINFO", "/proc/there/is/no/such/file")
    assert warning_of(path) is None
