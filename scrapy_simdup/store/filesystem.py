"""Whether a store is on a network file system, where LMDB does not work.

LMDB maps its file and locks it with shared memory. Over a network the pages that two machines see
differ, and locks hold on one of them only: sooner or later the file is damaged.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import os

_MOUNTINFO: Final = "/proc/self/mountinfo"

#: Types of the kernel's list of mounts that are reached over a network, or from another system.
NETWORK_TYPES: Final = frozenset(
    {
        *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "cvmfs", "drvfs", "glusterfs", "gpfs"),
        *("lustre", "ncpfs", "nfs", "nfs4", "orangefs", "panfs", "pvfs2", "smb2", "smb3", "smbfs"),
        *("virtiofs", "vboxsf", "vmhgfs", "wekafs"),
    }
)
#: The same behind FUSE, as ``fuse.NAME``.
NETWORK_FUSE: Final = frozenset(
    {
        *("acd_cli", "blobfuse", "blobfuse2", "ceph", "ceph-fuse", "curlftpfs", "davfs", "davfs2"),
        *("gcsfuse", "glusterfs", "goofys", "google-drive-ocamlfuse", "grpcfuse", "gvfsd-fuse"),
        *("hdfs", "juicefs", "JuiceFS", "lizardfs", "mfs", "moosefs", "mount-s3", "mountpoint-s3"),
        *("rclone", "s3fs", "s3ql", "seaweedfs", "smbnetfs", "sshfs", "vmhgfs-fuse"),
    }
)

_ESCAPE = re.compile(r"\\([0-7]{3})")


def network_type(path: str, mountinfo: str) -> str | None:
    """The type of the file system that *path*, absolute and without links, is on, if it is one of
    a network; else None.

    *mountinfo* is the text of ``/proc/self/mountinfo``; what is no line of it is passed over.
    """
    found, longest = "", -1
    for line in mountinfo.split("\n"):
        before, separator, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")[0]
        if not separator or len(fields) < 5 or not kind:
            continue
        place = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), fields[4])
        inside = path == place or path.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= longest:  # what is mounted later lies above
            found, longest = kind, len(place)
    name = found.removeprefix("fuse.")
    return found if found in NETWORK_TYPES or (name != found and name in NETWORK_FUSE) else None


def warning_of(path: str | os.PathLike[str]) -> str | None:
    """What to tell the operator of the place of the store at *path*; None where all is well, and
    where the system does not say.
    """
    try:
        # Names are bytes: read as the system's own calls give them.
        mountinfo = Path(_MOUNTINFO).read_bytes().decode("utf-8", "surrogateescape")
        kind = network_type(str(Path(path).expanduser().resolve()), mountinfo)
    except (OSError, ValueError, RuntimeError):  # another system; no path at all
        return None
    if kind is None:
        return None
    return (
        f"the store {str(path)!r} is on a network file system ({kind}); LMDB does not work there, and "
        "sooner or later the store is damaged: put it on a local disk (SIMDUP_STORE, --store), and "
        "copy it when no crawl is using it"
    )
